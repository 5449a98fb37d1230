//! Dates: epoch milliseconds or ISO-8601 texts in, ISO-8601 texts in UTC out (`2026-07-23T09:30:00.000Z`).
//!
//! Seconds, minutes and hours are elapsed time; days, months and years follow the calendar of a time zone, UTC
//! unless one is named. A text without an offset is a local time of that zone, too.

use super::super::EvaluationError;
use super::super::evaluator::Outcome;
use super::super::values;
use super::text::text;
use super::{Arguments, Function, date_format};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Unit, Zoned};
use serde_json::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "addDays",
        &["date", "count", "[timezone]"],
        "The date that many days later, at the same time of day.",
        ("addDays(\"2026-02-27\"; 2)", "\"2026-03-01T00:00:00.000Z\""),
        |arguments| add_calendar(arguments, |count| Span::new().try_days(count)),
    ),
    Function::new(
        "addHours",
        &["date", "count"],
        "The date that many hours later.",
        (
            "addHours(\"2026-07-23T09:00:00Z\"; 2)",
            "\"2026-07-23T11:00:00.000Z\"",
        ),
        |arguments| add_elapsed(arguments, 3_600),
    ),
    Function::new(
        "addMinutes",
        &["date", "count"],
        "The date that many minutes later.",
        (
            "addMinutes(\"2026-07-23T09:00:00Z\"; -30)",
            "\"2026-07-23T08:30:00.000Z\"",
        ),
        |arguments| add_elapsed(arguments, 60),
    ),
    Function::new(
        "addMonths",
        &["date", "count", "[timezone]"],
        "The date that many months later, on the month's last day where it has no such day.",
        ("addMonths(\"2026-01-31\"; 1)", "\"2026-02-28T00:00:00.000Z\""),
        |arguments| add_calendar(arguments, |count| Span::new().try_months(count)),
    ),
    Function::new(
        "addSeconds",
        &["date", "count"],
        "The date that many seconds later.",
        (
            "addSeconds(\"2026-07-23T09:00:00Z\"; 90)",
            "\"2026-07-23T09:01:30.000Z\"",
        ),
        |arguments| add_elapsed(arguments, 1),
    ),
    Function::new(
        "addYears",
        &["date", "count", "[timezone]"],
        "The date that many years later.",
        ("addYears(\"2024-02-29\"; 1)", "\"2025-02-28T00:00:00.000Z\""),
        |arguments| add_calendar(arguments, |count| Span::new().try_years(count)),
    ),
    Function::new(
        "dateDifference",
        &["date", "earlier", "[unit]", "[timezone]"],
        "The whole milliseconds (default), seconds, minutes, hours, days, weeks, months or years from the second date to the first.",
        ("dateDifference(\"2026-03-01\"; \"2026-02-01\"; \"days\")", "28"),
        difference,
    ),
    Function::new(
        "formatDate",
        &["date", "format", "[timezone]"],
        "The date as text, with the tokens YYYY MM DD HH mm ss and the like (see below).",
        (
            "formatDate(\"2026-07-23T09:05:00Z\"; \"DD.MM.YYYY HH:mm\"; \"Europe/Berlin\")",
            "\"23.07.2026 11:05\"",
        ),
        format_date,
    ),
    Function::new(
        "parseDate",
        &["text", "[format]", "[timezone]"],
        "The date that a text spells, by the tokens of formatDate; without a format an ISO-8601 text or epoch milliseconds.",
        (
            "parseDate(\"23.07.2026 11:05\"; \"DD.MM.YYYY HH:mm\"; \"Europe/Berlin\")",
            "\"2026-07-23T09:05:00.000Z\"",
        ),
        parse_date,
    ),
    Function::new(
        "setDate",
        &["date", "day", "[timezone]"],
        "The date on that day of its month.",
        ("setDate(\"2026-07-23\"; 1)", "\"2026-07-01T00:00:00.000Z\""),
        |arguments| set(arguments, |date, day| date.with().day(small(day)?).build()),
    ),
    Function::new(
        "setDay",
        &["date", "weekday", "[timezone]"],
        "The date on that day of its week: 1 for Monday to 7 for Sunday, or an English name.",
        (
            "setDay(\"2026-07-23\"; \"monday\")",
            "\"2026-07-20T00:00:00.000Z\"",
        ),
        set_day,
    ),
    Function::new(
        "setHour",
        &["date", "hour", "[timezone]"],
        "The date at that hour of its day.",
        (
            "setHour(\"2026-07-23T09:30:00Z\"; 7)",
            "\"2026-07-23T07:30:00.000Z\"",
        ),
        |arguments| set(arguments, |date, hour| date.with().hour(small(hour)?).build()),
    ),
    Function::new(
        "setMinute",
        &["date", "minute", "[timezone]"],
        "The date at that minute of its hour.",
        (
            "setMinute(\"2026-07-23T09:30:00Z\"; 0)",
            "\"2026-07-23T09:00:00.000Z\"",
        ),
        |arguments| {
            set(arguments, |date, minute| {
                date.with().minute(small(minute)?).build()
            })
        },
    ),
    Function::new(
        "setMonth",
        &["date", "month", "[timezone]"],
        "The date in that month of its year: 1 to 12, or an English name; on its last day where it has no such day.",
        (
            "setMonth(\"2026-07-31\"; \"February\")",
            "\"2026-02-28T00:00:00.000Z\"",
        ),
        set_month,
    ),
    Function::new(
        "setSecond",
        &["date", "second", "[timezone]"],
        "The date at that second of its minute.",
        (
            "setSecond(\"2026-07-23T09:30:15Z\"; 0)",
            "\"2026-07-23T09:30:00.000Z\"",
        ),
        |arguments| {
            set(arguments, |date, second| {
                date.with().second(small(second)?).build()
            })
        },
    ),
    Function::new(
        "setYear",
        &["date", "year", "[timezone]"],
        "The date in that year.",
        ("setYear(\"2026-07-23\"; 2030)", "\"2030-07-23T00:00:00.000Z\""),
        |arguments| set(arguments, |date, year| date.with().year(small(year)?).build()),
    ),
    Function::new(
        "toTimestamp",
        &["date"],
        "The date in epoch milliseconds.",
        ("toTimestamp(\"2026-01-01\")", "1767225600000"),
        |arguments| {
            date(arguments, 0, &TimeZone::UTC).map(|date| Cow::Owned(Value::from(date.as_millisecond())))
        },
    ),
];

