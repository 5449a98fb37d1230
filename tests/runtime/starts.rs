//! Starts that race, are repeated, are refused, or whose caller goes away.

use std::collections::HashSet;

use core_service::runtime::{RuntimeConfig, StartRunError};
use core_service::store::{IdempotencyKey, RunStatus};
use serde_json::json;

use crate::graphs::{after_trigger, probe, set, start};
use crate::world::{LOOK_AGAIN_AFTER, PATIENCE, World, quick};

on_both_databases!(
    one_key_starts_one_run,
    a_key_of_another_request_is_refused,
    a_start_outlives_its_caller,
    overload_is_refused_and_what_was_accepted_finishes,
    an_impossible_start_leaves_nothing,
);

fn key(body: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        key: "once".to_owned(),
        body_hash: body.as_bytes().to_vec(),
        expires_at: core_service::clock::now_ms() + 86_400_000,
    })
}

async fn one_key_starts_one_run(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("ok")]);
    let organization_id = world.organization_id.clone();
    let started = process
        .call(|runtime| async move {
            let mut starts = tokio::task::JoinSet::new();
            for _ in 0..50 {
                let (runtime, mut start) = (runtime.clone(), start(&organization_id, &graph, json!({})));
                start.idempotency = key("same");
                starts.spawn(async move { runtime.start_run(start).await.unwrap() });
            }
            starts.join_all().await
        })
        .await;
    let ids: HashSet<&str> = started.iter().map(|started| started.run_id.as_str()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(started.iter().filter(|started| !started.replayed).count(), 1);
    assert_eq!(world.ended(&started[0].run_id).await.status, RunStatus::Succeeded);
    assert_eq!(
        world.probe.count(),
        1,
        "runs that lost the race must have no effect"
    );
    assert_eq!(process.runtime.metrics().runs_replayed, 49);
}

async fn a_key_of_another_request_is_refused(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[set(json!({}))]);
    let mut first = start(&world.organization_id, &graph, json!({}));
    first.idempotency = key("one body");
    let mut second = first.clone();
    second.idempotency = key("another body");
    assert!(process.start(first).await.is_ok());
    assert!(matches!(
        process.start(second).await,
        Err(StartRunError::KeyReused)
    ));
}

async fn a_start_outlives_its_caller(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("ok")]);
    let start = start(&world.organization_id, &graph, json!({}));
    let workflow_id = start.workflow_id.clone();
    let runs = || {
        world
            .store
            .list_runs(&world.organization_id, &workflow_id, None, None, 10)
    };
    // The graph is stored, so that the next start has nothing to write before its run.
    let first = process.start(start.clone()).await.unwrap().run_id;
    world.ended(&first).await;
    let without_writes = world.without_writes().await;
    let calling = process.begin(|runtime| async move { runtime.start_run(start).await });
    // The caller has handed the run in, and goes before it can be durable.
    let handed_in = async {
        while process.runtime.metrics().runs_live == 0 {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    };
    tokio::time::timeout(PATIENCE, handed_in).await.unwrap();
    calling.abort();
    assert!(calling.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(runs().await.unwrap().len(), 1);
    drop(without_writes);
    let started = async {
        loop {
            let mut runs = runs().await.unwrap();
            runs.retain(|run| run.id != first);
            if let Some(run) = runs.pop() {
                return run;
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    };
    let run = tokio::time::timeout(PATIENCE, started).await.unwrap();
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Succeeded);
    assert_eq!(world.probe.count(), 2);
}

async fn overload_is_refused_and_what_was_accepted_finishes(world: &World) {
    let process = world
        .process_with(RuntimeConfig {
            // An organization may have as many as it leaves free.
            live_runs: 4,
            ..quick()
        })
        .await;
    let graph = after_trigger(&[probe("wait")]);
    let mut accepted = Vec::new();
    for _ in 0..2 {
        accepted.push(
            process
                .start(start(&world.organization_id, &graph, json!({})))
                .await
                .unwrap()
                .run_id,
        );
    }
    let refused = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await;
    assert!(matches!(refused, Err(StartRunError::Overloaded)));
    let pure = after_trigger(&[set(json!({}))]);
    assert!(
        process
            .start(start(&world.organization_id, &pure, json!({})))
            .await
            .is_ok(),
        "needs no memory"
    );
    world.probe.open(2);
    for run_id in accepted {
        assert_eq!(world.ended(&run_id).await.status, RunStatus::Succeeded);
    }
    assert_eq!(process.runtime.metrics().starts_refused, 1);
}

async fn an_impossible_start_leaves_nothing(world: &World) {
    let process = world.process().await;
    let nothing = json!({ "nodes": [], "edges": [] });
    let refused = process
        .start(start(&world.organization_id, &nothing, json!({})))
        .await;
    assert!(matches!(refused, Err(StartRunError::Start(_))));
    let unknown = after_trigger(&[("no_such_kind", json!({}), json!({}))]);
    let refused = process
        .start(start(&world.organization_id, &unknown, json!({})))
        .await;
    assert!(matches!(refused, Err(StartRunError::Plan(_))));
    let defect = after_trigger(&[("panic", json!({}), json!({}))]);
    let refused = process
        .start(start(&world.organization_id, &defect, json!({})))
        .await;
    assert!(matches!(refused, Err(StartRunError::Internal)));
    assert_eq!(process.runtime.metrics().commits, 0);
    assert!(
        process
            .start(start(&world.organization_id, &after_trigger(&[]), json!({})))
            .await
            .is_ok()
    );
}
