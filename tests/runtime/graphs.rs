//! Workflows to run, in few words.

use engine::graph::{Graph, Needs};
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};

use core_service::runtime::{GraphRef, StartRun, Trigger};
use core_service::store;

/// A chain of native nodes, given as kind, parameters and config; ids count from 1.
pub(crate) fn chain(nodes: &[(&str, Value, Value)]) -> Value {
    let node = |(at, (kind, params, config)): (usize, &(&str, Value, Value))| {
        json!({
            "id": at + 1, "appId": "native", "moduleSlug": kind, "kind": kind, "name": format!("Node {}", at + 1),
            "x": 0, "y": 0, "params": params, "config": config,
        })
    };
    let edge = |to: usize| json!({ "id": format!("{}-{}", to - 1, to), "from": to - 1, "to": to });
    json!({
        "nodes": nodes.iter().enumerate().map(node).collect::<Vec<_>>(),
        "edges": (2..=nodes.len()).map(edge).collect::<Vec<_>>(),
    })
}

/// A trigger and then these nodes.
pub(crate) fn after_trigger(nodes: &[(&str, Value, Value)]) -> Value {
    let mut all = vec![("manual_trigger", json!({}), json!({}))];
    all.extend_from_slice(nodes);
    chain(&all)
}

/// A probe told what to do; see [`crate::probe`].
pub(crate) fn probe(told: &str) -> (&'static str, Value, Value) {
    ("probe", json!({ "do": told }), json!({}))
}

/// A probe that has no effect.
pub(crate) fn computing_probe(told: &str) -> (&'static str, Value, Value) {
    ("computing_probe", json!({ "do": told }), json!({}))
}

pub(crate) fn set(fields: Value) -> (&'static str, Value, Value) {
    ("set", json!({ "fields": fields }), json!({}))
}

/// A wait for so many milliseconds from now.
pub(crate) fn wait(milliseconds: i64) -> (&'static str, Value, Value) {
    let until = core_service::clock::now_ms() + milliseconds;
    ("wait", json!({ "until": until }), json!({}))
}

pub(crate) fn frozen(graph: &Value) -> store::Graph {
    let graph: Graph = serde_json::from_value(graph.clone()).unwrap();
    store::Graph {
        content_hash: graph.content_hash(&Needs::default()),
        bytes: graph.canonical_json(&Needs::default()).into_bytes(),
    }
}

/// A start by hand with an input.
pub(crate) fn start(organization_id: &str, graph: &Value, input: Value) -> StartRun {
    StartRun {
        organization_id: organization_id.to_owned(),
        workflow_id: "wf_00000000000000000000000001".to_owned(),
        workflow_name: "Tested".to_owned(),
        graph: GraphRef::Frozen(frozen(graph)),
        version_no: None,
        start: Start {
            from: StartFrom::Manual,
            input: input.into(),
            ..Start::manual()
        },
        trigger: Trigger {
            kind: "manual".to_owned(),
            ..Trigger::default()
        },
        idempotency: None,
        tick: None,
        lineage: Default::default(),
        created_by: None,
        metered: false,
        actor: None,
    }
}
