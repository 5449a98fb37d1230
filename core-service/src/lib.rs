//! The Switchyard core.
pub mod clock;
pub mod id;
pub mod nodes;
pub mod runtime;
pub mod store;
