//! Runs that wait: as rows, not in memory, and across processes.

use std::time::Duration;

use core_service::runtime::RuntimeConfig;
use core_service::store::RunStatus;
use serde_json::json;

use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{World, quick};

on_both_databases!(
    a_waiting_run_is_no_memory_and_goes_on,
    a_waiting_run_survives_a_restart,
    a_short_wait_stays_in_memory,
    a_failed_node_is_tried_again_later,
    a_run_past_its_time_is_failed,
);

async fn a_waiting_run_is_no_memory_and_goes_on(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[wait(300), set(json!({ "after": true }))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let run = world.run(&started.run_id).await;
    assert_eq!((run.status, run.process_id), (RunStatus::Waiting, None));
    assert_eq!(process.runtime.metrics().runs_live, 0);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
    assert_eq!(world.store.run_timers(&started.run_id).await.unwrap(), []);
}

async fn a_waiting_run_survives_a_restart(world: &World) {
    let first = world.process().await;
    let graph = after_trigger(&[wait(400), probe("ok")]);
    let started = first
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    first.crash();
    let _second = world.process().await;
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
    assert_eq!(world.probe.count(), 1);
}

async fn a_short_wait_stays_in_memory(world: &World) {
    let process = world
        .process_with(RuntimeConfig {
            keep_waiting: Duration::from_secs(60),
            ..quick()
        })
        .await;
    let graph = after_trigger(&[wait(200)]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    assert_eq!(world.run(&started.run_id).await.status, RunStatus::Waiting);
    assert_eq!(process.runtime.metrics().runs_live, 1);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    assert_eq!(process.runtime.metrics().runs_claimed, 0);
}

async fn a_failed_node_is_tried_again_later(world: &World) {
    let process = world.process().await;
    let retry =
        json!({ "retry": { "maxAttempts": 3, "delayMs": 30, "multiplier": 2.0, "maxDelayMs": 1000 } });
    let graph = after_trigger(&[("probe", json!({ "do": "fail twice" }), retry)]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let begun = world.probe.begun(3).await;
    assert_eq!(
        begun
            .iter()
            .map(|execution| execution.attempt)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let keys: Vec<String> = begun
        .iter()
        .map(|execution| execution.idempotency_key())
        .collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let report = process.report(world, &started.run_id).await;
    assert_eq!(**report.state.last_output().unwrap(), json!({ "tries": 3 }));
}

async fn a_run_past_its_time_is_failed(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait")]);
    let mut start = start(&world.organization_id, &graph, json!({}));
    start.start.timeout_ms = Some(100);
    let started = process.start(start).await.unwrap();
    let run = world.ended(&started.run_id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.error.unwrap().starts_with("RUN_TIMEOUT: "));
    world.probe.given_up(1).await;
}
