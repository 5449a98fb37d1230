//! The service's time. Everything else is handed it, so it can be tested with any.
//!
//! Processes that share a database go by its clock: what one sets another finds due. Between two looks at it a steady clock
//! counts on, so a leap of the machine's own clock is no time that passed. This is the only place that reads the wall clock,
//! for as long as no database was asked. Absent on purpose: time zones (the engine's schedules know them) and lease time
//! (judged where the leases are).

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time at `BEGAN`, in epoch milliseconds, as far as the database was asked.
static TIME_AT_BEGIN: AtomicI64 = AtomicI64::new(NOT_ASKED);
const NOT_ASKED: i64 = i64::MIN;

/// Differences up to this many milliseconds, beside the time that the answer took, are no news.
const SLACK_MS: i64 = 5;

/// The time as milliseconds since the Unix epoch. A clock set before 1970 reads as 0.
#[must_use]
pub fn now_ms() -> i64 {
    match TIME_AT_BEGIN.load(Relaxed) {
        NOT_ASKED => wall_clock_ms(),
        at_begin => at_begin.saturating_add(milliseconds(BEGAN.elapsed())),
    }
}

/// The database said that it is `now_ms`, and took so long to answer.
pub fn set(now_ms: i64, took: Duration) {
    let took = milliseconds(took);
    let at_begin = now_ms + took / 2 - milliseconds(BEGAN.elapsed());
    let is_new =
        |known: i64| known == NOT_ASKED || known.abs_diff(at_begin) > (took + SLACK_MS).unsigned_abs();
    // Whoever sets it at the same time has asked at the same time.
    let _unchanged = TIME_AT_BEGIN.fetch_update(Relaxed, Relaxed, |known| is_new(known).then_some(at_begin));
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn wall_clock_ms() -> i64 {
    milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
