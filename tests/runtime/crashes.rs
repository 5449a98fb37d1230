//! Processes that die, are paused, or stop in an orderly way.

use std::time::Duration;

use core_service::runtime::{RuntimeConfig, StartRunError};
use core_service::store::RunStatus;
use engine::event::EventBody;
use engine::journal;
use serde_json::json;

use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{World, quick};

on_both_databases!(
    a_crashed_run_goes_on_from_its_last_result,
    a_paused_process_cannot_write_any_more,
    a_run_that_kills_its_processes_is_failed,
    a_run_that_kills_its_processes_when_it_is_woken_is_failed,
    a_run_beside_one_that_kills_its_processes_is_not,
    a_drain_lets_executions_finish,
    a_drain_releases_what_does_not_finish,
    a_run_that_slipped_through_is_found,
);

async fn a_crashed_run_goes_on_from_its_last_result(world: &World) {
    let first = world.process().await;
    let graph = after_trigger(&[probe("ok"), probe("wait"), set(json!({}))]);
    let started = first
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(2).await;
    first.crash();
    let second = world.process().await;
    let begun = world.probe.begun(3).await;
    assert_eq!(
        begun
            .iter()
            .map(|execution| execution.key.node)
            .collect::<Vec<_>>(),
        [2, 3, 3]
    );
    assert_eq!(begun[1].idempotency_key(), begun[2].idempotency_key());
    world.probe.open(1);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 1));
    assert_eq!(second.runtime.metrics().runs_taken_over, 1);
}

