//! Where a run starts.

use std::sync::Arc;

use serde_json::Value;

use crate::event::RunStarted;
use crate::plan::Plan;

/// How a run is to begin.
#[derive(Clone, Debug)]
pub struct Start {
    /// The run's attempt, from 1.
    pub attempt: u32,
    /// Which nodes it starts at.
    pub from: StartFrom,
    /// The trigger's output, free of secrets: it is recorded as it is.
    pub input: Arc<Value>,
    /// Outputs of nodes that do not run, by id. That of the trigger the run starts at replaces the input.
    pub seeds: Vec<(i64, Arc<Value>)>,
    /// Milliseconds the run may take, waiting not counted.
    pub timeout_ms: Option<u64>,
}

/// Which nodes a run starts at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartFrom {
    /// By hand: the manual trigger, else the first trigger, else every node without an incoming edge.
    Manual,
    /// The first trigger of this kind, else as by hand.
    Kind(String),
    /// This trigger: the one a webhook or an error is bound to.
    Trigger(i64),
    /// This node and what is below it: a scoped run. Of a node that runs once for each item, the splitter.
    Node(i64),
}

/// A run that cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The graph is empty, or every trigger in it is disabled.
    #[error("there is nothing to start: add a node, or enable a trigger")]
    NothingToStart,
    /// The node to start at does not exist.
    #[error("node {0} does not exist in the workflow")]
    UnknownNode(i64),
    /// The node is no trigger, or is disabled.
    #[error("node {0} is not an enabled trigger")]
    NotATrigger(i64),
    /// The run has started already.
    #[error("the run has started already")]
    Started,
}

impl Start {
    /// A run by hand with an empty input.
    pub fn manual() -> Self {
        Self {
            attempt: 1,
            from: StartFrom::Manual,
            input: Arc::new(Value::Object(serde_json::Map::new())),
            seeds: Vec::new(),
            timeout_ms: None,
        }
    }

    /// The run's first event.
    pub(crate) fn resolve(self, plan: &Plan) -> Result<RunStarted, StartError> {
        let start_nodes = plan.start_nodes(&self.from)?;
        if let Some((unknown, _)) = self.seeds.iter().find(|(id, _)| plan.index_of(*id).is_none()) {
            return Err(StartError::UnknownNode(*unknown));
        }
        // A node that runs makes its own output.
        let runs = |id: i64| {
            let below = |&start: &i64| {
                start == id
                    || plan
                        .index_of(start)
                        .zip(plan.index_of(id))
                        .is_some_and(|(a, b)| plan.is_above(a, b))
            };
            start_nodes.iter().any(below)
        };
        let starts_here =
            |id: i64| start_nodes.contains(&id) && plan.node(id).is_some_and(|node| node.is_trigger);
        let given = self
            .seeds
            .iter()
            .find(|(id, _)| starts_here(*id))
            .map(|(_, output)| Arc::clone(output));
        let seeds = self.seeds.into_iter().filter(|(id, _)| !runs(*id)).collect();
        let Self {
            attempt, timeout_ms, ..
        } = self;
        let input = as_object(given.unwrap_or(self.input));
        Ok(RunStarted {
            attempt,
            start_nodes,
            input,
            seeds,
            timeout_ms,
        })
    }
}

fn as_object(input: Arc<Value>) -> Arc<Value> {
    match *input {
        Value::Object(_) => input,
        _ => Arc::new(serde_json::json!({ "value": *input })),
    }
}

impl Plan {
    /// The ids of the nodes that a run begins at, or why there are none.
    pub fn start_nodes(&self, from: &StartFrom) -> Result<Vec<i64>, StartError> {
        match from {
            StartFrom::Node(id) => {
                let index = self.index_of(*id).ok_or(StartError::UnknownNode(*id))?;
                Ok(vec![self.node_at(self.outermost(index)).id])
            }
            StartFrom::Trigger(id) => match self.node(*id) {
                None => Err(StartError::UnknownNode(*id)),
                Some(node) if node.is_trigger && !node.disabled => Ok(vec![node.id]),
                Some(_) => Err(StartError::NotATrigger(*id)),
            },
            StartFrom::Kind(kind) => match self.first_trigger(|slug| slug == kind) {
                Some(id) => Ok(vec![id]),
                None => self.start_nodes(&StartFrom::Manual),
            },
            StartFrom::Manual => {
                let manual = self.first_trigger(|slug| slug == "manual_trigger");
                match manual.or_else(|| self.first_trigger(|_| true)) {
                    Some(id) => Ok(vec![id]),
                    None => self.roots(),
                }
            }
        }
    }

    fn first_trigger(&self, wanted: impl Fn(&str) -> bool) -> Option<i64> {
        let mut enabled = self
            .nodes()
            .iter()
            .filter(|node| node.is_trigger && !node.disabled);
        enabled.find(|node| wanted(&node.module_slug)).map(|node| node.id)
    }

    fn roots(&self) -> Result<Vec<i64>, StartError> {
        let roots = self
            .nodes()
            .iter()
            .filter(|node| node.incoming.is_empty() && !node.is_trigger);
        let ids: Vec<i64> = roots.map(|node| node.id).collect();
        if ids.is_empty() {
            Err(StartError::NothingToStart)
        } else {
            Ok(ids)
        }
    }
}
