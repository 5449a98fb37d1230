//! One organization's flood delays itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use core_service::runtime::RuntimeConfig;
use core_service::store::Run;
use serde_json::json;

use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{PATIENCE, World, quick};

on_both_databases!(
    a_start_does_not_wait_for_another_organizations_flood,
    an_execution_does_not_wait_for_another_organizations_flood,
    a_flood_leaves_room_in_memory,
    what_wakes_does_not_wait_for_another_organizations_flood,
);

/// More than anybody but the flood itself may have to wait for.
const FLOOD: usize = 300;

async fn a_start_does_not_wait_for_another_organizations_flood(world: &World) {
    let process = world
        .process_with(RuntimeConfig {
            lease: PATIENCE,
            starts: 8,
            starts_per_organization: 6,
            starts_beside_others: 6,
            start_patience: PATIENCE,
            ..quick()
        })
        .await;
    let (flood, quiet) = (world.organization_id.clone(), world.other_organization().await);
    let graph = after_trigger(&[set(json!({}))]);
    // Their plans are known from now on.
    for organization_id in [&flood, &quiet] {
        let started = process.start(start(organization_id, &graph, json!({}))).await;
        started.unwrap();
    }
    let without_writes = world.without_writes().await;
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let starts: Vec<_> = (0..FLOOD)
        .map(|_| {
            let (start, acknowledged) = (start(&flood, &graph, json!({})), Arc::clone(&acknowledged));
            process.begin(|runtime| async move {
                runtime.start_run(start).await.unwrap();
                acknowledged.fetch_add(1, SeqCst);
            })
        })
        .collect();
    process
        .counts(|counted| counted.starts_waiting == (FLOOD - 6) as u64)
        .await;
    let start = start(&quiet, &graph, json!({}));
    let seen = Arc::clone(&acknowledged);
    let answered = process.begin(|runtime| async move {
        runtime.start_run(start).await.unwrap();
        seen.load(SeqCst)
    });
    drop(without_writes);
    let before = answered.await.unwrap();
    assert!(before < FLOOD / 2, "{before} of the flood came first");
    for start in starts {
        start.await.unwrap();
    }
    assert_eq!(acknowledged.load(SeqCst), FLOOD, "what was accepted is there");
}

async fn an_execution_does_not_wait_for_another_organizations_flood(world: &World) {
    // Room for the flood alone.
    let process = world
        .process_with(RuntimeConfig {
            executions: 1,
            executions_per_organization: 1,
            ..quick()
        })
        .await;
    let (flood, quiet) = (world.organization_id.clone(), world.other_organization().await);
    let graph = after_trigger(&[probe("wait")]);
    let runs = 20;
    for _ in 0..runs {
        process.start(start(&flood, &graph, json!({}))).await.unwrap();
    }
    process
        .counts(|counted| counted.executions_pending == runs && counted.executions_started == 1)
        .await;
    let started = process.start(start(&quiet, &graph, json!({}))).await;
    let run_id = started.unwrap().run_id;
    process
        .counts(|counted| counted.executions_pending == runs + 1)
        .await;
    // One of the flood is being executed; the next turn is the quiet one's.
    world.probe.open(2);
    world
        .run_of_when(&quiet, &run_id, |run| run.status.is_terminal())
        .await;
    world.probe.open(FLOOD);
}

async fn what_wakes_does_not_wait_for_another_organizations_flood(world: &World) {
    // Starts, and wakes nobody.
    let starter = world
        .process_with(RuntimeConfig {
            claim_chunk: 0,
            ..quick()
        })
        .await;
    let flood = world.organization_id.clone();
    let others = [world.other_organization().await, world.other_organization().await];
    // Longer than a start takes, so that each sleeps.
    let graph = after_trigger(&[wait(2_000), probe("wait")]);
    let mut of_flood = Vec::new();
    for _ in 0..40 {
        let started = starter.start(start(&flood, &graph, json!({}))).await;
        of_flood.push(started.unwrap().run_id);
    }
    let mut of_others = Vec::new();
    for organization_id in &others {
        let started = starter.start(start(organization_id, &graph, json!({}))).await;
        of_others.push((organization_id, started.unwrap().run_id));
    }
    // Claims may fill 15 places; what wakes keeps its place until the probe opens.
    let _waker = world
        .process_with(RuntimeConfig {
            live_runs: 20,
            claim_chunk: 4,
            ..quick()
        })
        .await;
    let mut waker_id = None;
    for (organization_id, run_id) in &of_others {
        let is_awake = |run: &Run| run.process_id.is_some();
        let run = world.run_of_when(organization_id, run_id, is_awake).await;
        waker_id = run.process_id;
    }
    let mut awake = 0;
    for run_id in &of_flood {
        awake += usize::from(world.run(run_id).await.process_id == waker_id);
    }
    assert!((1..=8).contains(&awake), "no more than it leaves free: {awake}");
    world.probe.open(FLOOD);
    for run_id in &of_flood {
        world.ended(run_id).await;
    }
}

async fn a_flood_leaves_room_in_memory(world: &World) {
    let process = world
        .process_with(RuntimeConfig {
            live_runs: 10,
            ..quick()
        })
        .await;
    let (flood, quiet) = (world.organization_id.clone(), world.other_organization().await);
    let graph = after_trigger(&[probe("wait")]);
    let mut accepted = 0;
    while process.start(start(&flood, &graph, json!({}))).await.is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 5, "as many as it leaves free");
    let started = process.start(start(&quiet, &graph, json!({}))).await;
    assert!(started.is_ok());
    world.probe.open(accepted + 1);
}
