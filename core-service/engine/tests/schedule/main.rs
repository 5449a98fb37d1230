//! Recurrences: when they fire, and what is refused.

#![allow(clippy::unwrap_used, reason = "tests")]

mod catch_up;
mod daylight_saving;
mod problems;
mod rules;

use engine::schedule::{Recurrence, Schedule};
use jiff::Timestamp;
use serde_json::Value;

fn schedule(recurrence: &Value) -> Schedule {
    Recurrence::parse(recurrence)
        .and_then(|recurrence| recurrence.validate())
        .unwrap_or_else(|problems| panic!("{recurrence}: {problems:?}"))
}

fn millisecond(text: &str) -> i64 {
    text.parse::<Timestamp>()
        .unwrap_or_else(|problem| panic!("{text}: {problem}"))
        .as_millisecond()
}

/// The instants that follow one, which is also the anchor; ISO-8601 to the minute where seconds are zero.
fn fires(recurrence: &Value, after: &str, count: usize) -> Vec<String> {
    let (schedule, anchor) = (schedule(recurrence), millisecond(after));
    std::iter::successors(schedule.next_after(anchor, anchor), |last| {
        schedule.next_after(*last, anchor)
    })
    .take(count)
    .map(|instant| {
        Timestamp::from_millisecond(instant)
            .unwrap()
            .to_string()
            .replace(":00Z", "Z")
    })
    .collect()
}
