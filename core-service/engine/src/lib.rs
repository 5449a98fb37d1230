//! The engine of Switchyard, pure: no clock, no randomness, no I/O, no async.

pub mod canonical;
pub mod config;
mod driver;
pub mod event;
pub mod expression;
pub mod failure;
pub mod filter;
pub mod fold;
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
pub mod timer;
pub mod topology;
mod view;

#[cfg(test)]
mod tests;
