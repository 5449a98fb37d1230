//! The REST facade.
