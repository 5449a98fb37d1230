//! What the workers count, from the start of the process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The figures at some moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TriggerFigures {
    /// Instants of schedules that started a run.
    pub ticks_fired: u64,
    /// Instants left out because an earlier run went on.
    pub ticks_skipped: u64,
    /// Instants that were noticed too late.
    pub ticks_missed: u64,
    /// Instants whose run was refused: the bill, the plan, the credits, or a graph that cannot start.
    pub ticks_refused: u64,
    /// Runs that error triggers started.
    pub errors_fired: u64,
    /// Runs of error triggers that were refused.
    pub errors_refused: u64,
    /// Times that triggers asked a service for its items.
    pub polls_asked: u64,
    /// Times that a service did not answer as its app expects.
    pub polls_failed: u64,
    /// Times that new items may have been missed.
    pub polls_incomplete: u64,
    /// New items that started a run.
    pub items_fired: u64,
    /// New items whose run was refused.
    pub items_refused: u64,
    /// Services that were told that they should call.
    pub services_attached: u64,
    /// Services that were told that they should call no longer.
    pub services_detached: u64,
    /// Times that a service could not be told.
    pub services_failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) ticks_fired: AtomicU64,
    pub(super) ticks_skipped: AtomicU64,
    pub(super) ticks_missed: AtomicU64,
    pub(super) ticks_refused: AtomicU64,
    pub(super) errors_fired: AtomicU64,
    pub(super) errors_refused: AtomicU64,
    pub(super) polls_asked: AtomicU64,
    pub(super) polls_failed: AtomicU64,
    pub(super) polls_incomplete: AtomicU64,
    pub(super) items_fired: AtomicU64,
    pub(super) items_refused: AtomicU64,
    pub(super) services_attached: AtomicU64,
    pub(super) services_detached: AtomicU64,
    pub(super) services_failed: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Relaxed);
}

impl Counters {
    pub(super) fn read(&self) -> TriggerFigures {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        TriggerFigures {
            ticks_fired: read(&self.ticks_fired),
            ticks_skipped: read(&self.ticks_skipped),
            ticks_missed: read(&self.ticks_missed),
            ticks_refused: read(&self.ticks_refused),
            errors_fired: read(&self.errors_fired),
            errors_refused: read(&self.errors_refused),
            polls_asked: read(&self.polls_asked),
            polls_failed: read(&self.polls_failed),
            polls_incomplete: read(&self.polls_incomplete),
            items_fired: read(&self.items_fired),
            items_refused: read(&self.items_refused),
            services_attached: read(&self.services_attached),
            services_detached: read(&self.services_detached),
            services_failed: read(&self.services_failed),
        }
    }
}
