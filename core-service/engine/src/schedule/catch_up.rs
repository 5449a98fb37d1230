//! What becomes of an instant that has come: it runs, or it is too late for that.

use super::Schedule;

/// An instant that is no later than this is run whatever the catch-up window: a server that is up may take as long, for
/// one when another one dies on it. In milliseconds.
const PUNCTUAL_MS: i64 = 10_000;

/// Instants counted one by one when many were missed; what is beyond them is passed over in one go.
const MOST_COUNTED: u64 = 100_000;

/// What is to be done with the instant that a schedule stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has not come.
    Wait,
    /// Run it.
    Run {
        /// The instant after it.
        next: Option<i64>,
    },
    /// It is too late for it, and for some after it.
    Missed {
        /// How many are too late, at least.
        count: u64,
        /// The last of them.
        last: i64,
        /// The first instant that is not; it may have come already.
        next: Option<i64>,
    },
}

impl Schedule {
    /// What is to be done at `now` with an instant of this schedule. All in epoch milliseconds; `anchor` as in
    /// [`Schedule::next_after`].
    ///
    /// Instants within the catch-up window are run one after the other, however many they are.
    pub fn turn(&self, instant: i64, anchor: i64, now: i64) -> Turn {
        if instant > now {
            return Turn::Wait;
        }
        let window = self.catchup_window_ms().max(PUNCTUAL_MS);
        let oldest = now.saturating_sub(window);
        if instant >= oldest {
            return Turn::Run {
                next: self.next_after(instant, anchor),
            };
        }
        let (mut count, mut last) = (1, instant);
        loop {
            let next = self.next_after(last, anchor);
            match next {
                Some(late) if late < oldest && count < MOST_COUNTED => {
                    count += 1;
                    last = late;
                }
                Some(late) if late < oldest => {
                    let last = oldest - 1;
                    let next = self.next_after(last, anchor);
                    return Turn::Missed { count, last, next };
                }
                next => return Turn::Missed { count, last, next },
            }
        }
    }
}
