//! The Switchyard core.
