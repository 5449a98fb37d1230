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
pub mod iteration;
pub mod kind;
pub mod kinds;
pub mod params;
pub mod plan;
pub mod problem;
mod routing;
pub mod scope;
pub mod start;
pub mod state;
pub mod step;
pub mod timer;
pub mod topology;
mod view;
