//! What people are shown of a run.

use std::sync::Arc;

use serde_json::Value;

use crate::event::{Failure, LogLine, NodeKey};
use crate::iteration::Iteration;
use crate::plan::PlanNode;
use crate::state::{Decision, NodeStatus, Place, RunState};

/// A node of a run that was reached or skipped.
#[derive(Clone)]
pub struct NodeReport<'a> {
    /// The node of the plan: its id, label and kind.
    pub node: &'a PlanNode,
    /// The iteration it ran in.
    pub iteration: &'a Iteration,
    /// Its status.
    pub status: NodeStatus,
    /// Attempts begun.
    pub attempt: u32,
    /// Epoch milliseconds.
    pub started_at_ms: Option<i64>,
    /// Epoch milliseconds.
    pub finished_at_ms: Option<i64>,
    /// Why it failed, or why its last attempt did.
    pub failure: Option<&'a Failure>,
    /// Its output; of a failed node, when its failure is handled: `{error: {code, message}}`.
    pub output: Option<&'a Arc<Value>>,
    /// What its last attempt wrote.
    pub log: &'a [LogLine],
    /// What it cost.
    pub credits_used: u32,
}

impl RunState {
    /// The nodes that were reached or skipped, in order of start.
    pub fn nodes(&self) -> impl Iterator<Item = NodeReport<'_>> {
        self.order.iter().map(|place| self.report(*place))
    }

    /// A node that was reached or skipped.
    pub fn reached(&self, key: &NodeKey) -> Option<NodeReport<'_>> {
        self.place(key).map(|place| self.report(place))
    }

    /// The ids of the edges taken in the run's own scope, in the graph's order.
    pub fn edges_taken(&self) -> impl Iterator<Item = &str> {
        let frame = self.frame(0);
        let own = self.plan.edges().iter().filter(|edge| edge.scope == 0);
        own.filter(|edge| frame.edges[edge.local as usize] == Decision::Delivered)
            .map(|edge| edge.id.as_str())
    }

    /// The output of the node that finished last.
    pub fn last_output(&self) -> Option<&Arc<Value>> {
        let done = self
            .nodes()
            .filter(|node| node.output.is_some() && node.finished_at_ms.is_some());
        // Of those that finished at the same instant, the one that began last.
        done.max_by_key(|node| node.finished_at_ms)
            .and_then(|node| node.output)
    }

    fn report(&self, place: Place) -> NodeReport<'_> {
        let slot = self.slot(place);
        NodeReport {
            node: self.plan.node_at(place.node),
            iteration: &self.frame(place.frame).iteration,
            status: slot.status,
            attempt: slot.attempt,
            started_at_ms: slot.started_at_ms,
            finished_at_ms: slot.finished_at_ms,
            failure: slot.failure.as_ref(),
            output: slot.output.as_ref(),
            log: slot.log.as_deref().unwrap_or_default(),
            credits_used: slot.credits,
        }
    }
}
