//! What a commit takes and answers: plain records, filled in by the runtime.

use super::activity::Actor;
use super::ending::NewEnding;
use super::human_request::{HumanRequestPlace, NewHumanRequest};
use super::payload::Payload;
use super::process::Lease;
use super::run::RunStatus;
use super::schedule::Tick;
use super::timer::Timer;

/// What many runs have to say. An item is a whole: all of it is committed or none.
#[derive(Debug, Clone, Default)]
pub struct RunBatch {
    /// Runs to start.
    pub creates: Vec<NewRun>,
    /// What happened in runs that this process drives; at most one item a run.
    pub changes: Vec<RunChange>,
    /// Large outputs that the segments refer to; stored when what their run has to say is.
    pub payloads: Vec<Payload>,
}

/// Who drives a run after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// The process that commits.
    This,
    /// Nobody; any process may claim it at once.
    Anyone,
    /// Nobody, until one of its timers is due or a signal arrives. Finished runs too.
    Nobody,
}

/// A run to start.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// `run_`, new.
    pub id: String,
    /// The organization it belongs to.
    pub organization_id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// The deployed version it runs; null for a draft.
    pub version_no: Option<i64>,
    /// The frozen graph it runs; already stored.
    pub graph_hash: String,
    /// What it was started with.
    pub start_input: Vec<u8>,
    /// The user who started it.
    pub created_by: Option<String>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Where it stands after its first segments, which may already be its end.
    pub summary: RunSummary,
    /// The organization has limited credits: a start holds one.
    pub metered: bool,
    /// Makes a repeated start find this run.
    pub idempotency: Option<IdempotencyKey>,
    /// The instant of the workflow's schedule that it is for.
    pub tick: Option<Tick>,
    /// The run whose node waits for its end. One that has ended itself starts none.
    pub parent_run_id: Option<String>,
    /// The beginning of its journal.
    pub segments: Vec<Segment>,
    /// What it already waits for.
    pub timers: Vec<Timer>,
    /// Its end, when that is among its first segments and somebody has to be told.
    pub ending: Option<NewEnding>,
    /// What the activity feed tells of the start; nothing when no member asked for it.
    pub activity: Vec<RunActivity>,
}

/// What the activity feed tells of a write to a run. It is written with the write.
#[derive(Debug, Clone)]
pub struct RunActivity {
    /// The run's organization.
    pub organization_id: String,
    /// Who asked for it.
    pub actor: Actor,
    /// `run.<verb>`
    pub action: &'static str,
}

/// The `Idempotency-Key` of a start. It is looked for within the run's organization and workflow.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// As the caller gave it.
    pub key: String,
    /// Tells a repeated request from another one.
    pub body_hash: Vec<u8>,
    /// Epoch milliseconds; afterwards the key may start a new run.
    pub expires_at: i64,
}

/// A piece of a run's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The attempt it belongs to, from 1.
    pub attempt: i64,
    /// Its place within the attempt.
    pub seq: i64,
    /// The events, as the engine wrote them.
    pub events: Vec<u8>,
}

/// A run's summary as lists show it, all of it replaced.
#[derive(Debug, Clone)]
pub struct RunSummary {
    /// Where it stands.
    pub status: RunStatus,
    /// The current attempt.
    pub attempt_number: i64,
    /// Epoch milliseconds; set exactly when the status is terminal.
    pub finished_at: Option<i64>,
    /// What made it fail.
    pub error: Option<String>,
    /// Over all attempts.
    pub credits_used: i64,
    /// Who drives it from now on. A finished run has no driver whatever this says.
    pub driver: Driver,
}

/// What happened in one run that this process drives.
#[derive(Debug, Clone, Default)]
pub struct RunChange {
    /// The run.
    pub run_id: String,
    /// What its journal gains.
    pub segments: Vec<Segment>,
    /// Its new summary, when that changed.
    pub summary: Option<RunSummary>,
    /// It begins the run, which had ended, again: billed like a start, and refused like one.
    pub restarts: bool,
    /// The run is metered (see [`super::Run`]), from now on when this restarts it; its credits are then settled.
    pub metered: bool,
    /// Credits that these segments cost.
    pub credits_spent: i64,
    /// Timers to set or move.
    pub set_timers: Vec<Timer>,
    /// Keys of timers to forget.
    pub clear_timers: Vec<String>,
    /// Signals that these segments act upon.
    pub signals_done: Vec<SignalDone>,
    /// Its end, when these segments end it and somebody has to be told.
    pub ending: Option<NewEnding>,
    /// What the activity feed tells of it.
    pub activity: Vec<RunActivity>,
    /// What the run asks people from now on.
    pub requests_opened: Vec<NewHumanRequest>,
    /// Nodes that ask no longer, as far as they did.
    pub requests_closed: Vec<HumanRequestPlace>,
    /// No node of the run asks any longer.
    pub all_requests_closed: bool,
}

/// A signal that was acted upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalDone {
    /// The signal.
    pub id: String,
    /// What came of it, for whoever sent it, as the runtime wrote it.
    pub outcome: Vec<u8>,
}

/// What came of a batch, in the order of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchOutcome {
    /// Of [`RunBatch::creates`].
    pub creates: Vec<CreateOutcome>,
    /// Of [`RunBatch::changes`].
    pub changes: Vec<ChangeOutcome>,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is durable.
    Written,
    /// It restarts a run, and no credit is left for it; nothing was written and the run stays ended.
    OutOfCredits,
    /// This process does not drive the run any more, perhaps because the same change was written before; nothing was
    /// written.
    NotDriven,
}

/// What came of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The run is durable.
    Created,
    /// The same request started this run before; the new one was not written.
    Replayed {
        /// The first run.
        run_id: String,
    },
    /// Another request used the same key; nothing was written.
    KeyReused,
    /// No credit is left beside those that runs under way hold; the run was not written. An instant of a schedule is
    /// dealt with all the same.
    OutOfCredits,
    /// The schedule does not stand at the run's instant any more; nothing was written.
    NotDue,
    /// The instant is left out because a run of an earlier one goes on; only that was written.
    StillRunning,
    /// The run whose node would wait for it has ended; nothing was written.
    ParentEnded,
}

impl RunBatch {
    /// What comes of it when nothing is refused.
    pub(super) fn accepted(&self) -> BatchOutcome {
        BatchOutcome {
            creates: vec![CreateOutcome::Created; self.creates.len()],
            changes: vec![ChangeOutcome::Written; self.changes.len()],
        }
    }
}

impl RunSummary {
    pub(super) fn process_id<'a>(&self, lease: &'a Lease) -> Option<&'a str> {
        (self.finished_at.is_none() && self.driver == Driver::This).then_some(lease.process_id.as_str())
    }

    pub(super) fn parked(&self) -> bool {
        self.finished_at.is_none() && self.driver == Driver::Nobody
    }
}
