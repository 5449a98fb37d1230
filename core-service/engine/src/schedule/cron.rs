//! Cron expressions of five fields: minute, hour, day of the month, month, weekday.
//!
//! Each field is `*` or a list of numbers, ranges (`1-5`) and steps (`*/15`, `8-18/2`, `5/10`); months and weekdays
//! may be named (`JAN`, `MON`), 0 and 7 both are Sunday. Macros such as `@daily` and the extensions `L`, `W`, `#`
//! are absent.

use super::calendar::{Calendar, Days, Set};
use jiff::civil::Time;

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// The names of the numbers, from the least on.
    names: &'static [&'static str],
}

const MINUTE: Field = Field {
    name: "minute",
    least: 0,
    most: 59,
    names: &[],
};
const HOUR: Field = Field {
    name: "hour",
    least: 0,
    most: 23,
    names: &[],
};
const DAY: Field = Field {
    name: "day of the month",
    least: 1,
    most: 31,
    names: &[],
};
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
};
const WEEKDAY: Field = Field {
    name: "weekday",
    least: 0,
    most: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

/// The local times of an expression, or what is wrong with it.
pub(super) fn parse(expression: &str) -> Result<Calendar, String> {
    const LONGEST: usize = 300;
    if expression.len() > LONGEST {
        return Err(format!("a cron expression has at most {LONGEST} characters"));
    }
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(format!(
            "a cron expression has five fields (minute, hour, day of the month, month, weekday), not {}",
            fields.len()
        ));
    };
    let (minutes, hours) = (MINUTE.parse(minute)?, HOUR.parse(hour)?);
    let months = MONTH.parse(month)?;
    let of_month = DAY.parse(day)?;
    let mut weekdays = WEEKDAY.parse(weekday)?;
    if weekdays.contains(7) {
        weekdays.insert(0);
    }
    // Cron's own rule: a day that either field names will do, unless one of them is (or starts with) `*`.
    let either = !day.starts_with('*') && !weekday.starts_with('*');
    if !either && !has_day(months, of_month) {
        return Err("no month of the expression has such a day, so it would never run".to_owned());
    }
    let times = (0..24_u32)
        .filter(|hour| hours.contains(*hour))
        .flat_map(|hour| {
            (0..60_u32)
                .filter(move |minute| minutes.contains(*minute))
                .map(move |minute| (hour, minute))
        })
        .filter_map(|(hour, minute)| {
            Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()
        })
        .collect();
    Ok(Calendar {
        days: Days::Cron {
            months,
            of_month,
            weekdays,
            either,
        },
        times,
    })
}

/// Whether a month has one of the days.
fn has_day(months: Set, days: Set) -> bool {
    const LENGTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    (1_u32..)
        .zip(LENGTHS)
        .any(|(month, length)| months.contains(month) && (1..=length).any(|day| days.contains(day)))
}

impl Field {
    fn parse(&self, text: &str) -> Result<Set, String> {
        let mut set = Set::default();
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => {
                    let step = number(step).filter(|step| *step > 0);
                    (
                        range,
                        Some(step.ok_or_else(|| self.problem(part, "a step is a whole number from 1 on"))?),
                    )
                }
                None => (part, None),
            };
            let (first, last) = self.range(part, range, step.is_some())?;
            for number in (first..=last).step_by(usize::try_from(step.unwrap_or(1)).unwrap_or(1)) {
                set.insert(number);
            }
        }
        Ok(set)
    }

    fn range(&self, part: &str, range: &str, has_step: bool) -> Result<(u32, u32), String> {
        if range == "*" {
            return Ok((self.least, self.most));
        }
        let value = |text: &str| {
            self.number(text)
                .ok_or_else(|| self.problem(part, &format!("it goes from {} to {}", self.least, self.most)))
        };
        match range.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (value(first)?, value(last)?);
                if first > last {
                    return Err(self.problem(part, "a range goes from the smaller to the greater number"));
                }
                Ok((first, last))
            }
            None => {
                let first = value(range)?;
                Ok((first, if has_step { self.most } else { first }))
            }
        }
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = (self.least..)
            .zip(self.names)
            .find(|(_, name)| name.eq_ignore_ascii_case(text));
        named
            .map(|(number, _)| number)
            .or_else(|| number(text))
            .filter(|number| (self.least..=self.most).contains(number))
    }

    fn problem(&self, part: &str, hint: &str) -> String {
        format!("\"{part}\" is no {} of a cron expression: {hint}", self.name)
    }
}

/// Digits only: `+5` is no number here.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}
