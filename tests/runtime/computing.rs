//! Nodes that only compute: they run ahead of the journal, and nothing else does.

use std::time::Duration;

use core_service::runtime::RuntimeConfig;
use core_service::store::RunStatus;
use engine::state::NodeStatus;
use serde_json::json;

use crate::crashes::completions;
use crate::graphs::{after_trigger, computing_probe, probe, set, start};
use crate::world::{LOOK_AGAIN_AFTER, PATIENCE, Process, World, quick};

on_both_databases!(
    a_chain_is_computed_before_anything_is_written_and_written_at_once,
    an_effect_waits_until_what_precedes_it_is_written,
    what_was_not_written_is_computed_again_after_a_crash,
    a_long_computation_is_seen_while_it_goes_on,
);

/// A process whose computations may run ahead for so long.
async fn process(world: &World, compute_ahead: Duration) -> Process {
    let config = RuntimeConfig {
        compute_ahead,
        ..quick()
    };
    world.process_with(config).await
}

async fn a_chain_is_computed_before_anything_is_written_and_written_at_once(world: &World) {
    let process = process(world, PATIENCE).await;
    let more = || computing_probe("compute");
    let graph = after_trigger(&[computing_probe("wait"), more(), more(), set(json!({})), more()]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    let without_writes = world.without_writes().await;
    world.probe.open(1);
    world.probe.begun(4).await;
    drop(without_writes);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let segments = world.store.load_segments(&started.run_id, None).await.unwrap();
    assert_eq!(segments.len(), 2, "the start, and all that follows");
    let report = process.report(world, &started.run_id).await;
    let completed = report.state.nodes().filter(|node| {
        let is_timed = node.started_at_ms.is_some() && node.finished_at_ms.is_some();
        is_timed && node.status == NodeStatus::Completed
    });
    assert_eq!(completed.count(), 6);
}

async fn an_effect_waits_until_what_precedes_it_is_written(world: &World) {
    let process = process(world, PATIENCE).await;
    let graph = after_trigger(&[
        computing_probe("wait"),
        computing_probe("compute"),
        probe("effect"),
    ]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    let without_writes = world.without_writes().await;
    world.probe.open(1);
    world.probe.begun(2).await;
    process.counts(|metrics| metrics.executions_pending == 0).await;
    assert_eq!(world.probe.count(), 2, "nothing that others can see");
    drop(without_writes);
    world.probe.begun(3).await;
    assert_eq!(completions(world, &started.run_id, 3).await, 1);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
}

async fn what_was_not_written_is_computed_again_after_a_crash(world: &World) {
    let first = process(world, PATIENCE).await;
    let graph = after_trigger(&[
        computing_probe("wait"),
        computing_probe("compute"),
        computing_probe("wait"),
    ]);
    let started = first
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.open(1);
    world.probe.begun(3).await;
    first.crash();
    let _second = process(world, PATIENCE).await;
    world.probe.open(2);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 1));
    let begun = world.probe.begun(6).await;
    let nodes: Vec<i64> = begun.iter().map(|execution| execution.key.node).collect();
    assert_eq!(nodes, [2, 3, 4, 2, 3, 4]);
    for node in 2..=4 {
        assert_eq!(completions(world, &started.run_id, node).await, 1, "node {node}");
    }
}

async fn a_long_computation_is_seen_while_it_goes_on(world: &World) {
    let process = process(world, Duration::from_millis(10)).await;
    let graph = after_trigger(&[computing_probe("compute"), computing_probe("wait")]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let is_seen = async {
        loop {
            let report = process.report(world, &started.run_id).await;
            let mut nodes = report.state.nodes();
            if nodes.any(|node| node.node.id == 3 && node.status == NodeStatus::Running) {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_seen).await.unwrap();
    world.probe.open(1);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
}
