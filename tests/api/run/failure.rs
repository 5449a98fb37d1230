//! Failed runs that start others: error triggers.

use serde_json::{Value, json};
use test_support::{Api, graphs, text, until};

use crate::world::World;

on_both_databases!(
    a_failed_run_starts_a_run_of_its_error_workflow,
    only_live_workflows_that_name_it_react,
    what_is_handled_is_no_failure,
    a_failing_error_workflow_ends_the_chain,
    each_failed_end_is_told_once,
    a_failed_child_is_told_like_its_caller,
    an_unknown_workflow_is_refused_before_anything_fails,
);

/// A trigger (1), and a node (2) that fails.
fn failing() -> Value {
    graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "x": "{{1.missing * 2}}" } })),
    ])
}

/// An error trigger (1) for these workflows, and a node (2) that shows what it was given.
fn reacting(workflows: &[&str]) -> Value {
    graphs::chain(&[
        ("error_trigger", json!({ "workflowIds": workflows })),
        ("set", json!({ "fields": { "run": "{{1.runId}}" } })),
    ])
}

async fn live(api: &Api, operations: Value) -> String {
    let workflow = api.workflow_with("Reacts", operations).await;
    api.go_live(&workflow).await;
    workflow
}

async fn fail(api: &Api, workflow: &str) -> String {
    let run = api.start(workflow, json!({})).await;
    assert_eq!(api.ended(&run).await["status"], "failed");
    run
}

/// The failed runs that a workflow was told of, once there are so many and all its runs have ended, by id: ends are told of
/// side by side, in no order.
async fn told(api: &Api, workflow: &str, number: usize) -> Vec<String> {
    let mut runs = Vec::new();
    let all = until(async || {
        runs = api
            .all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
            .await;
        let ended = runs.iter().all(|run| run["finishedAt"] != Value::Null);
        (runs.len() >= number && ended).then_some(())
    });
    assert!(all.await.is_some(), "not {number} runs: {runs:?}");
    let mut told = Vec::new();
    for run in &runs {
        let report = api.get(format!("/runs/{}", text(&run["id"]))).await.data(200);
        assert_eq!(report["trigger"]["kind"], "error", "{report}");
        told.push(text(&report["nodes"][0]["output"]["runId"]));
    }
    assert_eq!(told.len(), number, "{told:?}");
    told.sort();
    told
}

async fn a_failed_run_starts_a_run_of_its_error_workflow(world: &World) {
    let api = &world.api;
    let failing = api.workflow_with("Fails", failing()).await;
    let reacting = live(api, reacting(&[&failing])).await;
    let failed = fail(api, &failing).await;
    assert_eq!(told(api, &reacting, 1).await, std::slice::from_ref(&failed));
    let failure = api.get(format!("/runs/{failed}")).await.data(200)["nodes"][1]["error"].clone();
    let run = api.all_pages(&format!("/runs?workflowId={reacting}")).await;
    let report = api.get(format!("/runs/{}", text(&run[0]["id"]))).await.data(200);
    let given = json!({ "runId": failed, "workflowId": failing, "nodeId": 2, "error": failure });
    assert_eq!(report["nodes"][0]["output"], given);
    assert_eq!(failure["code"], "EXPRESSION_ERROR");
    let trigger = json!({ "kind": "error", "nodeId": 1, "parentRunId": failed });
    assert_eq!((&report["versionNo"], &report["trigger"]), (&json!(1), &trigger));
}

async fn only_live_workflows_that_name_it_react(world: &World) {
    let api = &world.api;
    let (one, other) = (
        api.workflow_with("One", failing()).await,
        api.workflow_with("Other", failing()).await,
    );
    let all = live(api, reacting(&[])).await;
    let named = live(api, reacting(&[&other, &one])).await;
    let elsewhere = live(api, reacting(&[&other])).await;
    let inactive = live(api, reacting(&[&one])).await;
    let _ = api
        .patch(format!("/workflows/{inactive}"), json!({ "active": false }))
        .await
        .data(200);
    let undeployed = live(api, reacting(&[&one])).await;
    let _ = api
        .post(format!("/workflows/{undeployed}/undeploy"), json!({}))
        .await
        .data(200);
    let stranger = world.stranger().await;
    let foreign = live(&stranger, reacting(&[])).await;
    let first = fail(api, &one).await;
    let second = fail(api, &other).await;
    let mut both = [first, second.clone()];
    both.sort();
    assert_eq!(told(api, &all, 2).await, both);
    assert_eq!(told(api, &named, 2).await, both);
    assert_eq!(told(api, &elsewhere, 1).await, [second]);
    assert_eq!(told(api, &inactive, 0).await, Vec::<String>::new());
    assert_eq!(told(api, &undeployed, 0).await, Vec::<String>::new());
    assert_eq!(told(&stranger, &foreign, 0).await, Vec::<String>::new());
}

