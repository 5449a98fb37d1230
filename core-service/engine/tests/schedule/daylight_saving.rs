//! The edges of daylight saving: a skipped local time runs shifted, a repeated one runs once.

use crate::{fires, millisecond, schedule};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

/// Zone; day, skipped local time and the instant at which it runs; day, repeated local time and its first instant.
type Edges = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// 2025, from the time-zone database by another implementation.
const EDGES: [Edges; 27] = [
    (
        "Europe/Berlin",
        "2025-03-30",
        "02:30",
        "2025-03-30T01:30Z",
        "2025-10-26",
        "02:30",
        "2025-10-26T00:30Z",
    ),
    (
        "Europe/London",
        "2025-03-30",
        "01:30",
        "2025-03-30T01:30Z",
        "2025-10-26",
        "01:30",
        "2025-10-26T00:30Z",
    ),
    (
        "Europe/Lisbon",
        "2025-03-30",
        "01:30",
        "2025-03-30T01:30Z",
        "2025-10-26",
        "01:30",
        "2025-10-26T00:30Z",
    ),
    (
        "Europe/Athens",
        "2025-03-30",
        "03:30",
        "2025-03-30T01:30Z",
        "2025-10-26",
        "03:30",
        "2025-10-26T00:30Z",
    ),
    (
        "Europe/Chisinau",
        "2025-03-30",
        "02:30",
        "2025-03-30T00:30Z",
        "2025-10-26",
        "02:30",
        "2025-10-25T23:30Z",
    ),
    (
        "Atlantic/Azores",
        "2025-03-30",
        "00:30",
        "2025-03-30T01:30Z",
        "2025-10-26",
        "00:30",
        "2025-10-26T00:30Z",
    ),
    (
        "Africa/Casablanca",
        "2025-04-06",
        "02:30",
        "2025-04-06T02:30Z",
        "2025-02-23",
        "02:30",
        "2025-02-23T01:30Z",
    ),
    (
        "Africa/Cairo",
        "2025-04-25",
        "00:30",
        "2025-04-24T22:30Z",
        "2025-10-30",
        "23:30",
        "2025-10-30T20:30Z",
    ),
    (
        "Asia/Jerusalem",
        "2025-03-28",
        "02:30",
        "2025-03-28T00:30Z",
        "2025-10-26",
        "01:30",
        "2025-10-25T22:30Z",
    ),
    (
        "Asia/Beirut",
        "2025-03-30",
        "00:30",
        "2025-03-29T22:30Z",
        "2025-10-25",
        "23:30",
        "2025-10-25T20:30Z",
    ),
    (
        "America/New_York",
        "2025-03-09",
        "02:30",
        "2025-03-09T07:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T05:30Z",
    ),
    (
        "America/Chicago",
        "2025-03-09",
        "02:30",
        "2025-03-09T08:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T06:30Z",
    ),
    (
        "America/Denver",
        "2025-03-09",
        "02:30",
        "2025-03-09T09:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T07:30Z",
    ),
    (
        "America/Los_Angeles",
        "2025-03-09",
        "02:30",
        "2025-03-09T10:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T08:30Z",
    ),
    (
        "America/Anchorage",
        "2025-03-09",
        "02:30",
        "2025-03-09T11:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T09:30Z",
    ),
    (
        "America/St_Johns",
        "2025-03-09",
        "02:30",
        "2025-03-09T06:00Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T04:00Z",
    ),
    (
        "America/Halifax",
        "2025-03-09",
        "02:30",
        "2025-03-09T06:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T04:30Z",
    ),
    (
        "America/Havana",
        "2025-03-09",
        "00:30",
        "2025-03-09T05:30Z",
        "2025-11-02",
        "00:30",
        "2025-11-02T04:30Z",
    ),
    (
        "America/Santiago",
        "2025-09-07",
        "00:30",
        "2025-09-07T04:30Z",
        "2025-04-05",
        "23:30",
        "2025-04-06T02:30Z",
    ),
    (
        "America/Nuuk",
        "2025-03-29",
        "23:30",
        "2025-03-30T01:30Z",
        "2025-10-25",
        "23:30",
        "2025-10-26T00:30Z",
    ),
    (
        "America/Miquelon",
        "2025-03-09",
        "02:30",
        "2025-03-09T05:30Z",
        "2025-11-02",
        "01:30",
        "2025-11-02T03:30Z",
    ),
    (
        "Australia/Sydney",
        "2025-10-05",
        "02:30",
        "2025-10-04T16:30Z",
        "2025-04-06",
        "02:30",
        "2025-04-05T15:30Z",
    ),
    (
        "Australia/Adelaide",
        "2025-10-05",
        "02:30",
        "2025-10-04T17:00Z",
        "2025-04-06",
        "02:30",
        "2025-04-05T16:00Z",
    ),
    (
        "Australia/Lord_Howe",
        "2025-10-05",
        "02:15",
        "2025-10-04T15:45Z",
        "2025-04-06",
        "01:45",
        "2025-04-05T14:45Z",
    ),
    (
        "Pacific/Auckland",
        "2025-09-28",
        "02:30",
        "2025-09-27T14:30Z",
        "2025-04-06",
        "02:30",
        "2025-04-05T13:30Z",
    ),
    (
        "Pacific/Chatham",
        "2025-09-28",
        "03:15",
        "2025-09-27T14:30Z",
        "2025-04-06",
        "03:15",
        "2025-04-05T13:30Z",
    ),
    (
        "Pacific/Norfolk",
        "2025-10-05",
        "02:30",
        "2025-10-04T15:30Z",
        "2025-04-06",
        "02:30",
        "2025-04-05T14:30Z",
    ),
];

