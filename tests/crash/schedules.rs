//! Three servers look after many schedules that are due at the same instants, while one after the other is killed and
//! started again: each instant has exactly one run.
//!
//! `SWITCHYARD_CRASH_SCHEDULE_ROUNDS` (3) makes it longer, `SWITCHYARD_CRASH_SEED` repeats its choices.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{Api, Server, ServerOptions, graphs, postgres_or_skip, text, until};

use crate::number_from;
use crate::random::{self, Random};

/// Workflows with a schedule.
const WORKFLOWS: usize = 60;
/// Different instants of a round, and the milliseconds between them.
const INSTANTS: usize = 6;
const APART_MS: i64 = 400;
/// Milliseconds from the last PATCH's beginning to the first instant; longer than all of them take.
const AHEAD_MS: i64 = 4_000;

#[tokio::test(flavor = "multi_thread")]
async fn each_instant_has_one_run_while_servers_are_killed() {
    let Some(database) = postgres_or_skip("schedules on three servers").await else {
        return;
    };
    let rounds = number_from("SWITCHYARD_CRASH_SCHEDULE_ROUNDS").unwrap_or(3);
    let seed = number_from("SWITCHYARD_CRASH_SEED").unwrap_or_else(random::seed);
    eprintln!("SWITCHYARD_CRASH_SEED={seed}");
    let mut random = Random::new(seed);
    let mut servers = three(&database.url).await;
    let key = servers[0].first_api().key().to_owned();
    let api = |server: &Server| server.api(Some(&key));
    let flow = graphs::chain(&[
        ("schedule_trigger", json!({})),
        ("set", json!({ "fields": { "at": "{{1.scheduledAt}}" } })),
    ]);
    let mut schedules = Vec::new();
    for _ in 0..WORKFLOWS {
        let workflow = api(&servers[0]).workflow_with("Scheduled", flow.clone()).await;
        api(&servers[0]).go_live(&workflow).await;
        schedules.push((workflow, Vec::new()));
    }
    for _ in 0..rounds {
        let first = core_service::clock::now_ms() + AHEAD_MS;
        for (number, (workflow, instants)) in schedules.iter_mut().enumerate() {
            let at = first + APART_MS * i64::try_from(number % INSTANTS).unwrap();
            let body = json!({ "recurrence": { "kind": "once", "at": at } });
            let server = &servers[number % servers.len()];
            let _ = api(server)
                .patch(format!("/workflows/{workflow}"), body)
                .await
                .data(200);
            instants.push(at);
        }
        let end = first + APART_MS * i64::try_from(INSTANTS).unwrap();
        kill_until(&mut servers, &mut random, first - 300, end).await;
        for (workflow, instants) in &schedules {
            ran_once_each(&api(&servers[0]), workflow, instants).await;
        }
    }
    drop(servers);
    database.drop_now().await.unwrap();
}

async fn three(database_url: &str) -> Vec<Server> {
    let options = ServerOptions {
        database_url: Some(database_url.to_owned()),
        flags: ["--lease-ms", "1000"].map(str::to_owned).into(),
        ..ServerOptions::default()
    };
    let first = Server::start(options.clone()).await;
    let shared = ServerOptions {
        master_key_file: Some(first.data_dir().join("master-key")),
        ..options
    };
    vec![
        first,
        Server::start(shared.clone()).await,
        Server::start(shared).await,
    ]
}

/// Kills one or two of the servers at random moments from a time on and starts them again, until another time.
async fn kill_until(servers: &mut [Server], random: &mut Random, from: i64, until: i64) {
    let now = core_service::clock::now_ms;
    tokio::time::sleep(Duration::from_millis((from - now()).max(0).unsigned_abs())).await;
    while now() < until {
        tokio::time::sleep(Duration::from_millis(random.below(200) as u64)).await;
        let (victim, other) = (random.below(servers.len()), random.below(servers.len()));
        servers[victim].kill_hard();
        servers[other].kill_hard();
        servers[victim].restart().await;
        if other != victim {
            servers[other].restart().await;
        }
    }
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
