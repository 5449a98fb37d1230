//! Schedules that fire: at their instants, once each, and not when they should not.
//!
//! Nothing waits for real minutes: recurrences happen once in a moment, or a schedule is moved back in time, which is
//! the same as if no server had been there for so long.

mod catch_up;
mod fire;
mod past;

use core_service::clock::now_ms;
use serde_json::{Value, json};
use test_support::{Api, graphs, text, until};

/// A schedule trigger (1) and a node that shows what it was given (2).
fn ticking_flow() -> Value {
    graphs::chain(&[
        ("schedule_trigger", json!({})),
        ("set", json!({ "fields": { "at": "{{1.scheduledAt}}" } })),
    ])
}

/// Sets a workflow's recurrence.
async fn set(api: &Api, workflow: &str, recurrence: Value) {
    let body = json!({ "recurrence": recurrence });
    let _ = api.patch(format!("/workflows/{workflow}"), body).await.data(200);
}

/// An instant that comes soon, but not before so many calls are answered, as busy as the machine is.
async fn soon(api: &Api, calls: i64) -> i64 {
    let began = now_ms();
    let _ = api.workflow("How long does a call take?").await;
    let call = now_ms() - began;
    now_ms() + 300 + 5 * calls * call
}

fn once(at: i64) -> Value {
    json!({ "kind": "once", "at": at })
}

/// A live workflow with this recurrence.
async fn live(api: &Api, operations: Value, recurrence: Value) -> String {
    let workflow = api.workflow_with("Scheduled", operations).await;
    api.go_live(&workflow).await;
    set(api, &workflow, recurrence).await;
    workflow
}

/// Lets a workflow run once, soon, and gives the instant.
async fn set_soon(api: &Api, workflow: &str) -> i64 {
    let at = soon(api, 1).await;
    set(api, workflow, once(at)).await;
    assert!(
        now_ms() < at,
        "the machine is too slow: the instant has come already"
    );
    at
}

/// A live workflow that runs once, soon, and the instant.
async fn live_soon(api: &Api, operations: Value) -> (String, i64) {
    let workflow = live(api, operations, Value::Null).await;
    let at = set_soon(api, &workflow).await;
    (workflow, at)
}

/// The workflow's runs, newest first.
async fn runs(api: &Api, workflow: &str) -> Vec<Value> {
    api.all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
        .await
}

/// The reports of the workflow's runs once there are so many and all have ended, oldest first.
async fn ended_runs(api: &Api, workflow: &str, number: usize) -> Vec<Value> {
    let mut seen = Vec::new();
    let all = until(async || {
        seen = runs(api, workflow).await;
        let ended = seen.iter().all(|run| run["finishedAt"] != Value::Null);
        (seen.len() >= number && ended).then_some(())
    });
    assert!(all.await.is_some(), "not {number} runs: {seen:?}");
    assert_eq!(seen.len(), number, "{seen:?}");
    let mut reports = Vec::new();
    for run in seen.iter().rev() {
        reports.push(api.get(format!("/runs/{}", text(&run["id"]))).await.data(200));
    }
    reports
}

/// The instant a run was started for, in epoch milliseconds.
fn scheduled_at(report: &Value) -> i64 {
    let at = text(&report["nodes"][0]["output"]["scheduledAt"]);
    at.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// The activities of a workflow that tell of its schedule, oldest first.
async fn told(api: &Api, workflow: &str) -> Vec<String> {
    let page = api
        .get(format!(
            "/activity?targetType=workflow&targetId={workflow}&limit=200"
        ))
        .await
        .data(200);
    let items = page["events"].as_array().unwrap().iter().rev();
    let actions = items.map(|item| text(&item["action"]));
    actions
        .filter(|action| action.starts_with("workflow.schedule_"))
        .collect()
}
