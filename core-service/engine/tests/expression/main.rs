//! The expression language as its users see it: templates in, JSON values out.

#![allow(clippy::unwrap_used, reason = "tests")]

mod dates;
mod functions;
mod language;
mod limits;
mod parse_errors;
mod properties;
mod support;
mod values;
