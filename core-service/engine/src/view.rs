//! What a node of a run sees: the outputs above it, its input, the environment.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expression::{EvaluationError, Root, Scope};
use crate::graph::EdgeType;
use crate::scope::{Environment, NodeScope};
use crate::state::{Decision, Place, RunState};

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
        let frame = &self.state.frames[self.place.frame as usize];
        let mut found: Vec<(i64, &Arc<Value>)> = Vec::new();
        for &edge in &plan.node_at(self.place.node).incoming {
            let from = plan.edge_at(edge).from;
            let source = &frame.slots[from as usize];
            let id = plan.node_at(from).id;
            let repeated = found.last().is_some_and(|(last, _)| *last == id);
            if frame.edges[edge as usize] == Decision::Delivered && !repeated {
                found.extend(source.output.as_ref().map(|output| (id, output)));
            }
        }
        found
    }
}

/// The error of the first error edge that led here.
fn incoming_error(state: &RunState, place: Place) -> Option<Value> {
    let frame = &state.frames[place.frame as usize];
    let led_here = |edge: &&u32| {
        let is_error = state.plan.edge_at(**edge).edge_type == EdgeType::Error;
        is_error && frame.edges[**edge as usize] == Decision::Delivered
    };
    let edge = state.plan.node_at(place.node).incoming.iter().find(led_here)?;
    let source = &frame.slots[state.plan.edge_at(*edge).from as usize];
    source.output.as_ref()?.get("error").cloned()
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
        self.state
            .slot(Place {
                node: index,
                ..self.place
            })
            .output
            .as_deref()
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Run => Some(self.environment.run()),
            Root::Workflow => Some(self.environment.workflow()),
            Root::Item => None,
            Root::Error => self.error.as_ref(),
        }
    }

    fn index(&self) -> Option<i64> {
        None
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
            let slot = self.state.slot(Place { node, ..self.place });
            slot.output
                .as_ref()
                .map(|output| (plan.node_at(node).id, Arc::clone(output)))
        };
        plan.ancestors(self.place.node).filter_map(output).collect()
    }
}
