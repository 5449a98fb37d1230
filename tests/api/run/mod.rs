//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod answer_page;
mod behaviour;
mod people;
mod report;
mod start;
mod watch;
