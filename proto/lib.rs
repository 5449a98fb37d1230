//! The contract of Switchyard, derived from the protos by `build.rs`: messages with their REST v1 JSON and their
//! validation, gRPC clients and servers, REST routes, access rules, the table of errors, and the descriptors.
//!
//! Deliberately absent: behaviour. Neither a server nor a client lives here, and no endpoint is named by hand.

pub mod access;
pub mod errors;
pub mod json;
#[cfg(feature = "options")]
#[path = "build/options.rs"]
pub mod options;
pub mod rest;
mod timestamp;
pub mod validation;

/// The messages and services of `switchyard.v1`.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, reason = "generated code")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/switchyard.v1.rs"));
}

include!(concat!(env!("OUT_DIR"), "/contract.rs"));

/// The compiled protos with comments and options, as an encoded `google.protobuf.FileDescriptorSet`.
pub static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
