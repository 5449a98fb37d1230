//! What a run's row keeps of its start: enough to drive it anywhere, and to start its next attempt.
//!
//! The trigger's output is not in it: that is in the journal's first event.

use engine::start::StartFrom;
use serde::{Deserialize, Serialize};

/// What started a run, as reports and `$run.trigger` show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// `manual`, `webhook`, `schedule`, `error`, `workflow` …
    pub kind: String,
    /// The trigger node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<i64>,
    /// The webhook that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// The run that called this one, or whose failure it reacts to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
}

/// What led to a run that no caller asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lineage {
    /// How many runs called one another to get here; 0 for one that no other run called.
    pub depth: u32,
    /// An error trigger is among what led to it: its own failure starts nothing more.
    pub by_error: bool,
    /// Who waits for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// A node of another run that waits for the end of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The other run.
    pub run_id: String,
    /// Its node.
    pub node: i64,
    /// The iteration of the node, as text; empty for the run's own scope.
    pub iteration: String,
    /// When the node began, in epoch milliseconds: another time when it runs again.
    pub started_at_ms: i64,
    /// The attempt at the node, from 1.
    pub attempt: u32,
}

impl Lineage {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The stored form of `runs.start_input`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartRecord {
    pub(super) trigger: Trigger,
    pub(super) workflow_name: String,
    pub(super) from: From,
    #[serde(default, skip_serializing_if = "Lineage::is_none")]
    pub(super) lineage: Lineage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_ms: Option<u64>,
}

/// The stored form of [`StartFrom`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum From {
    Manual,
    Kind(String),
    Trigger(i64),
    Node(i64),
}

impl From {
    pub(super) fn of(start: &StartFrom) -> Self {
        match start {
            StartFrom::Manual => Self::Manual,
            StartFrom::Kind(kind) => Self::Kind(kind.clone()),
            StartFrom::Trigger(id) => Self::Trigger(*id),
            StartFrom::Node(id) => Self::Node(*id),
        }
    }

    pub(super) fn into_start(self) -> StartFrom {
        match self {
            Self::Manual => StartFrom::Manual,
            Self::Kind(kind) => StartFrom::Kind(kind),
            Self::Trigger(id) => StartFrom::Trigger(id),
            Self::Node(id) => StartFrom::Node(id),
        }
    }
}
