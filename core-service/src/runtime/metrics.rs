//! What the runtime counts. Reading never stops anything: counters are atomics, and a snapshot is not one instant.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use engine::state::RunStatus;

/// The figures at some moment. Counters count from the start of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// Runs started here.
    pub runs_started: u64,
    /// Starts that found the run of their idempotency key.
    pub runs_replayed: u64,
    /// Starts refused because too much was under way.
    pub starts_refused: u64,
    /// Starts waiting for their organization's turn now.
    pub starts_waiting: u64,
    /// Runs that ended well.
    pub runs_succeeded: u64,
    /// Runs that failed.
    pub runs_failed: u64,
    /// Runs that were cancelled.
    pub runs_cancelled: u64,
    /// Runs claimed: woken, released by others, or taken over.
    pub runs_claimed: u64,
    /// Of those, runs whose process was lost.
    pub runs_taken_over: u64,
    /// Runs in memory now.
    pub runs_live: u64,
    /// Executions outside the engine, begun.
    pub executions_started: u64,
    /// Executions under way or waiting for their turn now.
    pub executions_pending: u64,
    /// Writes waiting for the journal now.
    pub writes_queued: u64,
    /// Transactions of the journal.
    pub commits: u64,
    /// Transactions of the journal that failed.
    pub commits_failed: u64,
    /// Writes in those transactions; divided by `commits` it is the mean batch.
    pub writes_committed: u64,
    /// The largest batch.
    pub largest_batch: u64,
    /// Microseconds spent in transactions; divided by `commits` it is the mean latency.
    pub commit_micros: u64,
    /// The longest transaction, in microseconds.
    pub longest_commit_micros: u64,
    /// Leases lost.
    pub leases_lost: u64,
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) runs_started: AtomicU64,
    pub(super) runs_replayed: AtomicU64,
    pub(super) starts_refused: AtomicU64,
    pub(super) runs_succeeded: AtomicU64,
    pub(super) runs_failed: AtomicU64,
    pub(super) runs_cancelled: AtomicU64,
    pub(super) runs_claimed: AtomicU64,
    pub(super) runs_taken_over: AtomicU64,
    pub(super) executions_started: AtomicU64,
    pub(super) executions_pending: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) commits_failed: AtomicU64,
    pub(super) writes_committed: AtomicU64,
    pub(super) largest_batch: AtomicU64,
    pub(super) commit_micros: AtomicU64,
    pub(super) longest_commit_micros: AtomicU64,
    pub(super) leases_lost: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Metrics {
    pub(super) fn finished(&self, status: RunStatus) {
        match status {
            RunStatus::Succeeded => count(&self.runs_succeeded),
            RunStatus::Failed => count(&self.runs_failed),
            RunStatus::Cancelled => count(&self.runs_cancelled),
            RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => {}
        }
    }

    pub(super) fn committed(&self, writes: usize, took: Duration) {
        let (writes, micros) = (writes as u64, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        count(&self.commits);
        self.writes_committed.fetch_add(writes, Relaxed);
        self.largest_batch.fetch_max(writes, Relaxed);
        self.commit_micros.fetch_add(micros, Relaxed);
        self.longest_commit_micros.fetch_max(micros, Relaxed);
    }

    pub(super) fn snapshot(
        &self,
        starts_waiting: usize,
        runs_live: usize,
        writes_queued: usize,
    ) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        MetricsSnapshot {
            runs_started: read(&self.runs_started),
            runs_replayed: read(&self.runs_replayed),
            starts_refused: read(&self.starts_refused),
            starts_waiting: starts_waiting as u64,
            runs_succeeded: read(&self.runs_succeeded),
            runs_failed: read(&self.runs_failed),
            runs_cancelled: read(&self.runs_cancelled),
            runs_claimed: read(&self.runs_claimed),
            runs_taken_over: read(&self.runs_taken_over),
            runs_live: runs_live as u64,
            executions_started: read(&self.executions_started),
            executions_pending: read(&self.executions_pending),
            writes_queued: writes_queued as u64,
            commits: read(&self.commits),
            commits_failed: read(&self.commits_failed),
            writes_committed: read(&self.writes_committed),
            largest_batch: read(&self.largest_batch),
            commit_micros: read(&self.commit_micros),
            longest_commit_micros: read(&self.longest_commit_micros),
            leases_lost: read(&self.leases_lost),
        }
    }
}
