//! Runs: started, read, listed, cancelled, and what happens in them.

mod again;
mod answer_page;
mod app;
mod behaviour;
mod child;
mod code;
mod data;
mod failure;
mod function;
mod items;
mod people;
mod report;
mod request;
mod scenarios;
mod start;
mod upstream;
mod watch;
