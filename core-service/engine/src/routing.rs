//! Which edges of a node are taken.

use crate::expression::{EvaluationError, Scope};
use crate::graph::EdgeType;
use crate::kind::ConditionMode;
use crate::plan::{Plan, PlanEdge, PlanNode};
use crate::scope::ErrorScope;

/// Chooses among the outgoing edges of one node. What it returns are positions in [`PlanNode::outgoing`].
pub(crate) struct Router<'a> {
    plan: &'a Plan,
    node: &'a PlanNode,
}

impl<'a> Router<'a> {
    pub(crate) fn new(plan: &'a Plan, node: &'a PlanNode) -> Self {
        Self { plan, node }
    }

    /// The node completed: its normal edges, else its fallback.
    pub(crate) fn completed(
        &self,
        scope: &dyn Scope,
        mode: ConditionMode,
    ) -> Result<Vec<u32>, EvaluationError> {
        self.onward(mode, |edge| matches(edge, scope))
    }

    /// The node failed and goes on all the same. A filter that cannot be evaluated does not hold.
    pub(crate) fn continued(&self, scope: &dyn Scope) -> Vec<u32> {
        let holds = |edge: &PlanEdge| Ok(matches(edge, scope).unwrap_or(false));
        self.onward(ConditionMode::All, holds).unwrap_or_default()
    }

    /// The node failed: its error edges. A filter that cannot be evaluated does not hold.
    pub(crate) fn failed(&self, scope: &dyn Scope, error: &serde_json::Value) -> Vec<u32> {
        let scope = ErrorScope { outer: scope, error };
        let holds = |(_, edge): &(u32, &PlanEdge)| matches(edge, &scope).unwrap_or(false);
        self.edges(EdgeType::Error)
            .filter(holds)
            .map(|(at, _)| at)
            .collect()
    }

    fn onward(
        &self,
        mode: ConditionMode,
        holds: impl Fn(&PlanEdge) -> Result<bool, EvaluationError>,
    ) -> Result<Vec<u32>, EvaluationError> {
        let mut taken = Vec::new();
        for edge_type in [EdgeType::Normal, EdgeType::Fallback] {
            for (at, edge) in self.edges(edge_type) {
                if holds(edge)? {
                    taken.push(at);
                    if mode == ConditionMode::First {
                        return Ok(taken);
                    }
                }
            }
            if !taken.is_empty() {
                break;
            }
        }
        Ok(taken)
    }

    fn edges(&self, edge_type: EdgeType) -> impl Iterator<Item = (u32, &'a PlanEdge)> {
        let plan = self.plan;
        let outgoing = (0_u32..)
            .zip(&self.node.outgoing)
            .map(move |(at, &edge)| (at, plan.edge_at(edge)));
        outgoing.filter(move |(_, edge)| edge.edge_type == edge_type)
    }
}

fn matches(edge: &PlanEdge, scope: &dyn Scope) -> Result<bool, EvaluationError> {
    edge.filter
        .as_ref()
        .map_or(Ok(true), |filter| filter.matches(scope))
}