/// An instant as the language shows it.
pub(in super::super) fn date_text<'v>(epoch_milliseconds: i64) -> Outcome<'v> {
    match Timestamp::from_millisecond(epoch_milliseconds) {
        Ok(instant) => text(iso(instant)),
        Err(_) => Err(EvaluationError::new(
            "the date is out of range; years run from -9999 to 9999",
        )),
    }
}

fn iso(instant: Timestamp) -> String {
    format!("{instant:.3}")
}

/// The time zone argument; UTC when there is none.
fn zone(arguments: &Arguments<'_>, index: usize) -> Result<TimeZone, EvaluationError> {
    let name = arguments.text(index)?;
    if name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(&name).map_err(|_| {
        let name = values::shown(&name);
        arguments.error(&format!(
            "there is no time zone \"{name}\"; it is named like \"Europe/Berlin\""
        ))
    })
}

fn date(arguments: &Arguments<'_>, index: usize, zone: &TimeZone) -> Result<Timestamp, EvaluationError> {
    let value = arguments.value(index)?;
    let instant = match value.as_ref() {
        Value::Number(number) => number
            .as_i64()
            .and_then(|epoch| Timestamp::from_millisecond(epoch).ok()),
        Value::String(spelled) => parse_iso(spelled, zone),
        _ => None,
    };
    instant.ok_or_else(|| {
        arguments.wants(
            index,
            "a date: epoch milliseconds, or a text like 2026-07-23T09:30:00Z",
            &value,
        )
    })
}

fn parse_iso(spelled: &str, zone: &TimeZone) -> Option<Timestamp> {
    const LONGEST: usize = 64;
    let spelled = spelled.trim();
    if spelled.len() > LONGEST {
        return None;
    }
    if let Ok(instant) = spelled.parse::<Timestamp>() {
        return Some(instant);
    }
    let local: DateTime = spelled.parse().ok()?;
    local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
}

fn zoned(arguments: &Arguments<'_>, zone_index: usize) -> Result<Zoned, EvaluationError> {
    let zone = zone(arguments, zone_index)?;
    date(arguments, 0, &zone).map(|instant| instant.to_zoned(zone))
}

fn out_of_range(arguments: &Arguments<'_>) -> EvaluationError {
    arguments.error("the date would be out of range")
}

fn add_elapsed<'a>(arguments: &Arguments<'a>, seconds: i64) -> Outcome<'a> {
    let instant = date(arguments, 0, &TimeZone::UTC)?;
    let later = arguments
        .integer(1)?
        .checked_mul(seconds)
        .and_then(|seconds| instant.checked_add(SignedDuration::from_secs(seconds)).ok());
    text(iso(later.ok_or_else(|| out_of_range(arguments))?))
}

fn add_calendar<'a>(arguments: &Arguments<'a>, span: fn(i64) -> Result<Span, jiff::Error>) -> Outcome<'a> {
    let date = zoned(arguments, 2)?;
    let later = span(arguments.integer(1)?).and_then(|span| date.checked_add(span));
    text(iso(later.map_err(|_| out_of_range(arguments))?.timestamp()))
}

