//! The only place that reads the wall clock. Everything else is handed the time, so it can be tested with any.
//!
//! Absent on purpose: time zones (the engine's schedules know them) and lease time (the database's clock judges leases).

use std::time::{SystemTime, UNIX_EPOCH};

/// The time as milliseconds since the Unix epoch. A clock set before 1970 reads as 0.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
