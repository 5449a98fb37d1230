//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod data;
mod report;
mod request;
mod scenarios;
mod start;
mod watch;