/// Every instant at which a local time of a day runs, from the day before to the day after.
fn fires_around(recurrence: &serde_json::Value, zone: &str, day: &str) -> Vec<i64> {
    let day: jiff::civil::Date = day.parse().unwrap();
    let noon = |date: jiff::civil::Date| {
        date.at(12, 0, 0, 0)
            .in_tz(zone)
            .unwrap()
            .timestamp()
            .as_millisecond()
    };
    let (from, to) = (noon(day.yesterday().unwrap()), noon(day.tomorrow().unwrap()));
    let schedule = schedule(recurrence);
    std::iter::successors(schedule.next_after(from, from), |last| {
        schedule.next_after(*last, from)
    })
    .take_while(|instant| *instant < to)
    .collect()
}

#[test]
fn daily_weekly_monthly_and_cron_agree_with_the_table() {
    for (zone, gap_day, gap_time, gap_instant, fold_day, fold_time, fold_instant) in EDGES {
        for (day, time, instant) in [
            (gap_day, gap_time, gap_instant),
            (fold_day, fold_time, fold_instant),
        ] {
            let date: jiff::civil::Date = day.parse().unwrap();
            let (hour, minute) = time.split_once(':').unwrap();
            let weekday = date.weekday();
            let expected = millisecond(&instant.replace('Z', ":00Z"));
            for recurrence in [
                json!({"kind": "daily", "at": [time]}),
                json!({"kind": "weekly", "days": [weekday.to_monday_one_offset()], "at": [time]}),
                json!({"kind": "monthly", "daysOfMonth": [date.day()], "at": [time]}),
                json!({"kind": "cron", "expression": format!("{minute} {hour} * * *")}),
                json!({"kind": "cron", "expression": format!("{minute} {hour} {} {} *", date.day(), date.month())}),
                json!({"kind": "interval", "every": 1, "unit": "days", "startAt": format!("2025-01-01T{time}")}),
                json!({"kind": "once", "at": format!("{day}T{time}:00")}),
            ] {
                let mut recurrence = recurrence;
                recurrence["timezone"] = json!(zone);
                let fired = fires_around(&recurrence, zone, day);
                assert_eq!(
                    fired.iter().filter(|fired| **fired == expected).count(),
                    1,
                    "{recurrence} {fired:?}"
                );
                // Once on that day: the next is a day (of 22 to 26 hours) away.
                for pair in fired.windows(2) {
                    assert!(pair[1] - pair[0] >= 22 * 3_600_000, "{recurrence} {fired:?}");
                }
            }
        }
    }
}

