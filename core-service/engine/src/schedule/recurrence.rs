//! What a user wrote, field by field, and the check that makes a [`Schedule`] of it.

use super::calendar::{Calendar, Days, Set, Steps};
use super::{Rule, Schedule, cron};
use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is wrong with one field: its path (`at[1]`) and a sentence.
pub type Problem = (String, String);

/// A recurrence as it is written and stored. Which fields belong together depends on the kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Recurrence {
    /// interval, daily, weekly, monthly, cron or once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// interval: how many units lie between two runs, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<i64>,
    /// interval: minutes, hours, days, weeks or months.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// daily, weekly, monthly: an array of local times (`"09:00"`). once: an instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Value>,
    /// weekly: 1 (Monday) to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<i64>>,
    /// monthly: 1 to 31, or -1 for the last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_of_month: Option<Vec<i64>>,
    /// cron: five fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// IANA name; UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Leaves out an instant while the run of an earlier one is still going.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_if_running: Option<bool>,
    /// The first instant that may fire: epoch milliseconds or ISO-8601, local time when it has no offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Value>,
    /// The last instant that may fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Value>,
    /// How late an instant may still be run, in milliseconds; 60,000 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catchup_window_ms: Option<i64>,
}

const DEFAULT_CATCHUP_WINDOW_MS: i64 = 60_000;
/// The longest interval, in its unit.
const MOST_EVERY: i64 = 100_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// The fields that belong to some kinds only.
const KIND_FIELDS: [&str; 6] = ["every", "unit", "at", "days", "daysOfMonth", "expression"];

impl Recurrence {
    /// Reads JSON. Every field of the wrong type and every unknown one is reported with its name.
    pub fn parse(value: &Value) -> Result<Self, Vec<Problem>> {
        let Value::Object(fields) = value else {
            return Err(vec![problem(
                "",
                "a recurrence is an object such as {\"kind\": \"daily\", \"at\": [\"09:00\"]}",
            )]);
        };
        let problems: Vec<Problem> = fields
            .iter()
            .filter_map(|(name, field)| {
                let alone = Map::from_iter([(name.clone(), field.clone())]);
                Self::deserialize(Value::Object(alone))
                    .err()
                    .map(|error| problem(name, error.to_string()))
            })
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        Self::deserialize(value).map_err(|error| vec![problem("", error.to_string())])
    }

    /// Checks every field and makes a schedule of them, or reports every problem.
    pub fn validate(&self) -> Result<Schedule, Vec<Problem>> {
        let mut problems = Vec::new();
        let zone = zone(self.timezone.as_deref(), &mut problems);
        let start_at = optional_instant("startAt", self.start_at.as_ref(), &zone, &mut problems);
        let end_at = optional_instant("endAt", self.end_at.as_ref(), &zone, &mut problems);
        if let (Some(start), Some(end)) = (start_at, end_at)
            && end < start
        {
            problems.push(problem("endAt", "the end lies before the start"));
        }
        let catchup_window_ms = self.catchup_window_ms.unwrap_or(DEFAULT_CATCHUP_WINDOW_MS);
        if catchup_window_ms < 0 {
            problems.push(problem(
                "catchupWindowMs",
                "the catch-up window is a number of milliseconds from 0 on",
            ));
        }
        let rule = self.rule(&zone, &mut problems);
        match rule {
            Some(rule) if problems.is_empty() => Ok(Schedule {
                rule,
                zone,
                start_at,
                end_at,
                skip_if_running: self.skip_if_running.unwrap_or(false),
                catchup_window_ms,
            }),
            _ => Err(problems),
        }
    }

    fn rule(&self, zone: &TimeZone, problems: &mut Vec<Problem>) -> Option<Rule> {
        let kind = self.kind.as_deref().unwrap_or_default();
        let fields: &[&str] = match kind {
            "interval" => &["every", "unit"],
            "daily" | "once" => &["at"],
            "weekly" => &["days", "at"],
            "monthly" => &["daysOfMonth", "at"],
            "cron" => &["expression"],
            _ => {
                let message = "the kind is interval, daily, weekly, monthly, cron or once";
                problems.push(problem("kind", message));
                return None;
            }
        };
        self.check_fields(kind, fields, problems);
        match kind {
            "interval" => self.interval(problems),
            "once" => optional_instant("at", self.at.as_ref(), zone, problems).map(Rule::Once),
            "cron" => match cron::parse(self.expression.as_deref()?) {
                Ok(calendar) => Some(Rule::Calendar(calendar)),
                Err(message) => {
                    problems.push(problem("expression", message));
                    None
                }
            },
            _ => {
                let days = match kind {
                    "weekly" => self.days.as_deref().map(|days| weekdays(days, problems)),
                    "monthly" => self
                        .days_of_month
                        .as_deref()
                        .map(|days| days_of_month(days, problems)),
                    _ => Some(Days::Every),
                };
                let times = self.at.as_ref().map(|at| times(at, problems));
                Some(Rule::Calendar(Calendar {
                    days: days?,
                    times: times?,
                }))
            }
        }
    }

