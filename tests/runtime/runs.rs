//! Runs that nothing goes wrong with.

use std::time::Duration;

use core_service::runtime::RuntimeConfig;
use core_service::store::RunStatus;
use engine::state::NodeStatus;
use serde_json::{Value, json};

use crate::graphs::{after_trigger, probe, set, start};
use crate::world::{World, quick};

on_both_databases!(
    a_pure_run_is_durable_with_its_start,
    an_intent_is_durable_before_its_execution,
    a_large_output_is_kept_apart,
    roots_are_those_of_the_run,
    many_runs_share_transactions,
);

async fn a_pure_run_is_durable_with_its_start(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[
        set(json!({ "double": "{{1.n * 2}}" })),
        set(json!({ "last": "{{2.double + 1}}" })),
    ]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({ "n": 20 })))
        .await
        .unwrap();
    let ended = started.ended.unwrap();
    assert_eq!(**ended.last_output().unwrap(), json!({ "last": 41 }));
    let run = world.run(&started.run_id).await;
    assert_eq!((run.status, run.credits_used), (RunStatus::Succeeded, 2));
    assert_eq!(run.process_id, None);
    let report = process.report(world, &started.run_id).await;
    assert_eq!(report.trigger.kind, "manual");
    assert_eq!(
        report.state.nodes().map(|node| node.node.id).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(report.state.edges_taken().collect::<Vec<_>>(), ["1-2", "2-3"]);
    assert_eq!(
        world
            .store
            .load_segments(&started.run_id, None)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn an_intent_is_durable_before_its_execution(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), set(json!({ "seen": "{{2.waited}}" }))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    assert!(started.ended.is_none());
    world.probe.begun(1).await;
    let report = process.report(world, &started.run_id).await;
    let statuses: Vec<_> = report.state.nodes().map(|node| node.status).collect();
    assert_eq!(statuses, [NodeStatus::Completed, NodeStatus::Running]);
    world.probe.open(1);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let report = process.report(world, &started.run_id).await;
    assert_eq!(**report.state.last_output().unwrap(), json!({ "seen": true }));
}

async fn a_large_output_is_kept_apart(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("ok"), set(json!({ "length": "{{length(1.text)}}" }))]);
    let text = "x".repeat(300_000);
    let started = process
        .start(start(&world.organization_id, &graph, json!({ "text": text })))
        .await
        .unwrap();
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let segments = world.store.load_segments(&started.run_id, None).await.unwrap();
    assert!(segments.iter().all(|segment| segment.events.len() < 10_000));
    let report = process.report(world, &started.run_id).await;
    assert_eq!(
        **report.state.last_output().unwrap(),
        json!({ "length": 300_000 })
    );
}

async fn roots_are_those_of_the_run(world: &World) {
    let process = world.process().await;
    let fields =
        json!({ "run": "{{$run.id}}", "kind": "{{$run.trigger.kind}}", "name": "{{$workflow.name}}" });
    let started = process
        .start(start(
            &world.organization_id,
            &after_trigger(&[set(fields)]),
            json!({}),
        ))
        .await
        .unwrap();
    let output = started.ended.unwrap().last_output().unwrap().clone();
    let expected = json!({ "run": started.run_id, "kind": "manual", "name": "Tested" });
    assert_eq!(*output, expected);
}

async fn many_runs_share_transactions(world: &World) {
    // A debug build on a busy machine may take longer over so many at once than the short lease lasts.
    let lease = Duration::from_secs(30);
    let process = world.process_with(RuntimeConfig { lease, ..quick() }).await;
    let graph = after_trigger(&[set(json!({ "a": 1 }))]);
    let organization_id = world.organization_id.clone();
    let before = process.runtime.metrics();
    process
        .call(|runtime| async move {
            let mut starts = tokio::task::JoinSet::new();
            for _ in 0..300 {
                let (runtime, start) = (runtime.clone(), start(&organization_id, &graph, Value::Null));
                starts.spawn(async move { runtime.start_run(start).await.unwrap() });
            }
            starts.join_all().await
        })
        .await;
    let after = process.runtime.metrics();
    assert_eq!(after.runs_succeeded - before.runs_succeeded, 300);
    assert!(after.commits - before.commits < 150, "{after:?}");
}