#[test]
fn minutes_and_hours_do_not_notice() {
    let hourly = json!({"kind": "interval", "every": 1, "unit": "hours", "timezone": "Europe/Berlin"});
    assert_eq!(
        fires(&hourly, "2025-10-25T23:00:00Z", 4),
        [
            "2025-10-26T00:00Z",
            "2025-10-26T01:00Z",
            "2025-10-26T02:00Z",
            "2025-10-26T03:00Z"
        ]
    );
}

#[test]
fn times_shifted_onto_another_run_once() {
    // 02:30 does not exist and runs at 03:30, where another one runs already.
    let daily = json!({"kind": "daily", "at": ["02:30", "03:00", "03:30"], "timezone": "Europe/Berlin"});
    assert_eq!(
        fires(&daily, "2025-03-30T00:00:00Z", 4),
        [
            "2025-03-30T01:00Z",
            "2025-03-30T01:30Z",
            "2025-03-31T00:30Z",
            "2025-03-31T01:00Z"
        ]
    );
    let quarter = json!({"kind": "cron", "expression": "*/30 2-3 * * *", "timezone": "Europe/Berlin"});
    assert_eq!(
        fires(&quarter, "2025-03-29T23:30:00Z", 3),
        ["2025-03-30T01:00Z", "2025-03-30T01:30Z", "2025-03-31T00:00Z"]
    );
    let minutely = json!({"kind": "cron", "expression": "* * * * *", "timezone": "Europe/Berlin"});
    assert_eq!(
        fires(&minutely, "2025-03-30T00:58:00Z", 3),
        ["2025-03-30T00:59Z", "2025-03-30T01:00Z", "2025-03-30T01:01Z"]
    );
    // The repeated hour runs once.
    assert_eq!(
        fires(&minutely, "2025-10-26T00:58:00Z", 2),
        ["2025-10-26T00:59Z", "2025-10-26T02:00Z"]
    );
}

#[test]
fn a_skipped_day_runs_on_the_next() {
    // Samoa crossed the date line: 30 December 2011 did not happen.
    let daily = json!({"kind": "daily", "at": ["09:00"], "timezone": "Pacific/Apia"});
    assert_eq!(
        fires(&daily, "2011-12-29T12:00:00Z", 3),
        ["2011-12-29T19:00Z", "2011-12-30T19:00Z", "2011-12-31T19:00Z"]
    );
    let friday = json!({"kind": "weekly", "days": [5], "at": ["09:00"], "timezone": "Pacific/Apia"});
    assert_eq!(
        fires(&friday, "2011-12-29T12:00:00Z", 2),
        ["2011-12-30T19:00Z", "2012-01-05T19:00Z"]
    );
}

/// Around every change of every zone of the table since 1990: order, and agreement with a brute-force search.
#[test]
fn every_change_of_every_zone_agrees_with_a_search() {
    let times = ["00:00", "00:45", "01:30", "02:15", "02:30", "03:00", "23:30"];
    for (zone, ..) in EDGES {
        let tz = TimeZone::get(zone).unwrap();
        let schedule = schedule(&json!({"kind": "daily", "at": times, "timezone": zone}));
        let from: Timestamp = "1990-01-01T00:00:00Z".parse().unwrap();
        for change in tz.following(from).map(|change| change.timestamp()).take(60) {
            let start = change.as_millisecond() - 30 * 3_600_000;
            let end = change.as_millisecond() + 30 * 3_600_000;
            let day = tz.to_datetime(change).date();
            let mut expected: Vec<i64> = (-3..=3_i32)
                .flat_map(|days| times.map(|time| (day + jiff::Span::new().days(days), time)))
                .map(|(date, time)| {
                    let local: jiff::civil::DateTime = format!("{date}T{time}").parse().unwrap();
                    local.to_zoned(tz.clone()).unwrap().timestamp().as_millisecond()
                })
                .filter(|instant| *instant > start && *instant < end)
                .collect();
            expected.sort_unstable();
            expected.dedup();
            let fired: Vec<i64> = std::iter::successors(schedule.next_after(start, start), |last| {
                schedule.next_after(*last, start)
            })
            .take_while(|instant| *instant < end)
            .collect();
            assert_eq!(fired, expected, "{zone} around {change}");
        }
    }
}
