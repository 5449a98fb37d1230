//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod code;
mod function;
mod report;
mod start;
mod watch;