/// A number as a field of a date; what does not fit gives a value that no field takes.
fn small<T: TryFrom<i64>>(number: i64) -> Result<T, jiff::Error> {
    T::try_from(number).map_err(|_| jiff::Error::from_args(format_args!("{number} is out of range")))
}

fn set<'a>(arguments: &Arguments<'a>, change: fn(&Zoned, i64) -> Result<Zoned, jiff::Error>) -> Outcome<'a> {
    let date = zoned(arguments, 2)?;
    let number = arguments.integer(1)?;
    match change(&date, number) {
        Ok(changed) => text(iso(changed.timestamp())),
        Err(_) => Err(arguments.error(&format!("{number} is out of range for this date"))),
    }
}

/// A number from 1, or a name of which the first three letters count.
fn number_or_name(arguments: &Arguments<'_>, names: &[&str], wanted: &str) -> Result<usize, EvaluationError> {
    let value = arguments.value(1)?;
    let number = match value.as_ref() {
        Value::String(name) => {
            let name = name.trim().to_lowercase();
            const SHORTEST: usize = 3;
            names
                .iter()
                .position(|candidate| name.len() >= SHORTEST && candidate.to_lowercase().starts_with(&name))
                .map(|index| index + 1)
        }
        other => usize::try_from(arguments.as_integer(1, other)?)
            .ok()
            .filter(|number| (1..=names.len()).contains(number)),
    };
    number.ok_or_else(|| arguments.error(wanted))
}

fn set_day<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let date = zoned(arguments, 2)?;
    let wanted = "the weekday is 1 (Monday) to 7 (Sunday), or a name like \"monday\"";
    let weekday = number_or_name(arguments, &date_format::WEEKDAYS, wanted)?;
    let days = i64::try_from(weekday).unwrap_or(1) - i64::from(date.weekday().to_monday_one_offset());
    let changed = Span::new().try_days(days).and_then(|span| date.checked_add(span));
    text(iso(changed.map_err(|_| out_of_range(arguments))?.timestamp()))
}

fn set_month<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let date = zoned(arguments, 2)?;
    let wanted = "the month is 1 to 12, or a name like \"february\"";
    let month = number_or_name(arguments, &date_format::MONTHS, wanted)?;
    let months = i64::try_from(month).unwrap_or(1) - i64::from(date.month());
    let changed = Span::new()
        .try_months(months)
        .and_then(|span| date.checked_add(span));
    text(iso(changed.map_err(|_| out_of_range(arguments))?.timestamp()))
}

fn difference<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let unit_name = arguments.text_or(2, "milliseconds")?;
    let unit = match unit_name.trim_end_matches('s') {
        "millisecond" | "m" => Unit::Millisecond,
        "second" => Unit::Second,
        "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => {
            let message = "the unit is milliseconds, seconds, minutes, hours, days, weeks, months or years";
            return Err(arguments.error(message));
        }
    };
    let zone = zone(arguments, 3)?;
    let later = date(arguments, 0, &zone)?.to_zoned(zone.clone());
    let earlier = date(arguments, 1, &zone)?.to_zoned(zone);
    let span = earlier
        .until((unit, &later))
        .map_err(|_| out_of_range(arguments))?;
    let whole = match unit {
        Unit::Year => i64::from(span.get_years()),
        Unit::Month => i64::from(span.get_months()),
        Unit::Week => i64::from(span.get_weeks()),
        Unit::Day => i64::from(span.get_days()),
        Unit::Hour => i64::from(span.get_hours()),
        Unit::Minute => span.get_minutes(),
        Unit::Second => span.get_seconds(),
        _ => span.get_milliseconds(),
    };
    Ok(Cow::Owned(Value::from(whole)))
}

/// The format argument, which is paid for by the character.
fn date_pattern<'a>(arguments: &Arguments<'a>) -> Result<Cow<'a, str>, EvaluationError> {
    const LONGEST: usize = 1_000;
    let format = arguments.text(1)?;
    if format.len() > LONGEST {
        return Err(arguments.error(&format!("the format is longer than {LONGEST} bytes")));
    }
    arguments.budget().spend(format.len())?;
    Ok(format)
}

fn format_date<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let date = zoned(arguments, 2)?;
    text(date_format::format(&date, &date_pattern(arguments)?))
}

fn parse_date<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let zone = zone(arguments, 2)?;
    let format = date_pattern(arguments)?;
    if format.is_empty() {
        return text(iso(date(arguments, 0, &zone)?));
    }
    match date_format::parse(&arguments.text(0)?, &format, &zone) {
        Ok(instant) => text(iso(instant)),
        Err(problem) => Err(arguments.error(&problem)),
    }
}
