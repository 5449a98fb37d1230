//! The Switchyard core.
pub mod clock;
pub mod id;
pub mod store;
