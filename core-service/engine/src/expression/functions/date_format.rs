//! The tokens of `formatDate` and `parseDate`, spelled as Moment.js (and so Make) spells them. Names are English.

use super::super::values::shown;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Each token with what it means; the longer of two that start alike comes first.
pub(in super::super) const TOKENS: [(&str, &str); 32] = [
    ("YYYY", "year"),
    ("YY", "year, two digits"),
    ("Q", "quarter"),
    ("MMMM", "name of the month"),
    ("MMM", "name of the month, three letters"),
    ("MM", "month, two digits"),
    ("M", "month"),
    ("DD", "day of the month, two digits"),
    ("Do", "day of the month with its suffix: 1st"),
    ("D", "day of the month"),
    ("dddd", "name of the weekday"),
    ("ddd", "name of the weekday, three letters"),
    ("E", "weekday, 1 (Monday) to 7"),
    ("GGGG", "year of the ISO week"),
    ("WW", "ISO week, two digits"),
    ("W", "ISO week"),
    ("HH", "hour from 0 to 23, two digits"),
    ("H", "hour from 0 to 23"),
    ("hh", "hour from 1 to 12, two digits"),
    ("h", "hour from 1 to 12"),
    ("mm", "minute, two digits"),
    ("m", "minute"),
    ("ss", "second, two digits"),
    ("s", "second"),
    ("SSS", "milliseconds, three digits"),
    ("A", "AM or PM"),
    ("a", "am or pm"),
    ("ZZ", "offset: +0200"),
    ("Z", "offset: +02:00"),
    ("z", "abbreviation of the time zone: CEST"),
    ("X", "epoch seconds"),
    ("x", "epoch milliseconds"),
];

enum Part<'f> {
    Token(&'static str),
    Literal(&'f str),
}

/// A format's tokens and the text between them; `[text]` is literal whatever it spells.
fn parts(format: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let length;
        if let Some((literal, _)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            parts.push(Part::Literal(literal));
            length = literal.len() + "[]".len();
        } else if let Some((token, _)) = TOKENS.iter().find(|(token, _)| rest.starts_with(token)) {
            parts.push(Part::Token(token));
            length = token.len();
        } else {
            length = first.len_utf8();
            parts.push(Part::Literal(rest.get(..length).unwrap_or_default()));
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    parts
}

pub(super) fn format(date: &Zoned, format: &str) -> String {
    parts(format)
        .into_iter()
        .map(|part| match part {
            Part::Literal(literal) => literal.to_owned(),
            Part::Token(token) => format_token(date, token),
        })
        .collect()
}

fn format_token(date: &Zoned, token: &str) -> String {
    let hour12 = (date.hour() + 11) % 12 + 1;
    let (offset, half) = (date.offset(), if date.hour() < 12 { "AM" } else { "PM" });
    let name = |names: &[&'static str], number: i8| {
        usize::try_from(number - 1)
            .ok()
            .and_then(|index| names.get(index).copied())
            .unwrap_or_default()
    };
    let weekday = date.weekday().to_monday_one_offset();
    match token {
        "YYYY" => format!("{:04}", date.year()),
        "YY" => format!("{:02}", date.year().rem_euclid(100)),
        "Q" => ((date.month() + 2) / 3).to_string(),
        "MMMM" => name(&MONTHS, date.month()).to_owned(),
        "MMM" => name(&MONTHS, date.month()).chars().take(3).collect(),
        "MM" => format!("{:02}", date.month()),
        "M" => date.month().to_string(),
        "DD" => format!("{:02}", date.day()),
        "Do" => format!("{}{}", date.day(), ordinal_suffix(date.day())),
        "D" => date.day().to_string(),
        "dddd" => name(&WEEKDAYS, weekday).to_owned(),
        "ddd" => name(&WEEKDAYS, weekday).chars().take(3).collect(),
        "E" => weekday.to_string(),
        "GGGG" => format!("{:04}", date.date().iso_week_date().year()),
        "WW" => format!("{:02}", date.date().iso_week_date().week()),
        "W" => date.date().iso_week_date().week().to_string(),
        "HH" => format!("{:02}", date.hour()),
        "H" => date.hour().to_string(),
        "hh" => format!("{hour12:02}"),
        "h" => hour12.to_string(),
        "mm" => format!("{:02}", date.minute()),
        "m" => date.minute().to_string(),
        "ss" => format!("{:02}", date.second()),
        "s" => date.second().to_string(),
        "SSS" => format!("{:03}", date.millisecond()),
        "A" => half.to_owned(),
        "a" => half.to_lowercase(),
        "ZZ" => offset_text(offset, ""),
        "Z" => offset_text(offset, ":"),
        "z" => date
            .time_zone()
            .to_offset_info(date.timestamp())
            .abbreviation()
            .to_owned(),
        "X" => date.timestamp().as_second().to_string(),
        "x" => date.timestamp().as_millisecond().to_string(),
        other => other.to_owned(),
    }
}

fn ordinal_suffix(day: i8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn offset_text(offset: Offset, separator: &str) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!(
        "{sign}{:02}{separator}{:02}",
        minutes.abs() / 60,
        minutes.abs() % 60
    )
}

/// What a text has said so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    millisecond: Option<i64>,
    is_afternoon: Option<bool>,
    offset_seconds: Option<i64>,
    epoch_milliseconds: Option<i64>,
}

/// The instant that a text spells. What the format does not name is the start of it: January, the first, 0:00.
pub(super) fn parse(spelled: &str, format: &str, zone: &TimeZone) -> Result<Timestamp, String> {
    let mut fields = Fields::default();
    let mut rest = spelled.trim();
    for part in parts(format.trim()) {
        let (expected, remaining) = match part {
            Part::Literal(literal) => (literal, rest.strip_prefix(literal)),
            Part::Token(token) => (token, fields.take(token, rest)),
        };
        rest = remaining.ok_or_else(|| {
            format!("the text does not fit the format \"{format}\": `{expected}` is wanted where it goes on with \"{}\"", shown(rest))
        })?;
    }
    if !rest.is_empty() {
        return Err(format!(
            "the text goes on after the format \"{format}\" ends, with \"{}\"",
            shown(rest)
        ));
    }
    fields
        .instant(zone)
        .ok_or_else(|| format!("\"{}\" is no date that exists", shown(spelled)))
}

/// Up to `most` digits, as a number, and what follows them.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length).filter(|_| length >= least)?;
    digits.parse().ok().map(|number| (number, rest))
}

