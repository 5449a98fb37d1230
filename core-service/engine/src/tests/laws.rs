//! What is true of every graph, whatever fails and wherever the process crashes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::event::{Event, EventBody, NodeKey};
use crate::graph::{Edge, EdgeType, Graph};
use crate::plan::Plan;
use crate::start::Start;
use crate::state::{NodeStatus, RunStatus};
use crate::step::{Command, Input};
use crate::testing::world::{Crash, World, assert_same, replay};
use crate::testing::{CONSTANTS, graph, key, plan, registry, set_config, set_params};
use crate::{regions, topology};

/// A node of a random graph: its kind, its config, and how many of its attempts fail.
#[derive(Clone, Debug)]
struct RandomNode {
    kind: &'static str,
    config: Value,
    failures: u32,
}

/// An edge of a random graph: its ends as fractions, its type and whether its filter holds.
type RandomEdge = (prop::sample::Index, prop::sample::Index, EdgeType, Option<bool>);

const KINDS: [&str; 10] = [
    "set",
    "call",
    "call",
    "call",
    "condition",
    "wait",
    "stop",
    "splitter",
    "splitter",
    "aggregator",
];

fn random_node() -> impl Strategy<Value = RandomNode> {
    let kind = prop::sample::select(KINDS.to_vec());
    let config = prop::sample::select(vec![
        json!({}),
        json!({}),
        json!({ "onError": "continue" }),
        json!({ "retry": { "maxAttempts": 3, "delayMs": 10 } }),
        json!({ "join": "any" }),
        json!({ "onError": "continue", "concurrency": 2 }),
        json!({ "disabled": true }),
    ]);
    (kind, config, 0..4_u32).prop_map(|(kind, config, failures)| RandomNode {
        kind,
        config,
        failures,
    })
}

fn random_edge() -> impl Strategy<Value = RandomEdge> {
    let edge_type = prop::sample::select(vec![
        EdgeType::Normal,
        EdgeType::Normal,
        EdgeType::Error,
        EdgeType::Fallback,
    ]);
    let filter = prop::sample::select(vec![None, None, Some(true), Some(false)]);
    (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        edge_type,
        filter,
    )
}

/// A graph that passes the gate, and the attempts that fail in it.
fn random_graph() -> impl Strategy<Value = (Arc<Plan>, HashMap<i64, u32>)> {
    let nodes = prop::collection::vec(random_node(), 1..9);
    let edges = prop::collection::vec(random_edge(), 0..20);
    (nodes, edges).prop_map(|(nodes, edges)| {
        let failures = (2..).zip(&nodes).map(|(id, node)| (id, node.failures)).collect();
        (plan(&build(&nodes, &edges)), failures)
    })
}

