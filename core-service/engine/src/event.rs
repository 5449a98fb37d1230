//! The events of a run: everything the engine decided, and all that its state is made of.
//!
//! [`crate::journal`] gives them their stored form. Nothing in an event is ever computed again: replay only reads.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::iteration::Iteration;

/// One event and when it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Epoch milliseconds.
    pub at_ms: i64,
    /// What happened.
    pub body: EventBody,
}

/// A node in one iteration of its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKey {
    /// The node's id.
    pub node: i64,
    /// The iteration it runs in.
    pub iteration: Iteration,
}

impl NodeKey {
    /// A node in the run's own scope.
    pub fn root(node: i64) -> Self {
        Self {
            node,
            iteration: Iteration::ROOT,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    /// The run's first event.
    RunStarted(RunStarted),
    /// A node is about to be executed outside the engine.
    NodeStarted { key: NodeKey },
    /// A node waits for an instant, or for an answer when `due_at_ms` is absent.
    NodeWaiting { key: NodeKey, due_at_ms: Option<i64> },
    /// A node completed. `taken` holds positions in its outgoing edges.
    NodeCompleted {
        key: NodeKey,
        output: Arc<Value>,
        taken: Vec<u32>,
    },
    /// A node failed for good. Not `handled`: the failure fails the run.
    NodeFailed {
        key: NodeKey,
        failure: Failure,
        taken: Vec<u32>,
        handled: bool,
    },
    /// An attempt at a node failed, the next is due later.
    NodeRetrying {
        key: NodeKey,
        failure: Failure,
        due_at_ms: i64,
    },
    /// Every edge into the node is dead.
    NodeSkipped { key: NodeKey },
    /// The node was in flight and is given up.
    NodeCancelled { key: NodeKey },
    /// An attempt at a node has written these lines; what becomes of it is the next event of the node.
    NodeLogged { key: NodeKey, lines: Arc<[LogLine]> },
    /// A failed run goes on: the node and all below it run again.
    RunResumed { node: i64 },
    /// The run is over.
    RunFinished {
        outcome: Outcome,
        failure: Option<Failure>,
    },
    /// A node opened a scope with an iteration for each item.
    ItemsOpened { key: NodeKey, items: Arc<Value> },
    /// An iteration began; `key.iteration` is the iteration itself.
    ItemStarted { key: NodeKey, taken: Vec<u32> },
    /// Nothing is left to do in an iteration.
    ItemFinished { key: NodeKey, result: ItemResult },
}

impl EventBody {
    /// The node whose status the event changes; nothing for what happens to the run or to an item of a scope.
    pub fn node(&self) -> Option<&NodeKey> {
        match self {
            Self::NodeStarted { key }
            | Self::NodeWaiting { key, .. }
            | Self::NodeCompleted { key, .. }
            | Self::NodeFailed { key, .. }
            | Self::NodeRetrying { key, .. }
            | Self::NodeSkipped { key }
            | Self::NodeCancelled { key }
            | Self::ItemsOpened { key, .. } => Some(key),
            Self::NodeLogged { .. }
            | Self::RunStarted(_)
            | Self::RunResumed { .. }
            | Self::RunFinished { .. }
            | Self::ItemStarted { .. }
            | Self::ItemFinished { .. } => None,
        }
    }
}

/// How a run began.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStarted {
    /// The run's attempt, from 1.
    pub attempt: u32,
    /// Ids of the nodes the run starts at.
    pub start_nodes: Vec<i64>,
    /// The output of the trigger among them.
    pub input: Arc<Value>,
    /// Outputs of nodes that do not run, by id.
    pub seeds: Vec<(i64, Arc<Value>)>,
    /// Milliseconds the run may take, waiting not counted.
    pub timeout_ms: Option<u64>,
}

/// What came of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemResult {
    /// What the aggregator collects.
    Output(Arc<Value>),
    /// No edge into the aggregator was taken, or there is no aggregator.
    Nothing,
    /// A node failed and the other iterations go on.
    Failed {
        /// The node's id.
        node: i64,
        /// Why.
        failure: Failure,
    },
}

/// Why a node or a run failed: a code of the contract's table and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Such as `EXPRESSION_ERROR`.
    pub code: String,
    /// One sentence for people.
    pub message: String,
}

/// A line that a node wrote while it was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// The text.
    pub message: String,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever looks for a mistake.
    Debug,
    /// For whoever wants to know.
    #[default]
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
}

impl LogLevel {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The level with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Debug, Self::Info, Self::Warn, Self::Error]
            .into_iter()
            .find(|level| level.as_str() == word)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was left to do and no failure was unhandled.
    Succeeded,
    /// A failure was not handled, or the run was stopped as failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}