/// The number (from 1) of the name that a text starts with, by its first `letters` letters.
fn name<'t>(text: &'t str, names: &[&str], letters: usize) -> Option<(i64, &'t str)> {
    names.iter().zip(1..).find_map(|(name, number)| {
        let name = name.get(..letters).unwrap_or(name);
        let (start, rest) = text.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some((number, rest))
    })
}

/// `Z`, `+02:00` or `+0200`, in seconds.
fn offset(text: &str) -> Option<(i64, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((0, rest));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = digits(text.strip_prefix(['+', '-'])?, 2, 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':').unwrap_or(rest), 2, 2)?;
    Some((sign * (hours * 3_600 + minutes * 60), rest))
}

impl Fields {
    /// Reads what a token means off the start of a text and gives what follows.
    fn take<'t>(&mut self, token: &str, text: &'t str) -> Option<&'t str> {
        const WHOLE_NAME: usize = usize::MAX;
        let (field, (number, rest)) = match token {
            "YYYY" => (&mut self.year, digits(text, 4, 4)?),
            "YY" => {
                let (year, rest) = digits(text, 2, 2)?;
                let century = if year < 70 { 2000 } else { 1900 };
                (&mut self.year, (century + year, rest))
            }
            "MMMM" => (&mut self.month, name(text, &MONTHS, WHOLE_NAME)?),
            "MMM" => (&mut self.month, name(text, &MONTHS, 3)?),
            "MM" | "M" => (&mut self.month, digits(text, 1, 2)?),
            "DD" | "D" => (&mut self.day, digits(text, 1, 2)?),
            "Do" => {
                let (day, rest) = digits(text, 1, 2)?;
                (&mut self.day, (day, rest.get(2..)?))
            }
            "HH" | "H" | "hh" | "h" => (&mut self.hour, digits(text, 1, 2)?),
            "mm" | "m" => (&mut self.minute, digits(text, 1, 2)?),
            "ss" | "s" => (&mut self.second, digits(text, 1, 2)?),
            "SSS" => (&mut self.millisecond, digits(text, 3, 3)?),
            "ZZ" | "Z" => (&mut self.offset_seconds, offset(text)?),
            "X" | "x" => {
                let (number, rest) = digits(text, 1, 15)?;
                let factor = if token == "X" { 1_000 } else { 1 };
                (&mut self.epoch_milliseconds, (number * factor, rest))
            }
            "A" | "a" => {
                let (half, rest) = text.split_at_checked(2)?;
                self.is_afternoon = Some(match half.to_ascii_lowercase().as_str() {
                    "am" => false,
                    "pm" => true,
                    _ => return None,
                });
                return Some(rest);
            }
            // The weekday says nothing that the day does not.
            "dddd" => return name(text, &WEEKDAYS, WHOLE_NAME).map(|(_, rest)| rest),
            "ddd" => return name(text, &WEEKDAYS, 3).map(|(_, rest)| rest),
            _ => return None,
        };
        *field = Some(number);
        Some(rest)
    }

    fn instant(&self, zone: &TimeZone) -> Option<Timestamp> {
        if let Some(epoch) = self.epoch_milliseconds {
            return Timestamp::from_millisecond(epoch).ok();
        }
        let hour = self.hour.unwrap_or(0);
        let hour = match self.is_afternoon {
            None => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(is_afternoon) => hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let part = |field: Option<i64>, default: i64| i8::try_from(field.unwrap_or(default)).ok();
        let date = Date::new(
            i16::try_from(self.year?).ok()?,
            part(self.month, 1)?,
            part(self.day, 1)?,
        )
        .ok()?;
        let nanosecond = i32::try_from(self.millisecond.unwrap_or(0))
            .ok()?
            .checked_mul(1_000_000)?;
        let time = Time::new(
            i8::try_from(hour).ok()?,
            part(self.minute, 0)?,
            part(self.second, 0)?,
            nanosecond,
        )
        .ok()?;
        let local = DateTime::from_parts(date, time);
        match self.offset_seconds {
            Some(seconds) => {
                let offset = Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?;
                offset.to_timestamp(local).ok()
            }
            None => local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp()),
        }
    }
}
