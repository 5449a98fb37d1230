//! Kills the server at random instants under load: what was acknowledged must have happened, and happened once.
//!
//! Each round calls the webhooks of two fresh workflows over many connections, each call with an id of its own: one
//! workflow runs through at once, the other waits in the middle. The server is killed when some random number of calls
//! has been acknowledged, and started again. Then all calls are sent once more, under their ids, as a careful sender
//! would. Exactly one run per id must exist, the acknowledged ones under their first run ids, and all must succeed with
//! each node recorded once. What they cost is what the organization's credits lack.
//!
//! `SWITCHYARD_CRASH_ROUNDS` (20) makes it longer, `SWITCHYARD_CRASH_SEED` repeats a round's choices.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod callers;
mod children;
mod cluster;
mod effects;
mod random;
mod schedules;

use std::collections::BTreeSet;

use callers::{Hook, Ledger, Sent};
use contract::v1::UpdateOrganizationRequest;
use core_service::store::{DatabaseUrl, Store};
use random::Random;
use serde_json::{Value, json};
use test_support::{
    Api, Server, ServerOptions, ShowLog, at_most, postgres_or_skip, text, together, until, workload,
};

/// Calls of one round.
const CALLS: usize = 240;
/// Connections at the same time.
const CONNECTIONS: usize = 32;
/// How long the waiting workflow waits; longer than it takes to kill the server.
const WAIT_SECONDS: f64 = 0.5;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_loses_nothing_when_it_is_killed() {
    crash_again_and_again(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_loses_nothing_when_it_is_killed() {
    let Some(database) = postgres_or_skip("crashes").await else {
        return;
    };
    crash_again_and_again(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

async fn crash_again_and_again(database_url: Option<String>) {
    let rounds = number_from("SWITCHYARD_CRASH_ROUNDS").unwrap_or(20);
    let seed = number_from("SWITCHYARD_CRASH_SEED").unwrap_or_else(random::seed);
    let options = ServerOptions {
        database_url,
        // A dead process's runs are free soon.
        flags: ["--lease-ms", "2000"].map(str::to_owned).into(),
        ..ServerOptions::default()
    };
    let mut server = Server::start(options).await;
    let account = Account::open(&server).await;
    let mut found_under_way = 0;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        eprintln!("round {round} of {rounds}: SWITCHYARD_CRASH_SEED={seed}");
        found_under_way += crash_once(&mut server, &account.api, Random::new(seed)).await;
        account.is_balanced().await;
    }
    // One round may be over before it begins; many are not.
    assert!(
        found_under_way > 0 || rounds < 5,
        "no crash found a run under way"
    );
}

/// More credits than all rounds can use.
const CREDITS: i64 = 1_000_000_000;

/// The organization's credits: what is used of them, and what is left, are always what there was.
struct Account {
    store: Store,
    /// Its owner's.
    api: Api,
    organization_id: String,
}

impl Account {
    async fn open(server: &Server) -> Self {
        let url: DatabaseUrl = match server.database_url() {
            Some(url) => url.parse().unwrap(),
            None => DatabaseUrl::Sqlite(server.data_dir().join("switchyard.db")),
        };
        let store = Store::open(&url).await.unwrap();
        let admin = server.admin().await;
        let made = admin.organization("Crashing", None).await;
        let change = UpdateOrganizationRequest {
            organization_id: made.organization_id.clone(),
            credits: Some(at_most(CREDITS)),
            ..Default::default()
        };
        admin.change(change).await;
        Self {
            store,
            api: server.api(Some(&made.api_key)),
            organization_id: made.organization_id,
        }
    }

    async fn is_balanced(&self) {
        let api = &self.api;
        let mut used = 0.0;
        for workflow in api.all_pages("/workflows?limit=200").await {
            let path = format!("/runs?workflowId={}&limit=200", text(&workflow["id"]));
            let runs = api.all_pages(&path).await;
            used += runs
                .iter()
                .filter_map(|run| run["creditsUsed"].as_f64())
                .sum::<f64>();
        }
        let organization = self.store.organization(&self.organization_id).await.unwrap();
        assert_eq!(organization.credits, Some(CREDITS - used as i64));
        assert_eq!(organization.credits_held, 0);
    }
}

pub(crate) fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

/// Gives how many runs the crash found under way.
async fn crash_once(server: &mut Server, api: &Api, mut random: Random) -> u64 {
    let quick = Flow::go_live(api, workload::graph(), 4).await;
    let waiting = Flow::go_live(api, workload::graph_with_wait(WAIT_SECONDS), 6).await;
    let hooks = [quick.hook.clone(), waiting.hook.clone()];
    let ledger = Ledger::new(CALLS);
    let acknowledged_before = random.below(CALLS);
    let pause_us = random.below(20_000);

    let address = server.rest_url().trim_start_matches("http://").parse().unwrap();
    ledger.send_all(address, &hooks, CONNECTIONS, |acknowledged| {
        acknowledged.wait_for(acknowledged_before);
        std::thread::sleep(std::time::Duration::from_micros(pause_us as u64));
        server.kill_hard();
    });
    let before = ledger.sent();
    assert!(before.iter().filter(|sent| sent.run_id.is_some()).count() >= acknowledged_before);

    server.restart().await;
    let _log = ShowLog(server);
    let again = Ledger::new(CALLS);
    again.send_all(address, &hooks, CONNECTIONS, |_| {});
    let after = again.sent();
    for (before, after) in before.iter().zip(&after) {
        let run_id = after
            .run_id
            .as_ref()
            .unwrap_or_else(|| panic!("call {} is refused", after.id));
        if let Some(acknowledged) = &before.run_id {
            assert_eq!(acknowledged, run_id, "call {} has a second run", after.id);
        }
    }
    for flow in [quick, waiting] {
        flow.has_exactly(api, &after).await;
    }
    runs_taken_over(api).await
}

/// Runs of its predecessor that the server has gone on with.
async fn runs_taken_over(api: &Api) -> u64 {
    let metrics = api
        .send(http::Method::GET, "/metrics", &[], bytes::Bytes::new())
        .await
        .text();
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("switchyard_runs_taken_over_total "));
    count
        .unwrap_or_else(|| panic!("not in {metrics}"))
        .parse()
        .unwrap()
}

/// A workflow that is called.
struct Flow {
    workflow: String,
    hook: Hook,
    nodes: i64,
}

impl Flow {
    async fn go_live(api: &Api, operations: Value, nodes: i64) -> Self {
        let workflow = api.workflow_with("Crash", operations).await;
        api.go_live(&workflow).await;
        let hook = Hook(api.mint(&workflow, 1).await);
        Self {
            workflow,
            hook,
            nodes,
        }
    }

    /// The workflow has one run for each of its calls and no other, and each succeeds with each node once.
    async fn has_exactly(&self, api: &Api, sent: &[Sent]) {
        let called = sent.iter().filter(|sent| sent.hook == self.hook);
        let expected: BTreeSet<String> = called.filter_map(|sent| sent.run_id.clone()).collect();
        let path = format!("/runs?workflowId={}&limit=200", self.workflow);
        let mut unfinished = Vec::new();
        let ended = until(async || {
            unfinished = api.all_pages(&path).await;
            unfinished.retain(|run| run["status"] != "succeeded");
            unfinished.is_empty().then_some(())
        });
        assert!(ended.await.is_some(), "stuck: {unfinished:?}");
        let runs = api.all_pages(&path).await;
        let existing: BTreeSet<String> = runs.iter().map(|run| text(&run["id"])).collect();
        assert_eq!(existing.len(), runs.len(), "a run is listed twice");
        assert_eq!(existing, expected);
        let checks = expected
            .into_iter()
            .map(|run| ran_once(api.clone(), run, self.nodes));
        together(checks).await;
    }
}

/// The run's report shows each node completed, once, at its first attempt, and paid once.
async fn ran_once(api: Api, run: String, nodes: i64) {
    let report = api.get(format!("/runs/{run}")).await.data(200);
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(report["attemptNumber"], 1, "{report}");
    let shown = report["nodes"].as_array().unwrap();
    let seen: Vec<(&Value, &Value, &Value)> = shown
        .iter()
        .map(|node| (&node["nodeId"], &node["status"], &node["attempt"]))
        .collect();
    let ids: Vec<Value> = (1..=nodes).map(Value::from).collect();
    let (completed, first) = (json!("completed"), json!(1));
    let expected: Vec<(&Value, &Value, &Value)> = ids.iter().map(|id| (id, &completed, &first)).collect();
    assert_eq!(seen, expected, "{report}");
    // The set nodes cost one each; triggers, conditions and waits are free.
    assert_eq!(
        report["creditsUsed"].as_f64(),
        Some(if nodes == 4 { 2.0 } else { 3.0 }),
        "{report}"
    );
}
