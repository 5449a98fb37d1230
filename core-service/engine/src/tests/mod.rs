//! The semantics of runs, one file per matter; `laws` holds what is true of every graph.

#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod failures;
mod items;
mod joins;
mod kinds;
mod laws;
mod lifecycle;
mod simulation;
mod starts;
mod waits;
