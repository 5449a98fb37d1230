//! Each kind of recurrence away from the edges of daylight saving.

use crate::{fires, millisecond, schedule};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn minutes_and_hours_count_from_the_anchor() {
    let quarter = json!({"kind": "interval", "every": 15, "unit": "minutes"});
    assert_eq!(
        fires(&quarter, "2026-07-23T09:07:30Z", 2),
        ["2026-07-23T09:22:30Z", "2026-07-23T09:37:30Z"]
    );
    let hours = json!({"kind": "interval", "every": 7, "unit": "hours", "startAt": "2026-07-23T00:00:00Z"});
    assert_eq!(
        fires(&hours, "2026-07-23T13:59:00Z", 2),
        ["2026-07-23T14:00Z", "2026-07-23T21:00Z"]
    );
    // A named start fires itself, an anchor does not.
    assert_eq!(
        fires(&hours, "2026-07-01T00:00:00Z", 2),
        ["2026-07-23T00:00Z", "2026-07-23T07:00Z"]
    );
    let schedule = schedule(&quarter);
    assert_eq!(schedule.next_after(0, 1_000_000), Some(1_000_000 + 15 * 60_000));
}

#[test]
fn days_weeks_and_months_are_wall_clock_from_the_anchor() {
    let interval = |every: i64, unit: &str, start: &str| json!({"kind": "interval", "every": every, "unit": unit, "startAt": start, "timezone": "Europe/Berlin"});
    assert_eq!(
        fires(
            &interval(2, "days", "2026-03-27T09:00:00"),
            "2026-03-28T00:00:00Z",
            3
        ),
        ["2026-03-29T07:00Z", "2026-03-31T07:00Z", "2026-04-02T07:00Z"]
    );
    assert_eq!(
        fires(
            &interval(1, "weeks", "2026-10-20T09:00:00"),
            "2026-10-20T07:00:00Z",
            2
        ),
        ["2026-10-27T08:00Z", "2026-11-03T08:00Z"]
    );
    // A month that lacks the day runs on its last; the day comes back afterwards.
    assert_eq!(
        fires(
            &interval(1, "months", "2024-01-31T12:00:00"),
            "2024-01-31T11:00:00Z",
            4
        ),
        [
            "2024-02-29T11:00Z",
            "2024-03-31T10:00Z",
            "2024-04-30T10:00Z",
            "2024-05-31T10:00Z"
        ]
    );
    assert_eq!(
        fires(
            &interval(3, "months", "2020-01-15T12:00:00"),
            "2026-06-01T00:00:00Z",
            2
        ),
        ["2026-07-15T10:00Z", "2026-10-15T10:00Z"]
    );
}

#[test]
fn daily_weekly_and_monthly() {
    let daily = json!({"kind": "daily", "at": ["17:30", "09:00", "09:00"], "timezone": "Asia/Kolkata"});
    assert_eq!(
        fires(&daily, "2026-07-23T03:30:00Z", 3),
        ["2026-07-23T12:00Z", "2026-07-24T03:30Z", "2026-07-24T12:00Z"]
    );
    let weekly = json!({"kind": "weekly", "days": [1, 7], "at": ["08:00"]});
    assert_eq!(
        fires(&weekly, "2026-07-23T00:00:00Z", 3),
        ["2026-07-26T08:00Z", "2026-07-27T08:00Z", "2026-08-02T08:00Z"]
    );
    let monthly = json!({"kind": "monthly", "daysOfMonth": [31, -1, 15], "at": ["00:00"]});
    assert_eq!(
        fires(&monthly, "2026-01-31T00:00:00Z", 5),
        [
            "2026-02-15T00:00Z",
            "2026-02-28T00:00Z",
            "2026-03-15T00:00Z",
            "2026-03-31T00:00Z",
            "2026-04-15T00:00Z"
        ]
    );
    // Months without the day are left out.
    let thirty_first = json!({"kind": "monthly", "daysOfMonth": [31], "at": ["06:00"]});
    assert_eq!(
        fires(&thirty_first, "2026-01-31T06:00:00Z", 3),
        ["2026-03-31T06:00Z", "2026-05-31T06:00Z", "2026-07-31T06:00Z"]
    );
}

#[test]
fn cron_expressions() {
    let after = |expression: &str, after: &str, count: usize| {
        fires(&json!({"kind": "cron", "expression": expression}), after, count)
    };
    let noon = "2026-07-23T12:00:00Z";
    assert_eq!(
        after("*/20 * * * *", noon, 3),
        ["2026-07-23T12:20Z", "2026-07-23T12:40Z", "2026-07-23T13:00Z"]
    );
    assert_eq!(
        after("* * * * *", noon, 2),
        ["2026-07-23T12:01Z", "2026-07-23T12:02Z"]
    );
    assert_eq!(
        after("5/25 8-10/2 * * *", noon, 4),
        [
            "2026-07-24T08:05Z",
            "2026-07-24T08:30Z",
            "2026-07-24T08:55Z",
            "2026-07-24T10:05Z"
        ]
    );
    assert_eq!(
        after("0 9 * * mon-fri", noon, 3),
        ["2026-07-24T09:00Z", "2026-07-27T09:00Z", "2026-07-28T09:00Z"]
    );
    assert_eq!(
        after("0 0 * * 7", noon, 2),
        ["2026-07-26T00:00Z", "2026-08-02T00:00Z"]
    );
    assert_eq!(
        after("0 0 * * 0,6", noon, 2),
        ["2026-07-25T00:00Z", "2026-07-26T00:00Z"]
    );
    assert_eq!(
        after("30 6 1 JAN,jul *", noon, 2),
        ["2027-01-01T06:30Z", "2027-07-01T06:30Z"]
    );
    // Either of two restricted days will do …
    assert_eq!(
        after("0 0 13 * FRI", noon, 3),
        ["2026-07-24T00:00Z", "2026-07-31T00:00Z", "2026-08-07T00:00Z"]
    );
    // … but a `*` with a step restricts like a `*`.
    assert_eq!(
        after("0 0 */2 * FRI", noon, 2),
        ["2026-07-31T00:00Z", "2026-08-07T00:00Z"]
    );
    assert_eq!(
        after("0 0 29 2 *", noon, 2),
        ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]
    );
    // 2100 is no leap year.
    assert_eq!(
        after("0 0 29 2 *", "2096-03-01T00:00:00Z", 1),
        ["2104-02-29T00:00Z"]
    );
    // A leap day that is a Sunday is rare: `*/7` starts with `*`, so that both days must fit.
    assert_eq!(
        after("0 0 29 2 */7", "2092-01-01T00:00:00Z", 1),
        ["2128-02-29T00:00Z"]
    );
}

