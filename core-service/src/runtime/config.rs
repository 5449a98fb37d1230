//! The limits of the runtime, each with its default.

use std::time::Duration;

/// How much the runtime takes on, and how patient it is.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    /// How long this process's lease lasts after each renewal (10 s). It is renewed every third of it; after two thirds
    /// without success the process stops its runs.
    pub lease: Duration,
    /// How often work is looked for when nothing announces any (1 s): the safety net under notifications.
    pub poll_interval: Duration,
    /// Most writes of one transaction (1,024).
    pub batch_writes: usize,
    /// Most bytes of journal and payloads in one transaction (16 MiB), unless a single write has more.
    pub batch_bytes: usize,
    /// Starts under way at once, until they are committed (64). Few, because a batch of the journal is as large as they
    /// let it get, and everybody waits for a batch; further ones wait for their organization's turn.
    pub starts: usize,
    /// Starts of one organization under way at once (48): the others find room without waiting.
    pub starts_per_organization: usize,
    /// The same while other organizations start runs, too (16): theirs then wait for smaller batches.
    pub starts_beside_others: usize,
    /// Starts that may wait for their turn (20,000), those of one organization as many as it leaves free; further ones
    /// are refused.
    pub waiting_starts: usize,
    /// How long a start waits for its turn (5 s); then it is refused.
    pub start_patience: Duration,
    /// Runs in memory (20,000), those of one organization as many as it leaves free: starts that would go beyond are
    /// refused. Claims wait when three quarters are there.
    pub live_runs: usize,
    /// Executions outside the engine at once (512).
    pub executions: usize,
    /// Executions of one organization at once (128).
    pub executions_per_organization: usize,
    /// A run that only waits stays in memory when it goes on within this time (5 s); else it is dropped and claimed
    /// again when it is due.
    pub keep_waiting: Duration,
    /// How long what was only computed may wait until it is written (100 ms): so much is computed again after a crash.
    pub compute_ahead: Duration,
    /// Runs claimed in one transaction (128).
    pub claim_chunk: i64,
    /// A run whose process was lost this often while it was executing is failed (3), if it was on trial the last time;
    /// three times as often if it was not.
    pub crash_limit: i64,
    /// How long a run is on trial, unless it ends or sleeps before (5 s).
    pub trial: Duration,
    /// How long a cancel waits for the process that drives the run (10 s).
    pub remote_patience: Duration,
    /// Callers who wait for what a run says (8,192), those of one organization as many as it leaves free.
    pub waiting_callers: usize,
    /// Compiled plans kept (4,096).
    pub plans: u64,
    /// How often runs that slipped through are looked for, and what nobody needs any more is deleted (60 s).
    pub tidy_interval: Duration,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            batch_writes: 1_024,
            batch_bytes: 16 << 20,
            starts: 64,
            starts_per_organization: 48,
            starts_beside_others: 16,
            waiting_starts: 20_000,
            start_patience: Duration::from_secs(5),
            live_runs: 20_000,
            executions: 512,
            executions_per_organization: 128,
            keep_waiting: Duration::from_secs(5),
            compute_ahead: Duration::from_millis(100),
            claim_chunk: 128,
            crash_limit: 3,
            trial: Duration::from_secs(5),
            remote_patience: Duration::from_secs(10),
            waiting_callers: 8_192,
            plans: 4_096,
            tidy_interval: Duration::from_secs(60),
        }
    }
}
