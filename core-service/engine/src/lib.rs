//! The engine of Switchyard, pure: no clock, no randomness, no I/O, no async.

pub mod expression;
pub mod schedule;
