//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod report;
mod request;
mod start;
mod watch;
