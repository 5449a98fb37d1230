//! What a node of a run sees: the outputs above it, its input, the environment.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expression::{EvaluationError, Root, Scope};
use crate::graph::EdgeType;
use crate::plan::PlanEdge;
use crate::scope::{Environment, NodeScope};
use crate::state::{Decision, Item, Place, RunState};

/// The scope of a node in a run.
pub(crate) struct NodeView<'a> {
    state: &'a RunState,
    environment: &'a dyn Environment,
    place: Place,
    now_ms: i64,
    /// What the node's own edges see as its output, which is not part of the state yet.
    own: Option<&'a Value>,
    error: Option<Value>,
}

impl<'a> NodeView<'a> {
    pub(crate) fn new(
        state: &'a RunState,
        environment: &'a dyn Environment,
        place: Place,
        now_ms: i64,
    ) -> Self {
        let error = incoming_error(state, place);
        Self {
            state,
            environment,
            place,
            now_ms,
            own: None,
            error,
        }
    }

    pub(crate) fn with_own(mut self, own: &'a Value) -> Self {
        self.own = Some(own);
        self
    }

    /// The outputs behind the edges that delivered, each source once.
    fn delivered(&self) -> Vec<(i64, &'a Arc<Value>)> {
        let plan = &self.state.plan;
        let mut found: Vec<(i64, &Arc<Value>)> = Vec::new();
        for edge in delivered_edges(self.state, self.place) {
            let id = plan.node_at(edge.from).id;
            if found.last().is_none_or(|(last, _)| *last != id) {
                found.extend(output_in(self.state, self.place.frame, edge.from).map(|output| (id, output)));
            }
        }
        found
    }

    fn item(&self) -> Option<&'a Item> {
        self.state.frame(self.place.frame).item.as_ref()
    }

    fn item_value(&self) -> Option<&'a Value> {
        let plan = &self.state.plan;
        let scope = self.state.frame(self.place.frame).scope;
        let opener = plan.node_at(plan.scope_at(scope).opener?);
        opener.item_in(&self.item()?.output)
    }
}

/// The edges into a place that delivered, in the order of their sources.
fn delivered_edges(state: &RunState, place: Place) -> impl Iterator<Item = &PlanEdge> {
    let frame = state.frame(place.frame);
    let edges = state
        .plan
        .node_at(place.node)
        .incoming
        .iter()
        .map(|&edge| state.plan.edge_at(edge));
    edges.filter(|edge| edge.scope == frame.scope && frame.edges[edge.local as usize] == Decision::Delivered)
}

/// A node's output as seen from a frame: in it, or in one around it.
fn output_in(state: &RunState, mut frame: u32, node: u32) -> Option<&Arc<Value>> {
    let target = state.plan.node_at(node);
    loop {
        let at = state.frame(frame);
        let item = at.item.as_ref().filter(|_| target.opens == Some(at.scope));
        if let Some(item) = item {
            return Some(&item.output);
        }
        if at.scope == target.scope {
            return at.slots[target.local as usize].output.as_ref();
        }
        if frame == 0 {
            return None;
        }
        frame = at.outer;
    }
}

/// The error of the first error edge that led here.
fn incoming_error(state: &RunState, place: Place) -> Option<Value> {
    let edge = delivered_edges(state, place).find(|edge| edge.edge_type == EdgeType::Error)?;
    output_in(state, place.frame, edge.from)?.get("error").cloned()
}

impl Scope for NodeView<'_> {
    fn node(&self, id: i64) -> Option<&Value> {
        let index = self.state.plan.index_of(id)?;
        if index == self.place.node {
            return self.own;
        }
        // Only what is above: what another branch has done by now is a matter of timing.
        if !self.state.plan.is_above(index, self.place.node) {
            return None;
        }
        output_in(self.state, self.place.frame, index).map(Arc::as_ref)
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Run => Some(self.environment.run()),
            Root::Workflow => Some(self.environment.workflow()),
            Root::Item => self.item_value(),
            Root::Error => self.error.as_ref(),
        }
    }

    fn index(&self) -> Option<i64> {
        self.item().map(|item| i64::from(item.index))
    }

    fn now(&self) -> i64 {
        self.now_ms
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.environment.variable(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        self.environment.call_custom(name, arguments)
    }
}

impl NodeScope for NodeView<'_> {
    fn input(&self) -> Arc<Value> {
        match self.delivered().as_slice() {
            [] => Arc::new(Value::Object(Map::new())),
            [(_, only)] => Arc::clone(only),
            several => {
                let by_id = several
                    .iter()
                    .map(|(id, output)| (id.to_string(), Value::clone(output)));
                Arc::new(Value::Object(by_id.collect()))
            }
        }
    }

    fn ancestors(&self) -> Vec<(i64, Arc<Value>)> {
        let plan = &self.state.plan;
        let output = |node: u32| {
            output_in(self.state, self.place.frame, node)
                .map(|output| (plan.node_at(node).id, Arc::clone(output)))
        };
        plan.ancestors(self.place.node).filter_map(output).collect()
    }
}
