//! What is true of every graph, whatever fails and wherever the process crashes.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use crate::event::EventBody;
use crate::graph::EdgeType;
use crate::plan::Plan;
use crate::start::Start;
use crate::state::{NodeStatus, RunStatus};
use crate::step::{Command, Input};
use crate::testing::random_graph::{RandomEdge, RandomNode, build};
use crate::testing::world::{Crash, World, assert_same, ended_twice, replay};
use crate::testing::{CONSTANTS, key, plan};

/// An edge of a random graph: its ends as fractions.
type EdgeChoice = (prop::sample::Index, prop::sample::Index, EdgeType, Option<bool>);

fn random_node() -> impl Strategy<Value = RandomNode> {
    let kind = prop::sample::select(RandomNode::KINDS.to_vec());
    let config = prop::sample::select(RandomNode::configs());
    let asked = prop::sample::select(RandomNode::asked());
    (kind, config, 0..4_u32, asked).prop_map(|(kind, config, failures, asked)| RandomNode {
        kind,
        config,
        failures,
        asked,
    })
}

fn random_edge() -> impl Strategy<Value = EdgeChoice> {
    let edge_type = prop::sample::select(RandomEdge::TYPES.to_vec());
    let filter = prop::sample::select(RandomEdge::FILTERS.to_vec());
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
        let places = nodes.len() + 1;
        let edge = |(from, to, edge_type, holds): EdgeChoice| RandomEdge {
            from: from.index(places),
            to: to.index(places),
            edge_type,
            holds,
        };
        let edges: Vec<RandomEdge> = edges.into_iter().map(edge).collect();
        (plan(&build(&nodes, &edges)), failures)
    })
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
            let costs = executed && matches!(node.module_slug.as_str(), "set" | "call" | "search" | "ask");
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
