//! The facade's rules, against a core that records what it is asked and answers what the test wants.

#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod fake;
mod network;
mod pages;
mod requests;
mod streams;
mod webhooks;
