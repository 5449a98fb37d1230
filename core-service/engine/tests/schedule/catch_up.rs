//! What becomes of instants that have come: run, too late, or not yet; and that none is lost or run twice.

use crate::{millisecond, schedule};
use engine::schedule::Turn;
use proptest::prelude::*;
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;

fn every_minute(window: Option<i64>) -> Value {
    let mut recurrence = json!({ "kind": "interval", "every": 1, "unit": "minutes" });
    if let Some(window) = window {
        recurrence["catchupWindowMs"] = json!(window);
    }
    recurrence
}

/// How late an instant is, and the window; that it runs, or how many are missed and how late the next one is.
type Case = (i64, Option<i64>, Result<(), (u64, i64)>);

#[test]
fn late_instants_run_within_the_window() {
    let cases: [Case; 11] = [
        (0, None, Ok(())),
        (1, None, Ok(())),
        (59_999, None, Ok(())),
        (60_000, None, Ok(())),
        (60_001, None, Err((1, 1))),
        (119_999, None, Err((1, 59_999))),
        (120_001, None, Err((2, 1))),
        // A window of nothing is for servers that were down, not for those that are busy.
        (9_000, Some(0), Ok(())),
        (10_001, Some(0), Err((1, 10_001 - MINUTE))),
        (7 * 24 * 60 * MINUTE, Some(7 * 24 * 60 * MINUTE), Ok(())),
        (7 * 24 * 60 * MINUTE, Some(0), Err((7 * 24 * 60, 0))),
    ];
    let anchor = millisecond("2026-03-01T00:00:00Z");
    let due = anchor + MINUTE;
    for (late, window, expected) in cases {
        let schedule = schedule(&every_minute(window));
        let now = due + late;
        let expected = match expected {
            Ok(()) => Turn::Run {
                next: Some(due + MINUTE),
            },
            Err((count, next_is_late)) => Turn::Missed {
                count,
                last: now - next_is_late - MINUTE,
                next: Some(now - next_is_late),
            },
        };
        assert_eq!(
            schedule.turn(due, anchor, now),
            expected,
            "late by {late}, {window:?}"
        );
    }
}

#[test]
fn an_instant_that_has_not_come_waits() {
    let schedule = schedule(&every_minute(None));
    assert_eq!(schedule.turn(MINUTE, 0, MINUTE - 1), Turn::Wait);
    assert_ne!(schedule.turn(MINUTE, 0, MINUTE), Turn::Wait);
}

#[test]
fn what_happens_once_is_run_late_or_never() {
    let at = millisecond("2026-03-01T09:00:00Z");
    let once = schedule(&json!({ "kind": "once", "at": at }));
    assert_eq!(once.turn(at, 0, at + MINUTE), Turn::Run { next: None });
    let missed = Turn::Missed {
        count: 1,
        last: at,
        next: None,
    };
    assert_eq!(once.turn(at, 0, at + MINUTE + 1), missed);
}

#[test]
fn the_end_ends_what_is_missed() {
    let end = millisecond("2026-03-01T00:10:00Z");
    let mut recurrence = every_minute(None);
    recurrence["endAt"] = json!(end);
    let anchor = millisecond("2026-03-01T00:00:00Z");
    let missed = Turn::Missed {
        count: 10,
        last: end,
        next: None,
    };
    assert_eq!(
        schedule(&recurrence).turn(anchor + MINUTE, anchor, end + 24 * 60 * MINUTE),
        missed
    );
}

#[test]
fn years_of_minutes_are_passed_over_in_one_go() {
    let anchor = millisecond("2016-03-01T00:00:00Z");
    let now = millisecond("2026-03-01T00:00:30Z");
    let Turn::Missed { count, last, next } = schedule(&every_minute(None)).turn(anchor + MINUTE, anchor, now)
    else {
        panic!("not missed");
    };
    assert_eq!(count, 100_000);
    assert!(last < now - MINUTE);
    assert_eq!(next, Some(millisecond("2026-03-01T00:00:00Z")));
}

proptest! {
    /// However a server that is up and down looks at a schedule, each of its instants is either run once or missed
    /// once, in order.
    #[test]
    fn each_instant_is_run_or_missed(
        window in 0_i64..400_000,
        minutes in 1_i64..7,
        pauses in prop::collection::vec(0_i64..1_000_000, 1..60),
    ) {
        let recurrence = json!({
            "kind": "interval", "every": minutes, "unit": "minutes", "catchupWindowMs": window,
        });
        let schedule = schedule(&recurrence);
        let (mut now, mut stands) = (0, schedule.next_after(0, 0));
        let (mut run, mut missed) = (Vec::new(), 0);
        for pause in pauses {
            now += pause;
            while let Some(instant) = stands {
                match schedule.turn(instant, 0, now) {
                    Turn::Wait => break,
                    Turn::Run { next } => {
                        prop_assert!(now - instant <= window.max(10_000));
                        run.push(instant);
                        stands = next;
                    }
                    Turn::Missed { count, last, next } => {
                        prop_assert!(last < now - window);
                        missed += count;
                        stands = next;
                    }
                }
            }
        }
        prop_assert!(run.is_sorted_by(|earlier, later| earlier < later));
        let all = now / (minutes * MINUTE);
        prop_assert_eq!(run.len() as u64 + missed, all.unsigned_abs());
    }
}
