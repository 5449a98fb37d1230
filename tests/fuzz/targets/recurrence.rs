//! A recurrence and two instants: each instant that it gives is later than the last, and one that the recurrence names.
//!
//! The input is `anchor instant recurrence`: epoch milliseconds and JSON, with single blanks between them.

#![no_main]

use engine::schedule::{Recurrence, Schedule, Turn};
use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const DAY_MS: i64 = 86_400_000;
/// The instants that can be now: from 1900 to 9000, in epoch milliseconds.
const EARLIEST: i64 = -2_208_988_800_000;
const LATEST: i64 = 221_845_392_000_000;
/// How many instants of a schedule are looked at.
const INSTANTS: usize = 8;

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, ' ');
    let mut epoch = || {
        parts
            .next()?
            .parse()
            .ok()
            .filter(|epoch| (EARLIEST..=LATEST).contains(epoch))
    };
    let (Some(anchor), Some(instant)) = (epoch(), epoch()) else {
        return;
    };
    let Some(value) = parts
        .next()
        .and_then(|json| serde_json::from_str::<Value>(json).ok())
    else {
        return;
    };
    let problems = match Recurrence::parse(&value) {
        Ok(recurrence) => {
            is_read_back(&recurrence);
            match recurrence.validate() {
                Ok(schedule) => return check(&recurrence, &schedule, anchor, instant),
                Err(problems) => problems,
            }
        }
        Err(problems) => problems,
    };
    assert!(!problems.is_empty());
    assert!(
        problems.iter().all(|(_, message)| !message.is_empty()),
        "{problems:?}"
    );
});

fn is_read_back(recurrence: &Recurrence) {
    let written = serde_json::to_value(recurrence).expect("a recurrence is JSON");
    assert_eq!(Recurrence::parse(&written).as_ref(), Ok(recurrence));
}

fn check(recurrence: &Recurrence, schedule: &Schedule, anchor: i64, mut instant: i64) {
    let zone = recurrence.timezone.as_deref().unwrap_or("UTC");
    let zone = TimeZone::get(zone).expect("was validated");
    for _ in 0..INSTANTS {
        let Some(next) = schedule.next_after(instant, anchor) else {
            return ends(schedule, anchor, instant);
        };
        assert!(next > instant, "{next} after {instant}");
        assert_eq!(
            schedule.next_after(next - 1, anchor),
            Some(next),
            "an instant before {next}"
        );
        let between = instant + (next - instant) / 2;
        assert_eq!(schedule.next_after(between, anchor), Some(next), "from between");
        is_named(recurrence, &zone, next);
        check_turn(schedule, anchor, next);
        instant = next;
    }
}

/// When there is no next instant, there is none later either.
fn ends(schedule: &Schedule, anchor: i64, instant: i64) {
    for years in (1..=40).step_by(3) {
        let later = instant.saturating_add(years * 366 * DAY_MS);
        assert_eq!(
            schedule.next_after(later, anchor),
            None,
            "{years} years after the end"
        );
    }
}

/// The local time is one that the recurrence names, unless summer time has skipped that.
fn is_named(recurrence: &Recurrence, zone: &TimeZone, instant: i64) {
    let instant = Timestamp::from_millisecond(instant).expect("an instant has a date");
    let local = zone.to_datetime(instant);
    let shifted = instant
        .checked_sub(SignedDuration::from_hours(25))
        .is_ok_and(|before| zone.to_offset(before) != zone.to_offset(instant));
    if shifted {
        return;
    }
    let named = match recurrence.kind.as_deref() {
        Some("daily") => true,
        Some("weekly") => recurrence
            .days
            .iter()
            .flatten()
            .any(|day| weekday(*day) == Some(local.weekday())),
        Some("monthly") => recurrence
            .days_of_month
            .iter()
            .flatten()
            .any(|day| is_day(*day, local)),
        _ => return,
    };
    assert!(named, "{local} is on no day of {recurrence:?}");
    let time = local.strftime("%H:%M:%S%.f").to_string();
    let times = recurrence
        .at
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let is_time = times
        .filter_map(Value::as_str)
        .any(|at| time == format!("{at}:00"));
    assert!(is_time, "{local} is at no time of {recurrence:?}");
}

fn weekday(day: i64) -> Option<Weekday> {
    Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()
}

fn is_day(day: i64, local: DateTime) -> bool {
    i64::from(local.day()) == day || (day == -1 && local.day() == local.days_in_month())
}

/// What becomes of an instant, from before it has come to ten days later.
fn check_turn(schedule: &Schedule, anchor: i64, instant: i64) {
    let follows = schedule.next_after(instant, anchor);
    assert_eq!(schedule.turn(instant, anchor, instant - 1), Turn::Wait);
    assert_eq!(
        schedule.turn(instant, anchor, instant),
        Turn::Run { next: follows }
    );
    let now = instant.saturating_add(10 * DAY_MS);
    let oldest = now.saturating_sub(schedule.catchup_window_ms().max(10_000));
    match schedule.turn(instant, anchor, now) {
        Turn::Wait => panic!("waits for what has come"),
        Turn::Run { next } => {
            assert!(instant >= oldest);
            assert_eq!(next, follows);
        }
        Turn::Missed { count, last, next } => {
            assert!(
                count > 0 && (instant..oldest).contains(&last),
                "{count} missed, {last} the last"
            );
            assert_eq!(next, schedule.next_after(oldest - 1, anchor));
        }
    }
}
