//! Three servers look after many schedules that are due at the same instants, while one after the other is killed and
//! started again: each instant has exactly one run.

use core_service::clock::now_ms as now;
use serde_json::{Value, json};
use test_support::{Api, graphs, postgres_or_skip, text, together, until};

use crate::cluster::Cluster;
use crate::random::Random;
use crate::settings;

/// Workflows with a schedule.
const WORKFLOWS: usize = 60;
/// Different instants of a round, and the milliseconds between them.
const INSTANTS: usize = 6;
const APART_MS: i64 = 400;
/// Milliseconds from the first PATCH to the first instant; longer than all of them take.
const AHEAD_MS: i64 = 8_000;

#[tokio::test(flavor = "multi_thread")]
async fn each_instant_has_one_run_while_servers_are_killed() {
    let Some(database) = postgres_or_skip("schedules on three servers").await else {
        return;
    };
    let rounds = settings::rounds(3, 30);
    let seed = settings::seed();
    eprintln!("SWITCHYARD_FAULT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start(Some(&database.url)).await;
    let flow = graphs::chain(&[
        ("schedule_trigger", json!({})),
        ("set", json!({ "fields": { "at": "{{1.scheduledAt}}" } })),
    ]);
    let mut schedules = Vec::new();
    for _ in 0..WORKFLOWS {
        let workflow = cluster.api(0).workflow_with("Scheduled", flow.clone()).await;
        cluster.api(0).go_live(&workflow).await;
        schedules.push((workflow, Vec::new()));
    }
    for _ in 0..rounds {
        let first = now() + AHEAD_MS;
        let set = schedules
            .iter_mut()
            .enumerate()
            .map(|(number, (workflow, instants))| {
                let at = first + APART_MS * i64::try_from(number % INSTANTS).unwrap();
                instants.push(at);
                set_once(cluster.api(number), workflow.clone(), at)
            });
        together(set.collect::<Vec<_>>()).await;
        assert!(
            now() < first,
            "the machine is too slow: the instants have come already"
        );
        let end = first + APART_MS * i64::try_from(INSTANTS).unwrap();
        cluster.kill_between(&mut random, first - 300, end).await;
        let _logs = cluster.show_logs();
        for (workflow, instants) in &schedules {
            ran_once_each(&cluster.api(0), workflow, instants).await;
        }
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

/// Lets a workflow run at one more instant, however late somebody notices it.
async fn set_once(api: Api, workflow: String, at: i64) {
    let recurrence = json!({ "kind": "once", "at": at, "catchupWindowMs": 600_000 });
    let body = json!({ "recurrence": recurrence });
    let _ = api.patch(format!("/workflows/{workflow}"), body).await.data(200);
}

/// The workflow has a run for each of its instants, and no other.
async fn ran_once_each(api: &Api, workflow: &str, instants: &[i64]) {
    let mut runs = Vec::new();
    let all = until(async || {
        runs = api
            .all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
            .await;
        let ended = runs.iter().all(|run| run["status"] == "succeeded");
        (runs.len() >= instants.len() && ended).then_some(())
    });
    assert!(all.await.is_some(), "not all of {instants:?} have run: {runs:?}");
    let mut ran = Vec::new();
    for run in runs.iter().rev() {
        let report: Value = api.get(format!("/runs/{}", text(&run["id"]))).await.data(200);
        let at: jiff::Timestamp = text(&report["nodes"][0]["output"]["scheduledAt"])
            .parse()
            .unwrap();
        ran.push(at.as_millisecond());
    }
    assert_eq!(ran, instants, "{workflow}");
}
