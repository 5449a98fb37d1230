//! Runs: started, read, listed, cancelled, and what happens in them.

mod behaviour;
mod report;
mod start;
