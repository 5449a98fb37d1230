//! Starting runs.

use engine::start::Start;
use engine::state::RunState;

use super::plans::GraphRef;
use super::record::Trigger;
use crate::store::IdempotencyKey;

/// A run to start.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The organization it is for.
    pub organization_id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// The workflow's name, for `$workflow.name`.
    pub workflow_name: String,
    /// The graph it follows.
    pub graph: GraphRef,
    /// The deployed version it runs; absent for a draft.
    pub version_no: Option<i64>,
    /// Where it begins and with what. `timeout_ms` is the workflow's execution time-out.
    pub start: Start,
    /// What started it.
    pub trigger: Trigger,
    /// Makes a repeated start find the first run.
    pub idempotency: Option<IdempotencyKey>,
    /// The user who started it.
    pub created_by: Option<String>,
    /// The organization has limited credits: the start holds one.
    pub metered: bool,
}

/// A start that is durable.
pub struct Started {
    /// The run; when `replayed`, the one that the first such request started.
    pub run_id: String,
    /// The idempotency key was used before, by the same request.
    pub replayed: bool,
    /// The whole run, when it ended in its first step: see [`RunState::finished`], [`RunState::last_output`].
    pub ended: Option<RunState>,
}
