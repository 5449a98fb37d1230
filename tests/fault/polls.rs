//! Servers ask a service for new items while one after the other is killed and started again: each item has exactly one run
//! of each workflow. There are three of them on PostgreSQL, and one on SQLite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use core_service::clock::now_ms as now;
use http::Response;
use serde_json::{Value, json};
use test_support::{Api, Asked, Target, postgres_or_skip, text, until};

use crate::cluster::Cluster;
use crate::random::Random;
use crate::settings;

/// Workflows that ask, each second.
const WORKFLOWS: usize = 12;
/// Items that come in a round, all at once, and how long servers are killed then, in milliseconds.
const ITEMS: u64 = 5;
const KILLING_MS: i64 = 2_500;

#[tokio::test(flavor = "multi_thread")]
async fn each_item_has_one_run_while_servers_are_killed() {
    let Some(database) = postgres_or_skip("polls on three servers").await else {
        return;
    };
    kill_and_count(Some(&database.url)).await;
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_has_one_run_while_the_server_is_killed() {
    kill_and_count(None).await;
}

async fn kill_and_count(database_url: Option<&str>) {
    let rounds = settings::rounds(3, 30);
    let seed = settings::seed();
    eprintln!("SWITCHYARD_FAULT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start(database_url).await;
    let newest = Arc::new(AtomicU64::new(1));
    let service = shop(Arc::clone(&newest)).await;
    let mut workflows = Vec::new();
    for number in 0..WORKFLOWS {
        let path = format!("/{number}");
        let flow = json!([
            { "op": "add_node", "tempId": "new", "appId": "http", "moduleSlug": "new_item",
              "params": { "url": service.url(&path), "everySeconds": 1 } },
            { "op": "add_node", "tempId": "show", "kind": "set", "after": "new",
              "params": { "fields": { "id": "{{1.id}}" } } },
        ]);
        let workflow = cluster.api(number).workflow_with("Polling", flow).await;
        cluster.api(number).go_live(&workflow).await;
        asked_twice(&service, &path).await;
        workflows.push(workflow);
    }
    for _ in 0..rounds {
        newest.fetch_add(ITEMS, Ordering::SeqCst);
        let from = now();
        cluster.kill_between(&mut random, from, from + KILLING_MS).await;
        let _logs = cluster.show_logs();
        for workflow in &workflows {
            ran_once_each(&cluster.api(0), workflow, newest.load(Ordering::SeqCst)).await;
        }
    }
}

/// A service with the items from 1 to the newest.
async fn shop(newest: Arc<AtomicU64>) -> Target {
    Target::start(move |_: &Asked| {
        let ids = (1..=newest.load(Ordering::SeqCst)).rev();
        let items: Vec<Value> = ids.map(|id| json!({ "id": id })).collect();
        let answer = Response::builder().header("content-type", "application/json");
        answer.body(Bytes::from(json!(items).to_string())).unwrap()
    })
    .await
}

/// The first answer is dealt with, as the second question shows.
async fn asked_twice(service: &Target, path: &str) {
    let asked = until(async || {
        let asked = service.asked();
        let here = asked.iter().filter(|asked| asked.uri.path() == path);
        (here.count() >= 2).then_some(())
    });
    assert!(asked.await.is_some(), "nobody asks for {path}");
}

/// The workflow has one run for each item after the first, which was there from the beginning.
async fn ran_once_each(api: &Api, workflow: &str, newest: u64) {
    let wanted: Vec<u64> = (2..=newest).collect();
    let mut runs = Vec::new();
    let all = until(async || {
        runs = api
            .all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
            .await;
        let ended = runs.iter().all(|run| run["status"] == "succeeded");
        (runs.len() >= wanted.len() && ended).then_some(())
    });
    assert!(all.await.is_some(), "not all of {wanted:?} have run: {runs:?}");
    let mut ran = Vec::new();
    for run in &runs {
        let report: Value = api.get(format!("/runs/{}", text(&run["id"]))).await.data(200);
        ran.extend(report["nodes"][1]["output"]["id"].as_u64());
    }
    ran.sort_unstable();
    assert_eq!(ran, wanted, "{workflow}");
}