async fn a_run_that_slipped_through_is_found(world: &World) {
    let config = RuntimeConfig {
        tidy_interval: Duration::from_millis(100),
        ..quick()
    };
    let process = world.process_with(config).await;
    let graph = after_trigger(&[wait(600_000), set(json!({}))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let asleep = world
        .run_when(&started.run_id, |run| run.process_id.is_none())
        .await;
    assert_eq!(asleep.status, RunStatus::Waiting);
    // The process owns the run, and none of its tasks has it.
    world
        .execute("UPDATE runs SET process_id = (SELECT id FROM processes WHERE alive), parked = FALSE")
        .await;
    assert!(world.run(&started.run_id).await.process_id.is_some());
    let found = world
        .run_when(&started.run_id, |run| run.process_id.is_none())
        .await;
    assert_eq!((found.status, found.crashes), (RunStatus::Waiting, 0));
}

/// How often the journal says that the node completed.
pub(crate) async fn completions(world: &World, run_id: &str, node: i64) -> usize {
    let segments = world.store.load_segments(run_id, None).await.unwrap();
    let events = segments
        .iter()
        .flat_map(|segment| journal::decode(&segment.events).unwrap());
    events
        .filter(|event| matches!(&event.body, EventBody::NodeCompleted { key, .. } if key.node == node))
        .count()
}

async fn a_paused_process_cannot_write_any_more(world: &World) {
    let first = world.process().await;
    let graph = after_trigger(&[probe("wait"), set(json!({}))]);
    let started = first
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    let resume = first.pause();
    // On PostgreSQL once the lease is over; SQLite knows that there is only one process.
    let second = world.process().await;
    world.probe.begun(2).await;
    // Both executions end; only the second process's result may be recorded.
    world.probe.open(2);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    drop(resume);
    let lost = async {
        while first.runtime.metrics().leases_lost == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, lost).await.unwrap();
    assert_eq!(completions(world, &started.run_id, 2).await, 1);
    second.counts(|metrics| metrics.runs_succeeded == 1).await;
    assert_eq!(first.runtime.metrics().runs_succeeded, 0);
}

async fn a_run_that_kills_its_processes_is_failed(world: &World) {
    let mut process = world.process().await;
    let graph = after_trigger(&[probe("wait")]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    for crash in 1..=3 {
        world.probe.begun(crash).await;
        process.crash();
        process = world.process().await;
    }
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Failed, 3));
    assert!(run.error.unwrap().starts_with("ENGINE_ERROR: "));
    assert_eq!(world.probe.count(), 3);
}

/// Once its journal is read, or before that when even reading it was too much.
async fn a_run_that_kills_its_processes_when_it_is_woken_is_failed(world: &World) {
    for lost in [
        "UPDATE runs SET process_id = 'proc_lost', parked = FALSE, pending_signals = 1, on_trial = TRUE, crashes = 2
         WHERE finished_at IS NULL",
        "UPDATE runs SET process_id = 'proc_lost', parked = FALSE, pending_signals = 1, on_trial = TRUE, crashes = 3
         WHERE finished_at IS NULL",
    ] {
        let process = world.process().await;
        let graph = after_trigger(&[wait(60_000)]);
        let started = process
            .start(start(&world.organization_id, &graph, json!({})))
            .await
            .unwrap();
        process.counts(|counted| counted.runs_live == 0).await;
        world
            .execute(
                "INSERT INTO processes (id, epoch, alive, expires_at, started_at)
                 VALUES ('proc_lost', 1, FALSE, 0, 0) ON CONFLICT DO NOTHING",
            )
            .await;
        world.execute(lost).await;
        let run = world.ended(&started.run_id).await;
        assert_eq!(run.status, RunStatus::Failed, "{run:?}");
        assert!(run.error.unwrap().starts_with("ENGINE_ERROR: "));
    }
}

async fn a_run_beside_one_that_kills_its_processes_is_not(world: &World) {
    // Nothing but its end ends a trial here.
    let config = || RuntimeConfig {
        trial: crate::world::PATIENCE * 100,
        ..quick()
    };
    let mut process = world.process_with(config()).await;
    let graph = after_trigger(&[probe("wait")]);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let started = process
            .start(start(&world.organization_id, &graph, json!({})))
            .await;
        runs.push(started.unwrap().run_id);
    }
    for begun in [2, 4] {
        world.probe.begun(begun).await;
        process.crash();
        process = world.process_with(config()).await;
    }
    // The first is tried alone, and ends well; then the other is.
    world.probe.begun(5).await;
    world.probe.open(1);
    let innocent = world.ended(&runs[0]).await;
    assert_eq!((innocent.status, innocent.crashes), (RunStatus::Succeeded, 2));
    world.probe.begun(6).await;
    process.crash();
    let _last = world.process_with(config()).await;
    let guilty = world.ended(&runs[1]).await;
    assert_eq!((guilty.status, guilty.crashes), (RunStatus::Failed, 3));
    assert_eq!(world.probe.count(), 6);
}

async fn a_drain_lets_executions_finish(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), probe("ok")]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    #[expect(clippy::async_yields_async, reason = "the drain goes on while the test does")]
    let draining = process.call(|runtime| async move {
        let draining = tokio::spawn({
            let runtime = runtime.clone();
            async move { runtime.drain(Duration::from_secs(20)).await }
        });
        while runtime.is_ready() {
            tokio::task::yield_now().await;
        }
        draining
    });
    let draining = draining.await;
    let refused = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await;
    assert!(matches!(refused, Err(StartRunError::Unavailable)));
    world.probe.open(1);
    draining.await.unwrap();
    assert_eq!(completions(world, &started.run_id, 2).await, 1);
    assert_eq!(world.probe.count(), 1, "nothing new begins");
    let _next = world.process().await;
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
    assert_eq!(world.probe.count(), 2);
}

async fn a_drain_releases_what_does_not_finish(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait")]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    process
        .call(|runtime| async move { runtime.drain(Duration::from_millis(50)).await })
        .await;
    world.probe.given_up(1).await;
    let run = world.run(&started.run_id).await;
    assert_eq!((run.status, run.process_id), (RunStatus::Running, None));
    let _next = world.process().await;
    world.probe.begun(2).await;
    world.probe.open(1);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
}
