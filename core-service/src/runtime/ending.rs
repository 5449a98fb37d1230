//! What there is to tell of the end of a run, and to whom.
//!
//! It is written in the commit of the end. Most ends are nobody's business: those of runs that succeed, that no other
//! run waits for, and whose nodes wait for none.

use engine::event::{Event, EventBody, Failure, Outcome};
use engine::failure::NodeError;
use engine::graph::NATIVE_APP;
use engine::report::NodeReport;
use engine::state::{Finished, NodeStatus, RunState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::RunContext;
use super::record::Lineage;
use super::settle::RowToFail;
use crate::clock;
use crate::nodes::RunWorkflow;
use crate::store::NewEnding;

/// The end of a run, as the database keeps it until everybody has been told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The run's workflow.
    pub workflow_id: String,
    /// What led to the run.
    pub lineage: Lineage,
    /// How it ended.
    pub end: End,
    /// When; ends that were written before that was told have the largest there is.
    #[serde(default = "long_after")]
    pub ended_at_ms: i64,
    /// Runs of other workflows may be under way that its nodes waited for.
    pub has_children: bool,
}

const fn long_after() -> i64 {
    i64::MAX
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum End {
    /// Well.
    Succeeded {
        /// The output of the node that finished last; null when nobody waits for it.
        output: Value,
    },
    /// With a failure.
    Failed {
        /// The node that failed; absent when the run failed as a whole.
        node_id: Option<i64>,
        /// Why.
        code: String,
        /// One sentence.
        message: String,
    },
    /// By somebody.
    Cancelled,
}

impl End {
    /// The end of a run whose state shows one.
    #[must_use]
    pub fn of(state: &RunState) -> Option<Self> {
        let Finished { outcome, failure, .. } = state.finished()?;
        Some(match outcome {
            Outcome::Succeeded => Self::Succeeded {
                output: state
                    .last_output()
                    .map_or(Value::Null, |output| (**output).clone()),
            },
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed => {
                let failed = |node: &NodeReport<'_>| {
                    node.status == NodeStatus::Failed && node.failure == failure.as_ref()
                };
                let Failure { code, message } = failure.clone().unwrap_or_else(|| Failure {
                    code: String::new(),
                    message: String::new(),
                });
                Self::Failed {
                    node_id: state.nodes().find(failed).map(|node| node.node.id),
                    code,
                    message,
                }
            }
        })
    }
}

/// The row that tells of a run's end, when these events hold it and somebody has to be told.
pub(super) fn ending(
    context: &RunContext,
    state: &RunState,
    events: &[Event],
    seq: i64,
) -> Option<NewEnding> {
    let finished = state.finished()?;
    let (outcome, ended_at_ms) = (finished.outcome, finished.at_ms);
    let lineage = &context.record.lineage;
    let is_awaited = lineage.parent.is_some();
    let is_failure = outcome == Outcome::Failed && !lineage.by_error;
    if !(is_awaited || is_failure || context.calls_workflows) {
        return None;
    }
    let is_end = |event: &Event| matches!(event.body, EventBody::RunFinished { .. });
    let has_children = context.calls_workflows && state.nodes().any(|node| was_calling(&node));
    if !events.iter().any(is_end) || !(is_awaited || is_failure || has_children) {
        return None;
    }
    let end = match End::of(state)? {
        End::Succeeded { .. } if !is_awaited => End::Succeeded { output: Value::Null },
        end => end,
    };
    let notice = Notice {
        workflow_id: context.workflow_id.to_string(),
        lineage: lineage.clone(),
        end,
        ended_at_ms,
        has_children,
    };
    Some(NewEnding {
        attempt: i64::from(context.attempt),
        seq,
        organization_id: context.organization_id.to_string(),
        notice: serde_json::to_vec(&notice).ok()?,
        for_error_triggers: !is_awaited && !has_children,
    })
}

/// A node that stopped to wait for a run of another workflow before that had ended.
fn was_calling(node: &NodeReport<'_>) -> bool {
    let gave_up = match node.status {
        NodeStatus::Cancelled => true,
        NodeStatus::Failed => node
            .failure
            .is_some_and(|failure| failure.code == NodeError::TIMEOUT),
        _ => false,
    };
    gave_up && node.node.app_id == NATIVE_APP && node.node.module_slug == RunWorkflow::KIND
}

/// The place of an end that is in no journal.
const IN_NO_JOURNAL: i64 = -1;

/// The row that tells of the end of a run that is failed in its row alone.
pub(super) fn ending_in_row(run: &RowToFail<'_>, failure: Failure) -> Option<NewEnding> {
    let lineage = run.lineage?;
    if lineage.by_error && lineage.parent.is_none() {
        return None;
    }
    let Failure { code, message } = failure;
    let notice = Notice {
        workflow_id: run.workflow_id.to_owned(),
        lineage: lineage.clone(),
        end: End::Failed {
            node_id: None,
            code,
            message,
        },
        ended_at_ms: clock::now_ms(),
        has_children: true,
    };
    Some(NewEnding {
        attempt: run.attempt,
        seq: IN_NO_JOURNAL,
        organization_id: run.organization_id.to_owned(),
        notice: serde_json::to_vec(&notice).ok()?,
        for_error_triggers: false,
    })
}