    /// The kind's own fields must be there, those of other kinds must not: nothing is silently dropped.
    fn check_fields(&self, kind: &str, wanted: &[&str], problems: &mut Vec<Problem>) {
        for name in KIND_FIELDS {
            let is_given = match name {
                "every" => self.every.is_some(),
                "unit" => self.unit.is_some(),
                "at" => self.at.is_some(),
                "days" => self.days.is_some(),
                "daysOfMonth" => self.days_of_month.is_some(),
                _ => self.expression.is_some(),
            };
            match (wanted.contains(&name), is_given) {
                (true, false) => problems.push(problem(
                    name,
                    format!("a recurrence of kind {kind} needs `{name}`"),
                )),
                (false, true) => {
                    problems.push(problem(
                        name,
                        format!("`{name}` does not belong to a recurrence of kind {kind}"),
                    ));
                }
                _ => {}
            }
        }
    }

    fn interval(&self, problems: &mut Vec<Problem>) -> Option<Rule> {
        let every = self.every.filter(|every| {
            let fits = (1..=MOST_EVERY).contains(every);
            if !fits {
                problems.push(problem(
                    "every",
                    format!("`every` is a whole number from 1 to {MOST_EVERY}"),
                ));
            }
            fits
        });
        // Both are looked at, so that both are reported.
        let unit = self.unit.as_deref()?;
        let rule: fn(i64) -> Rule = match unit {
            "minutes" => |every| Rule::Elapsed(every * MINUTE_MS),
            "hours" => |every| Rule::Elapsed(every * HOUR_MS),
            "days" => |every| Rule::Steps(Steps::Days(every)),
            "weeks" => |every| Rule::Steps(Steps::Days(every * 7)),
            "months" => |every| Rule::Steps(Steps::Months(every)),
            _ => {
                problems.push(problem(
                    "unit",
                    "the unit is minutes, hours, days, weeks or months",
                ));
                return None;
            }
        };
        every.map(rule)
    }
}

fn problem(path: &str, message: impl Into<String>) -> Problem {
    (path.to_owned(), message.into())
}

fn zone(name: Option<&str>, problems: &mut Vec<Problem>) -> TimeZone {
    let Some(name) = name else {
        return TimeZone::UTC;
    };
    match TimeZone::get(name) {
        Ok(zone) if !zone.is_unknown() => zone,
        _ => {
            let message = format!("there is no time zone \"{name}\"; it is named like \"Europe/Berlin\"");
            problems.push(problem("timezone", message));
            TimeZone::UTC
        }
    }
}

fn optional_instant(
    path: &str,
    value: Option<&Value>,
    zone: &TimeZone,
    problems: &mut Vec<Problem>,
) -> Option<i64> {
    let value = value?;
    let instant = instant(value, zone);
    if instant.is_none() {
        let message = "an instant is epoch milliseconds or an ISO-8601 text such as \"2026-07-23T09:30:00Z\"";
        problems.push(problem(path, message));
    }
    instant
}

fn instant(value: &Value, zone: &TimeZone) -> Option<i64> {
    match value {
        Value::Number(epoch) => epoch
            .as_i64()
            .filter(|epoch| Timestamp::from_millisecond(*epoch).is_ok()),
        Value::String(text) => {
            if let Ok(instant) = text.parse::<Timestamp>() {
                return Some(instant.as_millisecond());
            }
            let local: DateTime = text.parse().ok()?;
            local
                .to_zoned(zone.clone())
                .ok()
                .map(|zoned| zoned.timestamp().as_millisecond())
        }
        _ => None,
    }
}

/// Local times, in order and each once.
fn times(value: &Value, problems: &mut Vec<Problem>) -> Vec<Time> {
    const MOST: usize = 288;
    let Some(items) = value.as_array().filter(|items| (1..=MOST).contains(&items.len())) else {
        problems.push(problem(
            "at",
            format!("`at` is an array of 1 to {MOST} local times such as \"09:00\""),
        ));
        return Vec::new();
    };
    let mut times = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.as_str().and_then(time) {
            Some(time) => times.push(time),
            None => problems.push(problem(
                &format!("at[{index}]"),
                "a local time is written HH:MM, from \"00:00\" to \"23:59\"",
            )),
        }
    }
    times.sort_unstable();
    times.dedup();
    times
}

/// `HH:MM`, nothing else.
fn time(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            digits.parse::<i8>().ok()
        } else {
            None
        }
    };
    Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

fn weekdays(days: &[i64], problems: &mut Vec<Problem>) -> Days {
    let mut wanted = [false; 7];
    if days.is_empty() {
        problems.push(problem(
            "days",
            "`days` names at least one weekday, 1 (Monday) to 7 (Sunday)",
        ));
    }
    for (index, day) in days.iter().enumerate() {
        let place = day.checked_sub(1).and_then(|day| usize::try_from(day).ok());
        match place.and_then(|place| wanted.get_mut(place)) {
            Some(wanted) => *wanted = true,
            None => problems.push(problem(
                &format!("days[{index}]"),
                "a weekday is 1 (Monday) to 7 (Sunday)",
            )),
        }
    }
    Days::Weekdays(wanted)
}

fn days_of_month(wanted: &[i64], problems: &mut Vec<Problem>) -> Days {
    let (mut days, mut last) = (Set::default(), false);
    if wanted.is_empty() {
        problems.push(problem(
            "daysOfMonth",
            "`daysOfMonth` names at least one day, 1 to 31 or -1 for the last",
        ));
    }
    for (index, day) in wanted.iter().enumerate() {
        match u32::try_from(*day) {
            Ok(day @ 1..=31) => days.insert(day),
            _ if *day == -1 => last = true,
            _ => problems.push(problem(
                &format!("daysOfMonth[{index}]"),
                "a day of the month is 1 to 31, or -1 for the last",
            )),
        }
    }
    Days::OfMonth { days, last }
}
