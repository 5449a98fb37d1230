//! What the crate's own tests share: graphs in one line and an environment of constants.

#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod ask;
pub(crate) mod cluster;
mod faults;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod random_graph;
pub(crate) mod world;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::config::{NodeConfig, Retry};
use crate::event::{Event, NodeKey};
use crate::expression::{CustomFunctions, EvaluationError, NoCustomFunctions};
use crate::failure::NodeError;
use crate::graph::{Edge, EdgeType, Graph, NATIVE_APP, Node};
use crate::kind::{Behaviour, External, Kind, NodeSpec, Registry};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::plan::Plan;
use crate::scope::{Environment, NodeScope};

/// Reads `1:set 2:aggregator(1) | 1-2 1-3-error`.
pub(crate) fn graph(text: &str) -> Graph {
    let (nodes, edges) = text.split_once('|').unwrap();
    let nodes: Vec<Node> = nodes.split_whitespace().map(node).collect();
    let next_node_id = nodes.iter().map(|node| node.id + 1).max().unwrap_or(1);
    Graph {
        nodes,
        edges: edges.split_whitespace().map(edge).collect(),
        next_node_id,
    }
}

fn node(text: &str) -> Node {
    let (id, kind) = text.split_once(':').unwrap();
    let (kind, of) = kind.trim_end_matches(')').split_once('(').unwrap_or((kind, ""));
    let params = match (kind, of.parse::<i64>()) {
        ("aggregator", Ok(of)) => json!({ "of": of }),
        ("set", _) => json!({ "fields": {} }),
        ("splitter", _) => json!({ "items": [1, 2, 3] }),
        _ => json!({}),
    };
    Node {
        id: id.parse().unwrap(),
        app_id: NATIVE_APP.into(),
        module_slug: kind.into(),
        kind: Some(kind.into()),
        name: format!("Node {id}"),
        x: 0.0,
        y: 0.0,
        params: params.as_object().cloned().unwrap_or_default(),
        config: NodeConfig::default(),
        connection_id: None,
        credential_id: None,
    }
}

fn edge(text: &str) -> Edge {
    let mut parts = text.splitn(3, '-');
    let mut end = || parts.next().unwrap().parse().unwrap();
    let (from, to) = (end(), end());
    let edge_type = match parts.next() {
        None => EdgeType::Normal,
        Some("error") => EdgeType::Error,
        Some(_) => EdgeType::Fallback,
    };
    Edge {
        id: Edge::id_of(from, to, edge_type),
        from,
        to,
        edge_type,
        order: 0,
        filter: None,
    }
}

/// Sets a node's parameters.
pub(crate) fn set_params(graph: &mut Graph, id: i64, params: Value) {
    graph.node_mut(id).unwrap().params = params.as_object().cloned().unwrap();
}

/// Sets a node's config.
pub(crate) fn set_config(graph: &mut Graph, id: i64, config: Value) {
    graph.node_mut(id).unwrap().config = serde_json::from_value(config).unwrap();
}

/// Sets an edge's filter.
pub(crate) fn set_filter(graph: &mut Graph, id: &str, filter: Value) {
    graph.edges.iter_mut().find(|edge| edge.id == id).unwrap().filter = Some(filter);
}

/// The pure kinds, and three that are executed outside: `call`, `search`, which opens a scope, and `ask`, which is parked.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::pure();
    registry.add(Call { searches: false });
    registry.add(Call { searches: true });
    registry.add(ask::Ask);
    registry
}

/// The plan of a graph that must be sound.
pub(crate) fn plan(graph: &Graph) -> Arc<Plan> {
    match Plan::compile(graph, &registry(), &NoCustomFunctions) {
        Ok(plan) => Arc::new(plan),
        Err(problems) => panic!("{problems:?}"),
    }
}

/// An external kind whose request is its `body`. One that searches tries again by itself, twice.
struct Call {
    searches: bool,
}

impl Kind for Call {
    fn spec(&self) -> NodeSpec {
        let body = FieldSpec::optional("body", FieldType::Any, "What is sent.");
        let name = if self.searches { "search" } else { "call" };
        let own_retry = Retry {
            max_attempts: 3,
            delay_ms: 100,
            ..Retry::default()
        };
        NodeSpec {
            opens_scope: self.searches,
            retry: self.searches.then_some(own_retry),
            ..NodeSpec::step(name, name, "Is executed outside.").with_shape([body])
        }
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let body = node.params.get("body").cloned().unwrap_or(Value::Null);
        let body = crate::expression::CompiledValue::compile(&body, functions).unwrap();
        Ok(Behaviour::External(Box::new(Request(body))))
    }
}

struct Request(crate::expression::CompiledValue);

impl External for Request {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        Ok(self.0.evaluate(scope)?)
    }
}

/// An environment of constants; `SECRET` is masked.
pub(crate) struct Constants(HashMap<String, Value>);

pub(crate) static CONSTANTS: LazyLock<Constants> =
    LazyLock::new(|| Constants(HashMap::from([(String::from("SECRET"), json!("hunter2"))])));

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

impl Environment for Constants {
    fn run(&self) -> &Value {
        &EMPTY
    }

    fn workflow(&self) -> &Value {
        &EMPTY
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(format!("{name} is not here")))
    }

    fn mask(&self, output: &mut Value) {
        match output {
            Value::String(text) => self.mask_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask(field)),
            _ => {}
        }
    }

    fn mask_text(&self, message: &mut String) {
        *message = message.replace("hunter2", "***");
    }
}

/// A key in the run's own scope.
pub(crate) fn key(node: i64) -> NodeKey {
    NodeKey::root(node)
}

/// The events' names, for assertions: `completed 1`.
pub(crate) fn names(events: &[Event]) -> Vec<String> {
    use crate::event::EventBody as Body;
    let name = |event: &Event| match &event.body {
        Body::RunStarted(_) => String::from("run started"),
        Body::NodeStarted { key } => format!("started {}", key.node),
        Body::NodeWaiting { key, .. } => format!("waiting {}", key.node),
        Body::NodeCompleted { key, .. } => format!("completed {}", key.node),
        Body::NodeFailed { key, .. } => format!("failed {}", key.node),
        Body::NodeRetrying { key, .. } => format!("retrying {}", key.node),
        Body::NodeSkipped { key } => format!("skipped {}", key.node),
        Body::NodeCancelled { key } => format!("cancelled {}", key.node),
        Body::NodeLogged { key, .. } => format!("logged {}", key.node),
        Body::RunResumed { node } => format!("resumed {node}"),
        Body::RunFinished { outcome, .. } => format!("run {outcome:?}").to_lowercase(),
        Body::ItemsOpened { key, .. } => format!("opened {}", key.node),
        Body::ItemStarted { key, .. } => format!("item {}/{}", key.node, key.iteration),
        Body::ItemFinished { key, .. } => format!("item end {}/{}", key.node, key.iteration),
    };
    events.iter().map(name).collect()
}
