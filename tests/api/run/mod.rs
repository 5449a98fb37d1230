//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod code;
mod data;
mod function;
mod report;
mod request;
mod scenarios;
mod start;
mod watch;
