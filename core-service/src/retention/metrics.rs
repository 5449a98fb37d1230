//! What the worker counts, from the start of the process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::store::Swept;

/// The figures at some moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionFigures {
    /// Runs deleted.
    pub runs: u64,
    /// Entries of the activity feed deleted.
    pub entries: u64,
    /// Transactions that deleted something.
    pub transactions: u64,
    /// Microseconds spent in those transactions.
    pub micros: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) runs: AtomicU64,
    pub(super) entries: AtomicU64,
    transactions: AtomicU64,
    micros: AtomicU64,
}

pub(super) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Relaxed);
}

impl Counters {
    pub(super) fn count(&self, swept: &Swept) {
        add(&self.transactions, 1);
        add(
            &self.micros,
            u64::try_from(swept.took.as_micros()).unwrap_or(u64::MAX),
        );
    }

    pub(super) fn read(&self) -> RetentionFigures {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        RetentionFigures {
            runs: read(&self.runs),
            entries: read(&self.entries),
            transactions: read(&self.transactions),
            micros: read(&self.micros),
        }
    }
}
