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
}

/// The stored form of `runs.start_input`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartRecord {
    pub(super) trigger: Trigger,
    pub(super) workflow_name: String,
    pub(super) from: From,
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