fn build(nodes: &[RandomNode], edges: &[RandomEdge]) -> Graph {
    let listed: Vec<String> = (2..)
        .zip(nodes)
        .map(|(id, node): (i64, _)| format!("{id}:{}", node.kind))
        .collect();
    let mut graph = graph(&format!("1:manual_trigger {} |", listed.join(" ")));
    let mut splitters = Vec::new();
    for (id, node) in (2..).zip(nodes) {
        match (node.kind, splitters.last().copied()) {
            ("splitter", _) => splitters.push(id),
            ("aggregator", Some(of)) => {
                set_params(&mut graph, id, json!({ "of": of }));
                splitters.pop();
            }
            ("aggregator", None) => become_set(&mut graph, id),
            _ => {}
        }
        set_config(&mut graph, id, node.config.clone());
        if node.kind == "call" {
            let seen = json!({ "item": "{{$item}}", "index": "{{$index}}", "first": "{{$node(2)}}", "error": "{{error.code}}" });
            set_params(&mut graph, id, json!({ "body": seen }));
        }
        if node.kind == "wait" {
            set_params(&mut graph, id, json!({ "amount": id, "unit": "seconds" }));
        }
    }
    for (from, to, edge_type, filter) in edges {
        let from = from.index(graph.nodes.len());
        let to = to.index(graph.nodes.len());
        let (from, to) = (from.min(to), from.max(to));
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
            let filter = filter.map(condition);
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
            found = regions::check_complete(&graph);
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

fn started((plan, failures): &(Arc<Plan>, HashMap<i64, u32>)) -> World {
    let mut world = World::new(Arc::clone(plan));
    world.failures = failures.clone();
    world.input(Input::Start(Start {
        timeout_ms: Some(86_400_000),
        ..Start::manual()
    }));
    world
}

fn random_crashes() -> impl Strategy<Value = Vec<Crash>> {
    prop::collection::vec(
        prop::sample::select(vec![Crash::None, Crash::Before, Crash::After]),
        0..40,
    )
}

/// Nodes, by iteration, that ended more than once.
fn ended_twice(events: &[Event]) -> Vec<NodeKey> {
    let ended = events.iter().filter_map(|event| match &event.body {
        EventBody::NodeCompleted { key, .. }
        | EventBody::NodeFailed { key, .. }
        | EventBody::NodeSkipped { key } => Some(key.clone()),
        _ => None,
    });
    let mut seen = HashSet::new();
    ended.filter(|key| !seen.insert(key.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn crashes_change_nothing(world in random_graph(), crashes in random_crashes()) {
        let mut smooth = started(&world);
        smooth.run(std::iter::empty());
        let mut crashed = started(&world);
        crashed.run(crashes.into_iter());
        prop_assert_eq!(&smooth.journal, &crashed.journal);
        prop_assert_eq!(&smooth.finished, &crashed.finished);
        assert_same(&smooth.state, &crashed.state);
    }

    #[test]
    fn the_state_is_the_fold_at_every_point(world in random_graph()) {
        let mut world = started(&world);
        while let Some((input, now_ms)) = world.next_input() {
            world.advance(input, now_ms, Crash::None);
            assert_same(&world.state, &replay(&world.plan, &world.journal));
        }
    }

    #[test]
    fn every_run_ends_and_no_node_ends_twice(world in random_graph()) {
        let mut world = started(&world);
        world.run(std::iter::empty());
        prop_assert!(world.state.status().is_terminal());
        prop_assert_eq!(ended_twice(&world.journal), []);
        let credits: u64 = world.state.nodes().map(|node| u64::from(node.credits_used)).sum();
        prop_assert_eq!(world.state.credits_used(), credits);
        for report in world.state.nodes() {
            use NodeStatus::{Cancelled, Completed, Failed, Skipped};
            let (node, status) = (report.node, report.status);
            let executed = matches!(status, Completed | Failed) && !node.disabled;
            let costs = executed && matches!(node.module_slug.as_str(), "set" | "call");
            prop_assert!(!executed || report.credits_used == u32::from(costs), "node {}", node.id);
            // An item that failed takes what it had in flight with it.
            let given_up = status == Cancelled && !report.iteration.is_root();
            let ended = given_up || matches!(status, Completed | Failed | Skipped);
            let stopped = world.plan.nodes().iter().any(|node| node.module_slug == "stop");
            let succeeded = world.state.status() == RunStatus::Succeeded;
            prop_assert!(ended || stopped || !succeeded, "node {} is {}", node.id, status.as_str());
        }
    }

    #[test]
    fn nothing_starts_after_a_cancel(world in random_graph(), steps in 0..12_usize, crash in any::<bool>()) {
        let mut world = started(&world);
        for _ in 0..steps {
            let Some((input, now_ms)) = world.next_input() else { break };
            world.advance(input, now_ms, Crash::None);
        }
        let in_flight = world.executing.clone();
        let before = world.state.status();
        world.input(Input::Cancel);
        if crash {
            world.recover();
        }
        for execute in in_flight {
            let input = Input::NodeFinished { key: execute.key, attempt: execute.attempt, result: Ok(json!({})) };
            let step = world.state.step(input, world.now_ms, &*CONSTANTS).unwrap();
            let only_recorded = step.events.iter().all(|e| matches!(e.body, EventBody::NodeCompleted { .. }));
            prop_assert!(only_recorded && step.commands.is_empty(), "{:?}", step);
        }
        for node in world.plan.nodes() {
            let step = world.state.step(Input::TimerFired(crate::timer::TimerKey::Node(key(node.id))), i64::MAX, &*CONSTANTS);
            prop_assert_eq!(step.unwrap(), crate::step::Step::default());
        }
        let expected = if before.is_terminal() { before } else { RunStatus::Cancelled };
        prop_assert_eq!(world.state.status(), expected);
    }

    #[test]
    fn after_a_failure_nothing_new_starts(world in random_graph()) {
        let mut world = started(&world);
        let mut failed = false;
        while let Some((input, now_ms)) = world.next_input() {
            let mut probe = world.state.clone();
            let step = probe.step(input.clone(), now_ms, &*CONSTANTS).unwrap();
            let starts = step.commands.iter().any(|command| matches!(command, Command::Execute(_)));
            prop_assert!(!(failed && starts), "{:?}", step);
            failed |= step.events.iter().any(|e| matches!(e.body, EventBody::NodeFailed { handled: false, .. }));
            world.advance(input, now_ms, Crash::None);
        }
    }

    #[test]
    fn a_damaged_journal_never_panics(
        world in random_graph(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
        bytes in any::<Vec<u8>>(),
    ) {
        let mut world = started(&world);
        world.run(std::iter::empty());
        let failed = world.state.nodes().find(|report| report.status == NodeStatus::Failed).map(|report| report.node.id);
        if let Some(node) = failed {
            world.finished = None;
            world.input(Input::RetryNode(node));
            world.run(std::iter::empty());
        }
        // Its beginning, then its events in any order, some of them twice.
        let mut state = replay(&world.plan, &world.journal[..world.journal.len() / 2]);
        let _ = picks.iter().map(|pick| state.apply(pick.get(&world.journal))).collect::<Vec<_>>();
        let _ = state.step(Input::Resume, world.now_ms, &*CONSTANTS);
        let _ = crate::journal::decode(&bytes);
    }
}
