//! Wall-clock rules: which local time comes next. Time zones are not known here.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

/// How far ahead a day is looked for: a 29 February that is a Sunday can be forty years off.
const MOST_DAYS: usize = 41 * 366;

/// Times of the day, on the days of a rule.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    pub(super) days: Days,
    /// Ascending, each once.
    pub(super) times: Vec<Time>,
}

/// Which days.
#[derive(Clone, Debug)]
pub(super) enum Days {
    Every,
    /// Monday first.
    Weekdays([bool; 7]),
    /// The days of the month from 1, and whether its last day counts.
    OfMonth {
        days: Set,
        last: bool,
    },
    Cron {
        months: Set,
        of_month: Set,
        /// 0 is Sunday.
        weekdays: Set,
        /// Whether one of the two sets of days is enough.
        either: bool,
    },
}

/// Small numbers, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    /// The number must be below 64.
    pub(super) fn insert(&mut self, number: u32) {
        self.0 |= 1_u64.checked_shl(number).unwrap_or(0);
    }

    pub(super) fn contains(self, number: u32) -> bool {
        1_u64.checked_shl(number).is_some_and(|bit| self.0 & bit != 0)
    }
}

impl Days {
    fn contains(&self, date: Date) -> bool {
        let day = u32::try_from(date.day()).unwrap_or(0);
        match self {
            Self::Every => true,
            Self::Weekdays(wanted) => {
                let index = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or(0);
                wanted.get(index).copied().unwrap_or(false)
            }
            Self::OfMonth { days, last } => {
                days.contains(day) || (*last && date.day() == date.days_in_month())
            }
            Self::Cron {
                months,
                of_month,
                weekdays,
                either,
            } => {
                let weekday = u32::try_from(date.weekday().to_sunday_zero_offset()).unwrap_or(0);
                let (fits_month, fits_week) = (of_month.contains(day), weekdays.contains(weekday));
                let is_day = if *either {
                    fits_month || fits_week
                } else {
                    fits_month && fits_week
                };
                is_day && months.contains(u32::try_from(date.month()).unwrap_or(0))
            }
        }
    }
}

impl Calendar {
    /// The next local time strictly after one.
    pub(super) fn next_after(&self, local: DateTime) -> Option<DateTime> {
        if self.days.contains(local.date()) {
            let later = self.times.partition_point(|time| *time <= local.time());
            if let Some(time) = self.times.get(later) {
                return Some(DateTime::from_parts(local.date(), *time));
            }
        }
        let first = *self.times.first()?;
        let mut date = local.date();
        for _ in 0..MOST_DAYS {
            date = date.tomorrow().ok()?;
            if self.days.contains(date) {
                return Some(DateTime::from_parts(date, first));
            }
        }
        None
    }
}

/// Every so many days or months.
#[derive(Clone, Copy, Debug)]
pub(super) enum Steps {
    Days(i64),
    Months(i64),
}

impl Steps {
    /// The next local time strictly after one, counted from the first.
    pub(super) fn next_after(self, first: DateTime, local: DateTime) -> Option<DateTime> {
        if local < first {
            return Some(first);
        }
        let passed = match self {
            Self::Days(every) => {
                let days = first.date().until(local.date()).ok()?.get_days();
                i64::from(days) / every
            }
            Self::Months(every) => {
                let months = |date: DateTime| i64::from(date.year()) * 12 + i64::from(date.month());
                (months(local) - months(first)) / every
            }
        };
        // The step of this very day or month may be over or still to come.
        let mut step = passed;
        loop {
            let candidate = self.at(first, step)?;
            if candidate > local {
                return Some(candidate);
            }
            step = step.checked_add(1)?;
        }
    }

    /// A day that a month lacks becomes its last; counted from the first, so that it comes back afterwards.
    fn at(self, first: DateTime, step: i64) -> Option<DateTime> {
        let span = match self {
            Self::Days(every) => Span::new().try_days(step.checked_mul(every)?),
            Self::Months(every) => Span::new().try_months(step.checked_mul(every)?),
        };
        first.checked_add(span.ok()?).ok()
    }
}
