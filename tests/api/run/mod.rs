//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod behaviour;
mod child;
mod code;
mod data;
mod failure;
mod function;
mod report;
mod request;
mod scenarios;
mod start;
mod watch;
