//! Custom functions at run time: which ones a workflow's templates may call, frozen with its graph, and run in the
//! sandbox.
//!
//! A workflow calls its team's functions first, then the organization's. What a graph calls is frozen with it, code
//! included, so that a run in flight and a deployed version never notice an edit. Absent on purpose: listing and
//! changing functions, which the service does.

mod freeze;
mod known;
mod surroundings;

pub use freeze::{DraftOf, callable, freeze, frozen};
pub use known::{Frozen, Known};
pub use surroundings::{LIMIT_MS, WithFunctions, call_all, call_of};
