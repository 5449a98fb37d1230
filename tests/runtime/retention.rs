//! Runs that are deleted while others go on.

use std::time::Duration;

use core_service::retention::{Retention, RetentionConfig};
use core_service::store::{Actor, OrganizationChange, Plan, Run, RunStatus};
use serde_json::json;

use crate::graphs::{after_trigger, probe, set, start};
use crate::world::{LOOK_AGAIN_AFTER, PATIENCE, Process, World};

on_both_databases!(
    the_newest_stay_and_what_goes_on_ends,
    large_outputs_are_there_as_long_as_their_run,
);

/// Keeps so many ended runs of the organization.
async fn keep(world: &World, runs: i64) {
    let store = &world.store;
    let plan = Plan {
        id: "bounded".to_owned(),
        retention_runs: Some(runs),
        ..store.plan("unlimited").await.unwrap()
    };
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    let change = OrganizationChange {
        plan_id: Some(plan.id),
        ..OrganizationChange::default()
    };
    let actor = Actor::default();
    let changed = store
        .change_organization(&actor, &world.organization_id, &change)
        .await;
    changed.unwrap();
}

/// Deletes beside a process's other work.
async fn retention(world: &World, process: &Process) -> Retention {
    let store = world.store.clone();
    let config = RetentionConfig {
        look_every: Duration::from_millis(20),
        grace: Duration::ZERO,
    };
    process
        .call(|runtime| async move { Retention::start(store, runtime, config) })
        .await
}

async fn runs_when(world: &World, wanted: impl Fn(&[Run]) -> bool) -> Vec<Run> {
    let workflow_id = start(
        &world.organization_id,
        &json!({ "nodes": [], "edges": [] }),
        json!({}),
    )
    .workflow_id;
    let look = async {
        loop {
            let runs = world
                .store
                .list_runs(&world.organization_id, &workflow_id, None, None, 1_000);
            let runs = runs.await.unwrap();
            if wanted(&runs) {
                return runs;
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .expect("runs as wanted")
}

async fn the_newest_stay_and_what_goes_on_ends(world: &World) {
    let process = world.process().await;
    let waiting = after_trigger(&[probe("wait"), set(json!({}))]);
    let going_on = process
        .start(start(&world.organization_id, &waiting, json!({})))
        .await;
    let going_on = going_on.unwrap().run_id;
    world.probe.begun(1).await;
    let quick = after_trigger(&[set(json!({}))]);
    let mut ids = Vec::new();
    for _ in 0..30 {
        let started = process
            .start(start(&world.organization_id, &quick, json!({})))
            .await;
        ids.push(started.unwrap().run_id);
    }
    keep(world, 1).await;
    let retention = retention(world, &process).await;
    let newest = world.run(ids.last().unwrap()).await;
    // What ended in the same millisecond as the newest stays, too.
    let stays = |run: &Run| run.finished_at.is_none_or(|at| Some(at) == newest.finished_at);
    let left = runs_when(world, |runs| runs.iter().all(stays)).await;
    let is_left = |id: &str| left.iter().any(|run| run.id == id);
    assert!(is_left(&newest.id) && is_left(&going_on) && !is_left(&ids[0]));
    assert_eq!(retention.figures().runs, 31 - left.len() as u64);

    world.probe.open(1);
    assert_eq!(world.ended(&going_on).await.status, RunStatus::Succeeded);
}

async fn large_outputs_are_there_as_long_as_their_run(world: &World) {
    let process = world.process().await;
    let large = json!({ "text": "x".repeat(300 * 1024) });
    let graph = after_trigger(&[set(large.clone())]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let started = process
            .start(start(&world.organization_id, &graph, json!({})))
            .await;
        let run = world.ended(&started.unwrap().run_id).await;
        ids.push(run.id);
        // The next one ends in another millisecond.
        while core_service::clock::now_ms() <= run.finished_at.unwrap() {
            tokio::task::yield_now().await;
        }
    }
    keep(world, 1).await;
    let retention = retention(world, &process).await;
    runs_when(world, |runs| runs.len() == 1).await;
    let report = process.report(world, &ids[2]).await;
    assert_eq!(**report.state.last_output().unwrap(), large);
    assert_eq!(retention.figures().runs, 2);
}
