//! Recurrences: from what a user wrote ([`Recurrence`]) to the next instant ([`Schedule::next_after`]), and to what
//! becomes of an instant that has come ([`Schedule::turn`]).
//!
//! Minutes and hours count elapsed time. Everything else is wall clock in the recurrence's time zone: a local
//! time that summer time skips runs at the instant shifted by as much as is skipped (RFC 5545), one that repeats
//! runs at its first occurrence only. An interval of months that starts on a day which a month lacks runs on that
//! month's last day; `monthly` and `cron` name days of the month, and a month without them is left out.
//!
//! Deliberately absent: the clock and who fires. An instant is computed from an instant.

mod calendar;
mod catch_up;
mod cron;
mod recurrence;

pub use catch_up::Turn;
pub use recurrence::{Problem, Recurrence};

use calendar::{Calendar, Steps};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A recurrence that was checked, ready to be asked.
#[derive(Clone, Debug)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
    /// In epoch milliseconds.
    start_at: Option<i64>,
    /// In epoch milliseconds, inclusive.
    end_at: Option<i64>,
    skip_if_running: bool,
    catchup_window_ms: i64,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Every so many milliseconds of elapsed time.
    Elapsed(i64),
    /// Every so many days or months of wall clock.
    Steps(Steps),
    /// Times of the day on some days.
    Calendar(Calendar),
    /// At one instant, in epoch milliseconds.
    Once(i64),
}

/// Longer than any jump of local time that a time zone has made (a whole day, in Samoa).
const LONGEST_JUMP: SignedDuration = SignedDuration::from_hours(25);

impl Schedule {
    /// The next instant strictly after one, or `None` when there is none. All in epoch milliseconds.
    ///
    /// `anchor` is the moment at which the recurrence was set: an interval without `startAt` counts from it, and
    /// fires first one interval later.
    pub fn next_after(&self, instant: i64, anchor: i64) -> Option<i64> {
        let start = self.start_at.unwrap_or(anchor);
        // Nothing fires before the start, and at the start itself only when it was named.
        let earliest = if self.start_at.is_some() {
            start.checked_sub(1)?
        } else {
            start
        };
        let after = instant.max(earliest);
        let next = match &self.rule {
            Rule::Once(at) => {
                Some(*at).filter(|at| *at > instant && self.start_at.is_none_or(|start| *at >= start))
            }
            Rule::Elapsed(period) => next_elapsed(*period, start, after),
            Rule::Steps(steps) => {
                let first = Timestamp::from_millisecond(start)
                    .ok()?
                    .to_zoned(self.zone.clone())
                    .datetime();
                self.next_local(after, |local| steps.next_after(first, local))
            }
            Rule::Calendar(calendar) => self.next_local(after, |local| calendar.next_after(local)),
        };
        next.filter(|next| self.end_at.is_none_or(|end| *next <= end))
    }

    /// Whether an instant is left out while a run that an earlier one started is still going.
    pub fn skip_if_running(&self) -> bool {
        self.skip_if_running
    }

    /// How late an instant may still be run, in milliseconds.
    pub fn catchup_window_ms(&self) -> i64 {
        self.catchup_window_ms
    }

    /// The first instant after one, of the local times that `next` lists in order.
    fn next_local(&self, after: i64, next: impl Fn(DateTime) -> Option<DateTime>) -> Option<i64> {
        let instant = Timestamp::from_millisecond(after).ok()?;
        let mut local = self.zone.to_datetime(instant);
        // After a jump forward, local times that were skipped may have been shifted beyond this instant.
        let before = instant.checked_sub(LONGEST_JUMP).ok()?;
        if self.zone.to_offset(before) != self.zone.to_offset(instant) {
            local = local.checked_sub(LONGEST_JUMP).ok()?;
        }
        let mut best: Option<(Timestamp, DateTime)> = None;
        while let Some(candidate) = next(local) {
            if best.is_some_and(|(_, landed)| candidate > landed) {
                break;
            }
            let Ok(shifted) = candidate.to_zoned(self.zone.clone()) else {
                break;
            };
            let (at, landed) = (shifted.timestamp(), shifted.datetime());
            if at > instant && best.is_none_or(|(earliest, _)| at < earliest) {
                best = Some((at, landed));
            }
            // A time that was not skipped is before all later ones.
            if at > instant && landed == candidate {
                break;
            }
            local = candidate;
        }
        best.map(|(at, _)| at.as_millisecond())
    }
}

fn next_elapsed(period: i64, start: i64, after: i64) -> Option<i64> {
    if after < start {
        return Some(start);
    }
    let periods = after.checked_sub(start)?.checked_div(period)?.checked_add(1)?;
    start.checked_add(periods.checked_mul(period)?)
}