#[test]
fn once_and_the_bounds() {
    let once = json!({"kind": "once", "at": "2026-07-23T12:00:00", "timezone": "Asia/Tokyo"});
    assert_eq!(fires(&once, "2026-07-01T00:00:00Z", 5), ["2026-07-23T03:00Z"]);
    assert!(fires(&once, "2026-07-23T03:00:00Z", 1).is_empty());
    let epoch = json!({"kind": "once", "at": millisecond("2026-07-23T03:00:00Z")});
    assert_eq!(fires(&epoch, "2026-07-01T00:00:00Z", 5), ["2026-07-23T03:00Z"]);

    let bounded = json!({
        "kind": "daily", "at": ["00:00"],
        "startAt": "2026-07-10T00:00:00Z", "endAt": "2026-07-12T00:00:00Z",
    });
    assert_eq!(
        fires(&bounded, "2026-01-01T00:00:00Z", 9),
        ["2026-07-10T00:00Z", "2026-07-11T00:00Z", "2026-07-12T00:00Z"]
    );
    let ended = json!({"kind": "interval", "every": 1, "unit": "hours", "endAt": "2026-07-10T02:00:00Z"});
    assert_eq!(
        fires(&ended, "2026-07-10T00:00:00Z", 9),
        ["2026-07-10T01:00Z", "2026-07-10T02:00Z"]
    );
}

#[test]
fn the_other_fields() {
    let plain = schedule(&json!({"kind": "daily", "at": ["09:00"]}));
    assert_eq!(
        (plain.skip_if_running(), plain.catchup_window_ms()),
        (false, 60_000)
    );
    let full =
        schedule(&json!({"kind": "daily", "at": ["09:00"], "skipIfRunning": true, "catchupWindowMs": 0}));
    assert_eq!((full.skip_if_running(), full.catchup_window_ms()), (true, 0));
}

#[test]
fn the_ends_of_time_are_no_trap() {
    let recurrences = [
        json!({"kind": "interval", "every": 100_000, "unit": "months"}),
        json!({"kind": "interval", "every": 100_000, "unit": "weeks"}),
        json!({"kind": "interval", "every": 1, "unit": "minutes"}),
        json!({"kind": "daily", "at": ["00:00"], "timezone": "Pacific/Kiritimati"}),
        json!({"kind": "cron", "expression": "0 0 29 2 *", "timezone": "Pacific/Pago_Pago"}),
        json!({"kind": "once", "at": 0}),
    ];
    for recurrence in &recurrences {
        let schedule = schedule(recurrence);
        for instant in [
            i64::MIN,
            i64::MIN + 1,
            -377_705_116_800_000,
            253_402_207_200_000,
            i64::MAX - 1,
            i64::MAX,
        ] {
            for anchor in [i64::MIN, instant, 0, i64::MAX] {
                if let Some(next) = schedule.next_after(instant, anchor) {
                    assert!(next > instant, "{recurrence} {instant} {anchor}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn asking_from_any_moment_gives_the_same_instants(
        start in 1_700_000_000_000_i64..1_800_000_000_000,
        steps in prop::collection::vec(1_i64..40 * 86_400_000, 1..6),
        which in 0_usize..6,
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]),
    ) {
        let mut recurrence = [
            json!({"kind": "interval", "every": 37, "unit": "minutes"}),
            json!({"kind": "interval", "every": 3, "unit": "days"}),
            json!({"kind": "interval", "every": 1, "unit": "months"}),
            json!({"kind": "daily", "at": ["00:30", "02:15", "02:30", "23:59"]}),
            json!({"kind": "monthly", "daysOfMonth": [-1, 30], "at": ["02:30"]}),
            json!({"kind": "cron", "expression": "*/17 1-3 * * 0,3"}),
        ][which].clone();
        recurrence["timezone"] = json!(zone);
        let schedule = schedule(&recurrence);
        let mut instant = start;
        for step in steps {
            instant += step;
            let next = schedule.next_after(instant, start).unwrap();
            prop_assert!(next > instant);
            // Nothing lies between: every moment in between has the same next.
            for between in [instant + (next - instant) / 3, instant + (next - instant) / 2, next - 1] {
                prop_assert_eq!(schedule.next_after(between, start), Some(next));
            }
        }
    }
}
