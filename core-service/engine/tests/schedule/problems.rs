//! What is refused: each problem with the path of its field.

use engine::schedule::Recurrence;
use serde_json::{Value, json};

/// The paths of all problems, and the first one's message.
fn refused(recurrence: &Value) -> (Vec<String>, String) {
    let problems = Recurrence::parse(recurrence)
        .and_then(|recurrence| recurrence.validate())
        .err()
        .unwrap_or_else(|| panic!("{recurrence} is accepted"));
    let message = problems
        .first()
        .map(|(_, message)| message.clone())
        .unwrap_or_default();
    (problems.into_iter().map(|(path, _)| path).collect(), message)
}

#[test]
fn each_field_is_checked() {
    for (recurrence, paths, words) in [
        (json!({}), vec!["kind"], "interval, daily"),
        (json!({"kind": "hourly"}), vec!["kind"], "interval, daily"),
        (
            json!({"kind": "interval"}),
            vec!["every", "unit"],
            "needs `every`",
        ),
        (
            json!({"kind": "interval", "every": 0, "unit": "minutes"}),
            vec!["every"],
            "from 1",
        ),
        (
            json!({"kind": "interval", "every": -5, "unit": "fortnights"}),
            vec!["every", "unit"],
            "from 1",
        ),
        (
            json!({"kind": "interval", "every": 100_001, "unit": "days"}),
            vec!["every"],
            "100000",
        ),
        (
            json!({"kind": "interval", "every": 5, "unit": "seconds"}),
            vec!["unit"],
            "minutes, hours",
        ),
        (json!({"kind": "daily"}), vec!["at"], "needs `at`"),
        (json!({"kind": "daily", "at": []}), vec!["at"], "local times"),
        (json!({"kind": "daily", "at": "09:00"}), vec!["at"], "array"),
        (
            json!({"kind": "daily", "at": ["09:00", "24:00", 9, "9:00", "09:00:00"]}),
            vec!["at[1]", "at[2]", "at[3]", "at[4]"],
            "HH:MM",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "every": 1}),
            vec!["every"],
            "does not belong",
        ),
        (
            json!({"kind": "weekly", "at": ["09:00"]}),
            vec!["days"],
            "needs `days`",
        ),
        (
            json!({"kind": "weekly", "days": [], "at": ["09:00"]}),
            vec!["days"],
            "at least one",
        ),
        (
            json!({"kind": "weekly", "days": [0, 1, 8], "at": ["09:00"]}),
            vec!["days[0]", "days[2]"],
            "Monday",
        ),
        (
            json!({"kind": "weekly", "days": [i64::MIN], "at": ["09:00"]}),
            vec!["days[0]"],
            "Monday",
        ),
        (
            json!({"kind": "monthly", "daysOfMonth": [0, 32, -2, -1], "at": ["09:00"]}),
            vec!["daysOfMonth[0]", "daysOfMonth[1]", "daysOfMonth[2]"],
            "-1",
        ),
        (
            json!({"kind": "monthly", "daysOfMonth": [], "at": ["09:00"]}),
            vec!["daysOfMonth"],
            "at least one",
        ),
        (json!({"kind": "once", "at": "soon"}), vec!["at"], "ISO-8601"),
        (json!({"kind": "once", "at": i64::MAX}), vec!["at"], "ISO-8601"),
        (json!({"kind": "once"}), vec!["at"], "needs `at`"),
        (
            json!({"kind": "daily", "at": ["09:00"], "timezone": "Mars/Base"}),
            vec!["timezone"],
            "Mars/Base",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "timezone": ""}),
            vec!["timezone"],
            "Europe/Berlin",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "timezone": "Etc/Unknown"}),
            vec!["timezone"],
            "Etc/Unknown",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "startAt": "x", "endAt": true}),
            vec!["startAt", "endAt"],
            "ISO-8601",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "startAt": 2, "endAt": 1}),
            vec!["endAt"],
            "before the start",
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "catchupWindowMs": -1}),
            vec!["catchupWindowMs"],
            "from 0",
        ),
    ] {
        let (found, message) = refused(&recurrence);
        assert_eq!(found, paths, "{recurrence}");
        assert!(message.contains(words), "{recurrence}: {message}");
    }
}

#[test]
fn types_and_unknown_fields() {
    for (recurrence, paths) in [
        (
            json!({"kind": 1, "every": "5", "unit": "minutes"}),
            vec!["kind", "every"],
        ),
        (
            json!({"kind": "interval", "every": 1.5, "unit": "minutes"}),
            vec!["every"],
        ),
        (
            json!({"kind": "weekly", "days": ["monday"], "at": ["09:00"]}),
            vec!["days"],
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "skipIfRunning": "yes"}),
            vec!["skipIfRunning"],
        ),
        (
            json!({"kind": "daily", "at": ["09:00"], "timeZone": "UTC", "skip_if_running": true}),
            vec!["timeZone", "skip_if_running"],
        ),
        (json!([]), vec![""]),
        (json!("daily"), vec![""]),
    ] {
        assert_eq!(refused(&recurrence).0, paths, "{recurrence}");
    }
}

#[test]
fn cron_expressions_are_checked() {
    for (expression, words) in [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("0 * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 * * * *", "\"60\" is no minute"),
        ("* 24 * * *", "\"24\" is no hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "weekday"),
        ("* * * FOO *", "month"),
        ("*/0 * * * *", "step"),
        ("*/-1 * * * *", "step"),
        ("*/x * * * *", "step"),
        ("+5 * * * *", "minute"),
        ("5-1 * * * *", "range"),
        ("1,,2 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("0 0 30 2 *", "never run"),
        ("0 0 31 4,6,9,11 *", "never run"),
        ("0 0 L * *", "day of the month"),
        ("0 0 * * 1#2", "weekday"),
    ] {
        let (paths, message) = refused(&json!({"kind": "cron", "expression": expression}));
        assert_eq!(paths, ["expression"], "{expression}");
        assert!(message.contains(words), "{expression}: {message}");
    }
    let (_, message) = refused(&json!({"kind": "cron", "expression": "1,".repeat(200)}));
    assert!(message.contains("300 characters"), "{message}");
}

#[test]
fn null_is_absent_and_what_was_written_is_kept() {
    let written = json!({"kind": "weekly", "at": ["09:00"], "days": [1], "timezone": "UTC"});
    let with_nulls = json!({"kind": "weekly", "at": ["09:00"], "days": [1], "timezone": "UTC", "endAt": null, "every": null});
    let recurrence = Recurrence::parse(&with_nulls).unwrap();
    assert!(recurrence.validate().is_ok());
    assert_eq!(serde_json::to_value(&recurrence).unwrap(), written);
    assert_eq!(Recurrence::parse(&written).unwrap(), recurrence);
}
