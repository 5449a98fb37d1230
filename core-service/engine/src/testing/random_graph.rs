//! Random graphs that pass the gate.

use serde_json::{Value, json};

use super::random::Random;
use super::{graph, registry, set_config, set_params};
use crate::graph::{Edge, EdgeType, Graph};
use crate::{regions, topology};

/// A node of a random graph: its kind, its config, how many of its attempts fail, and, when it asks, what it is told.
#[derive(Clone, Debug)]
pub(crate) struct RandomNode {
    pub(crate) kind: &'static str,
    pub(crate) config: Value,
    pub(crate) failures: u32,
    pub(crate) asked: Value,
}

/// An edge of a random graph: the places of its ends in either order, its type, and whether its filter holds.
#[derive(Clone, Debug)]
pub(crate) struct RandomEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) edge_type: EdgeType,
    pub(crate) holds: Option<bool>,
}

impl RandomNode {
    pub(crate) const KINDS: [&str; 13] = [
        "set",
        "call",
        "call",
        "call",
        "ask",
        "ask",
        "condition",
        "wait",
        "stop",
        "splitter",
        "splitter",
        "search",
        "aggregator",
    ];

    pub(crate) fn configs() -> Vec<Value> {
        vec![
            json!({}),
            json!({}),
            json!({ "onError": "continue" }),
            json!({ "retry": { "maxAttempts": 3, "delayMs": 10 } }),
            json!({ "join": "any" }),
            json!({ "onError": "continue", "concurrency": 2 }),
            json!({ "disabled": true }),
            json!({ "timeoutMs": 200 }),
            json!({ "timeoutMs": 200, "retry": { "maxAttempts": 3, "delayMs": 10 } }),
        ]
    }

    /// Answered before it waits, in time, twice, one by one, too late, never. What goes on without end has an answer.
    pub(crate) fn asked() -> Vec<Value> {
        vec![
            json!({ "answersAfterMs": [0] }),
            json!({ "answersAfterMs": [500], "patienceMs": 5_000 }),
            json!({ "answersAfterMs": [500, 500], "patienceMs": 5_000 }),
            json!({ "answersAfterMs": [100, 700, 60_000] }),
            json!({ "answersAfterMs": [60_000], "patienceMs": 5_000 }),
            json!({ "answersAfterMs": [60_000, 60_000], "patienceMs": 5_000, "goesOn": true }),
            json!({ "answersAfterMs": [], "patienceMs": 5_000, "goesOn": true }),
        ]
    }

    pub(crate) fn choose(random: &mut Random) -> Self {
        Self {
            kind: random.pick(&Self::KINDS),
            config: random.pick(&Self::configs()),
            failures: random.pick(&[0, 0, 1, 2, 3]),
            asked: random.pick(&Self::asked()),
        }
    }
}

impl RandomEdge {
    pub(crate) const TYPES: [EdgeType; 4] = [
        EdgeType::Normal,
        EdgeType::Normal,
        EdgeType::Error,
        EdgeType::Fallback,
    ];
    pub(crate) const FILTERS: [Option<bool>; 4] = [None, None, Some(true), Some(false)];

    pub(crate) fn choose(random: &mut Random, places: usize) -> Self {
        Self {
            from: random.below(places),
            to: random.below(places),
            edge_type: random.pick(&Self::TYPES),
            holds: random.pick(&Self::FILTERS),
        }
    }
}

/// The graph of these nodes, behind a trigger, with as many of the edges as the gate lets pass.
pub(crate) fn build(nodes: &[RandomNode], edges: &[RandomEdge]) -> Graph {
    let listed: Vec<String> = (2..)
        .zip(nodes)
        .map(|(id, node): (i64, _)| format!("{id}:{}", node.kind))
        .collect();
    let mut graph = graph(&format!("1:manual_trigger {} |", listed.join(" ")));
    let mut openers = Vec::new();
    for (id, node) in (2..).zip(nodes) {
        match (node.kind, openers.last().copied()) {
            ("splitter" | "search", _) => openers.push(id),
            ("aggregator", Some(of)) => {
                set_params(&mut graph, id, json!({ "of": of }));
                openers.pop();
            }
            ("aggregator", None) => become_set(&mut graph, id),
            _ => {}
        }
        set_config(&mut graph, id, node.config.clone());
        if matches!(node.kind, "call" | "search") {
            let seen = json!({ "item": "{{$item}}", "index": "{{$index}}", "first": "{{$node(2)}}", "error": "{{error.code}}" });
            set_params(&mut graph, id, json!({ "body": seen }));
        }
        if node.kind == "ask" {
            set_params(&mut graph, id, node.asked.clone());
        }
        if node.kind == "wait" {
            set_params(&mut graph, id, json!({ "amount": id, "unit": "seconds" }));
        }
    }
    for edge in edges {
        let (from, to) = (edge.from.min(edge.to), edge.from.max(edge.to));
        let edge_type = &edge.edge_type;
        let stops = graph.nodes[from].module_slug == "stop";
        let offered = !stops && (from > 0 || *edge_type != EdgeType::Error);
        let (from, to) = (graph.nodes[from].id, graph.nodes[to].id);
        let second_fallback = graph
            .edges
            .iter()
            .any(|e| e.from == from && e.edge_type == EdgeType::Fallback && e.edge_type == *edge_type);
        let id = Edge::id_of(from, to, *edge_type);
        if from != to && offered && !second_fallback && graph.edge(&id).is_none() {
            let condition = |holds| json!({ "any": [{ "all": [{ "left": holds, "operator": "is_true" }] }] });
            let filter = edge.holds.map(condition);
            graph.edges.push(Edge {
                id,
                from,
                to,
                edge_type: *edge_type,
                order: 0,
                filter,
            });
        }
    }
    sound(graph)
}

/// Takes out what the gate names until it passes.
fn sound(mut graph: Graph) -> Graph {
    loop {
        let mut found = topology::check(&graph, &registry());
        if found.is_empty() {
            found = regions::check_complete(&graph, &registry());
        }
        let Some(problem) = found.first() else {
            return graph;
        };
        if problem.edges.is_empty() {
            become_set(&mut graph, problem.nodes[0]);
        }
        graph.edges.retain(|edge| !problem.edges.contains(&edge.id));
    }
}

fn become_set(graph: &mut Graph, id: i64) {
    let node = graph.node_mut(id).unwrap();
    (node.module_slug, node.kind) = (String::from("set"), Some(String::from("set")));
    set_params(graph, id, json!({ "fields": {} }));
}
