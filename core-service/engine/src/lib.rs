//! The engine of Switchyard: what a workflow means, without doing anything.
//!
//! Deliberately absent: a clock, randomness, I/O, async, the database and the wire. Time arrives with inputs, results
//! arrive as inputs, and what has to be done leaves as commands. So recovery is replay, and a test can run a workflow
//! in a loop, crash it after any event and compare.
//!
//! # From a drawing to a run
//!
//! ```text
//! ops ──► graph ──► topology, regions ──► plan ──► state ◄── fold ◄── event ◄──► journal
//!                        ▲                 ▲         │                  ▲
//!                     problem        kind, kinds     └──► step, driver ─┘──► commands
//!                                  params, filter             │
//!                                   expression          view, routing
//! ```
//!
//! - [`graph`] is the stored form of a workflow, [`ops`] edits it, [`topology`] decides whether it may be saved and
//!   [`regions`] which nodes run once for each item. What is wrong is a [`problem::Problem`].
//! - [`kind`] says what a node kind is and keeps the registry; [`kinds`] are those that need nothing but their inputs.
//!   [`params`] checks parameters against the shape a kind declares, [`config`] holds what every kind understands.
//!   To add a kind, implement [`kind::Kind`] in a file of its own and register it.
//! - [`plan`] is a graph compiled for running: templates ([`expression`]) and filters ([`filter`]) parsed, adjacency by
//!   index. It is immutable and shared by all runs of a version.
//! - [`event`]s are what is recorded of a run and [`journal`] is their stored form. [`state`] is their fold ([`fold`]):
//!   it reads what was decided and never decides, so a replayed run is the run.
//! - [`step`] takes one [`step::Input`] in and runs everything that needs no effect to quiescence. Its events are made
//!   durable first, its commands are carried out then. [`start`] says where runs start, [`timer`] names what wakes them,
//!   [`footprint`] how much they may hold.
//! - [`scope`] is what templates see and what the runtime contributes; [`report`] is what people see of a run.
//!
//! # Invariants
//!
//! - A node in one iteration begins when its incoming edges are decided, and ends at most once. Timing never decides,
//!   except where `join: any` asks for it.
//! - Every change of a [`state::RunState`] that outlives a step comes from an event.
//! - An effect is commanded only in the step that records its intent, or when the run is resumed.
//! - Nothing that is stored or sent can make this crate panic: a foreign journal is a [`fold::FoldError`].

pub mod canonical;
pub mod config;
mod driver;
pub mod event;
pub mod expression;
pub mod failure;
pub mod filter;
pub mod fold;
pub mod footprint;
pub mod graph;
mod items;
pub mod iteration;
pub mod journal;
pub mod kind;
pub mod kinds;
pub mod ops;
pub mod params;
pub mod plan;
pub mod problem;
pub mod regions;
pub mod report;
mod resumption;
mod routing;
pub mod schedule;
pub mod scope;
pub mod start;
pub mod state;
pub mod step;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod topology;
mod view;