async fn what_is_handled_is_no_failure(world: &World) {
    let api = &world.api;
    let handled = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "fails", "kind": "set", "after": "start",
            "params": { "fields": { "x": "{{1.missing * 2}}" } }, "config": { "onError": "continue" } },
    ]);
    let handled = api.workflow_with("Handles", handled).await;
    let waiting = api.workflow_with("Waits", graphs::long_wait()).await;
    let stopping = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("stop", json!({ "status": "failed", "message": "enough" })),
    ]);
    let stopping = api.workflow_with("Stops", stopping).await;
    let reacting = live(api, reacting(&[])).await;
    let run = api.start(&handled, json!({})).await;
    assert_eq!(api.ended(&run).await["status"], "succeeded");
    let run = api.start(&waiting, json!({})).await;
    let _ = api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200);
    let stopped = fail(api, &stopping).await;
    assert_eq!(told(api, &reacting, 1).await, [stopped]);
}

async fn a_failing_error_workflow_ends_the_chain(world: &World) {
    let api = &world.api;
    let first = api.workflow_with("Fails", failing()).await;
    // Both react to every failure, one by failing, the other by calling what fails.
    let fails = graphs::chain(&[
        ("error_trigger", json!({ "workflowIds": [] })),
        ("set", json!({ "fields": { "x": "{{1.missing * 2}}" } })),
    ]);
    let fails = live(api, fails).await;
    let calls = graphs::chain(&[
        ("error_trigger", json!({ "workflowIds": [] })),
        ("run_workflow", json!({ "workflowId": first, "version": "draft" })),
    ]);
    let calls = live(api, calls).await;
    let failed = fail(api, &first).await;
    assert_eq!(told(api, &fails, 1).await, std::slice::from_ref(&failed));
    assert_eq!(told(api, &calls, 1).await, [failed]);
    // Another failure is told to both again; what the first one led to has long been.
    let _ = fail(api, &first).await;
    assert_eq!(told(api, &fails, 2).await.len(), 2);
    assert_eq!(told(api, &calls, 2).await.len(), 2);
}

async fn each_failed_end_is_told_once(world: &World) {
    let api = &world.api;
    let failing = api.workflow_with("Fails", failing()).await;
    let reacting = live(api, reacting(&[&failing])).await;
    let failed = fail(api, &failing).await;
    assert_eq!(told(api, &reacting, 1).await, std::slice::from_ref(&failed));
    let _ = api
        .post(format!("/runs/{failed}/retry-node"), json!({ "nodeId": 2 }))
        .await
        .data(200);
    assert_eq!(told(api, &reacting, 2).await, [failed.clone(), failed.clone()]);
    let _ = api
        .post(format!("/runs/{failed}/rerun"), json!({}))
        .await
        .data(201);
    assert_eq!(
        told(api, &reacting, 3).await,
        [failed.clone(), failed.clone(), failed]
    );
}

async fn a_failed_child_is_told_like_its_caller(world: &World) {
    let api = &world.api;
    let callee = api.workflow_with("Fails", failing()).await;
    let caller = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "run_workflow",
            json!({ "workflowId": callee, "version": "draft" }),
        ),
    ]);
    let caller = api.workflow_with("Calls", caller).await;
    let reacting = live(api, reacting(&[&callee, &caller])).await;
    let failed = fail(api, &caller).await;
    let mut told = told(api, &reacting, 2).await;
    told.retain(|run| *run != failed);
    assert_eq!(told.len(), 1, "the child is told of, too");
}

async fn an_unknown_workflow_is_refused_before_anything_fails(world: &World) {
    let api = &world.api;
    let known = api.workflow_with("Fails", failing()).await;
    let stranger = world.stranger().await;
    let foreign = stranger.workflow_with("Fails", failing()).await;
    for unknown in [&*foreign, "wf_unknown", ""] {
        let reacting = api.workflow_with("Reacts", reacting(&[&known, unknown])).await;
        let checked = api
            .post(format!("/workflows/{reacting}/validate"), json!({}))
            .await
            .data(200);
        assert_eq!(checked["valid"], false, "{unknown}: {checked}");
        let issue = text(&checked["issues"][0]);
        assert!(issue.contains("params.workflowIds[1]"), "{unknown}: {issue}");
        let refused = api.post(format!("/workflows/{reacting}/deploy"), json!({})).await;
        refused.error(400, "TOPOLOGY_INVALID");
    }
}
