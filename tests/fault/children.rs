//! Runs that start others, by a call or by their failure, while servers are killed: each call has one run and is told
//! what came of it, each failure is told once.

use std::time::Duration;

use core_service::clock::now_ms as now;
use serde_json::{Value, json};
use test_support::{Api, graphs, postgres_or_skip, text, together, until};

use crate::cluster::Cluster;
use crate::random::Random;
use crate::settings;

/// Runs of one round: those that call, and those that fail.
const RUNS: usize = 40;
/// How long servers are killed in a round, in milliseconds; the called runs wait about as long.
const KILLED_FOR_MS: i64 = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_loses_no_child_when_it_is_killed() {
    kill_again_and_again(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_loses_no_child_when_servers_are_killed() {
    let Some(database) = postgres_or_skip("children on three servers").await else {
        return;
    };
    kill_again_and_again(Some(&database.url)).await;
    database.drop_now().await.unwrap();
}

/// The workflows, by what they do.
struct Flows {
    caller: String,
    callee: String,
    failing: String,
    reacting: String,
}

impl Flows {
    async fn go_live(api: &Api) -> Self {
        let callee = graphs::chain(&[
            ("workflow_trigger", json!({})),
            ("wait", json!({ "amount": "{{1.seconds}}", "unit": "seconds" })),
            ("set", json!({ "fields": { "number": "{{1.number}}" } })),
        ]);
        let callee = api.workflow_with("Callee", callee).await;
        let caller = graphs::chain(&[
            ("webhook_trigger", json!({})),
            (
                "run_workflow",
                json!({ "workflowId": callee, "input": "{{1.body}}" }),
            ),
            ("set", json!({ "fields": { "number": "{{2.output.number}}" } })),
        ]);
        let caller = api.workflow_with("Caller", caller).await;
        let failing = graphs::chain(&[
            ("webhook_trigger", json!({})),
            (
                "wait",
                json!({ "amount": "{{1.body.seconds}}", "unit": "seconds" }),
            ),
            ("stop", json!({ "status": "failed", "message": "no" })),
        ]);
        let failing = api.workflow_with("Failing", failing).await;
        let reacting = graphs::chain(&[
            ("error_trigger", json!({ "workflowIds": [failing] })),
            ("set", json!({ "fields": { "run": "{{1.runId}}" } })),
        ]);
        let reacting = api.workflow_with("Reacting", reacting).await;
        for workflow in [&callee, &caller, &failing, &reacting] {
            api.go_live(workflow).await;
        }
        Self {
            caller,
            callee,
            failing,
            reacting,
        }
    }
}

async fn kill_again_and_again(database_url: Option<&str>) {
    let rounds = settings::rounds(3, 30);
    let seed = settings::seed();
    eprintln!("SWITCHYARD_FAULT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start(database_url).await;
    for _ in 0..rounds {
        let flows = Flows::go_live(&cluster.api(0)).await;
        let (calls, fails) = (
            cluster.api(0).mint(&flows.caller, 1).await,
            cluster.api(0).mint(&flows.failing, 1).await,
        );
        let started = (0..RUNS).map(|number| {
            let seconds = random.below(KILLED_FOR_MS.unsigned_abs() as usize) as f64 / 1_000.0;
            let hook = if number % 2 == 0 { &calls } else { &fails };
            call(
                cluster.api(number),
                hook.clone(),
                json!({ "number": number, "seconds": seconds }),
            )
        });
        let started = together(started.collect::<Vec<_>>()).await;
        cluster
            .kill_between(&mut random, now(), now() + KILLED_FOR_MS)
            .await;
        let _logs = cluster.show_logs();
        each_call_had_one_run(&cluster.api(0), &flows).await;
        each_failure_was_told_once(&cluster.api(0), &flows).await;
        assert_eq!(started.len(), RUNS);
    }
}

/// Calls a webhook until that is acknowledged, and gives the run's id.
async fn call(api: Api, hook: String, body: Value) -> String {
    let id = format!("call-{}", body["number"]);
    let mut answer = api.call_hook(&hook, &[("webhook-id", &id)], body.clone()).await;
    // A node that has just been started, or has too much to do to keep so short a lease, says that it cannot.
    for _ in 0..REFUSALS {
        let Ok(seconds) = answer.header("retry-after").parse() else {
            break;
        };
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        answer = api.call_hook(&hook, &[("webhook-id", &id)], body.clone()).await;
    }
    text(&answer.data(202)["runId"])
}

/// How often a call may be told to come again.
const REFUSALS: usize = 20;

/// The reports of a workflow's runs, once there are so many and all have ended.
async fn ended(api: &Api, workflow: &str, number: usize) -> Vec<Value> {
    let mut runs = Vec::new();
    let all = until(async || {
        runs = api
            .all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
            .await;
        let ended = runs.iter().all(|run| run["finishedAt"] != Value::Null);
        (runs.len() >= number && ended).then_some(())
    });
    assert!(all.await.is_some(), "not {number} runs that have ended: {runs:?}");
    assert_eq!(runs.len(), number, "{runs:?}");
    let mut reports = Vec::new();
    for run in &runs {
        reports.push(api.get(format!("/runs/{}", text(&run["id"]))).await.data(200));
    }
    reports
}

async fn each_call_had_one_run(api: &Api, flows: &Flows) {
    let callers = ended(api, &flows.caller, RUNS / 2).await;
    let callees = ended(api, &flows.callee, RUNS / 2).await;
    let mut called: Vec<String> = callees.iter().map(|run| text(&run["id"])).collect();
    let mut told = Vec::new();
    for run in &callers {
        assert_eq!(run["status"], "succeeded", "{run}");
        assert_eq!(run["nodes"][1]["attempt"], 1, "{run}");
        let given = &run["nodes"][1]["output"];
        assert_eq!(
            given["output"]["number"], run["nodes"][0]["output"]["body"]["number"],
            "{run}"
        );
        assert_eq!(run["nodes"][2]["output"]["number"], given["output"]["number"]);
        told.push(text(&given["runId"]));
    }
    called.sort();
    told.sort();
    assert_eq!(called, told, "each caller is told of its own run");
}

async fn each_failure_was_told_once(api: &Api, flows: &Flows) {
    let failed = ended(api, &flows.failing, RUNS / 2).await;
    let reactions = ended(api, &flows.reacting, RUNS / 2).await;
    let mut failed: Vec<String> = failed.iter().map(|run| text(&run["id"])).collect();
    let told = reactions
        .iter()
        .map(|run| text(&run["nodes"][0]["output"]["runId"]));
    let mut told: Vec<String> = told.collect();
    failed.sort();
    told.sort();
    assert_eq!(failed, told);
}
