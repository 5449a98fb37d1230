//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod child;
mod failure;
mod report;
mod start;
mod watch;
