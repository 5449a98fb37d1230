//! Runs that nodes of other runs start: what they are given, what their callers are told, and how both end.

use serde_json::{Value, json};
use test_support::{Api, graphs, text, until};

use crate::world::World;

on_both_databases!(
    a_called_run_gives_its_last_output,
    a_caller_waits_as_long_as_it_takes,
    a_caller_that_fires_does_not_wait,
    the_failure_of_a_called_run_is_its_callers,
    a_failed_call_can_be_handled,
    a_cancelled_run_fails_its_caller,
    cancelling_a_caller_cancels_what_it_waits_for,
    a_call_ends_at_the_nodes_time_out,
    each_item_calls_its_own_run,
    each_attempt_calls_a_run_of_its_own,
    only_live_workflows_are_called_unless_drafts_are,
    an_unknown_workflow_is_refused_before_it_runs,
    calls_go_so_deep_and_no_deeper,
    a_called_run_needs_a_credit,
);

/// A workflow that doubles `n` and says hello.
fn doubling() -> Value {
    graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("set", json!({ "fields": { "doubled": "{{1.n * 2}}" } })),
    ])
}

fn waiting_for_an_hour() -> Value {
    graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("wait", json!({ "amount": 1, "unit": "hours" })),
    ])
}

async fn live(api: &Api, operations: Value) -> String {
    let workflow = api.workflow_with("Callee", operations).await;
    api.go_live(&workflow).await;
    workflow
}

/// A caller with these parameters: a trigger (1), the call (2), and a node that shows what came of it (3).
async fn caller(api: &Api, params: Value) -> String {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("run_workflow", params),
        ("set", json!({ "fields": { "got": "{{$node(2)}}" } })),
    ]);
    api.workflow_with("Caller", flow).await
}

async fn runs(api: &Api, workflow: &str) -> Vec<Value> {
    api.all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
        .await
}

/// The only run of a workflow, once there is one.
async fn only_run(api: &Api, workflow: &str) -> String {
    let seen = until(async || Some(runs(api, workflow).await).filter(|runs| !runs.is_empty()));
    let seen = seen.await.expect("a run");
    assert_eq!(seen.len(), 1, "{seen:?}");
    text(&seen[0]["id"])
}

fn node(report: &Value, id: i64) -> Value {
    let nodes = report["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["nodeId"] == id);
    found.unwrap_or_else(|| panic!("no node {id}: {report}")).clone()
}

async fn a_called_run_gives_its_last_output(world: &World) {
    let api = &world.api;
    let callee = live(api, doubling()).await;
    let caller = caller(api, json!({ "workflowId": callee, "input": { "n": 21 } })).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let child = only_run(api, &callee).await;
    let given = json!({ "runId": child, "status": "succeeded", "output": { "doubled": 42 } });
    assert_eq!(node(&report, 2)["output"], given);
    assert_eq!(node(&report, 3)["output"], json!({ "got": given }));
    let child = api.get(format!("/runs/{child}")).await.data(200);
    let trigger = json!({ "kind": "workflow", "parentRunId": run });
    assert_eq!(child["trigger"], trigger, "{child}");
    assert_eq!(
        (&child["versionNo"], &child["createdBy"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(child["nodes"][0]["output"], json!({ "n": 21 }));
    // The call itself is free, what it runs is not.
    assert_eq!(report["creditsUsed"].as_f64(), Some(1.0));
    assert_eq!(child["creditsUsed"].as_f64(), Some(1.0));
}

async fn a_caller_waits_as_long_as_it_takes(world: &World) {
    let api = &world.api;
    let short = graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("wait", json!({ "amount": 0.5, "unit": "seconds" })),
        ("set", json!({ "fields": { "waited": true } })),
    ]);
    let callee = live(api, short).await;
    let caller = caller(api, json!({ "workflowId": callee })).await;
    let run = api.start(&caller, json!({})).await;
    let _ = api.reached(&run, &["waiting"]).await;
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 2)["output"]["output"], json!({ "waited": true }));
    assert_eq!(runs(api, &callee).await.len(), 1);
}

async fn a_caller_that_fires_does_not_wait(world: &World) {
    let api = &world.api;
    let callee = live(api, waiting_for_an_hour()).await;
    let caller = caller(api, json!({ "workflowId": callee, "mode": "fire", "input": 5 })).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    let child = only_run(api, &callee).await;
    let given = json!({ "runId": child, "status": "queued", "output": null });
    assert_eq!(node(&report, 2)["output"], given, "{report}");
    let report = api.reached(&child, &["waiting"]).await;
    assert_eq!(report["nodes"][0]["output"], json!({ "value": 5 }));
    assert_eq!(report["trigger"]["parentRunId"], json!(run), "{report}");
    let _ = api
        .post(format!("/runs/{child}/cancel"), json!({}))
        .await
        .data(200);
}

async fn the_failure_of_a_called_run_is_its_callers(world: &World) {
    let api = &world.api;
    let failing = graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("stop", json!({ "status": "failed", "message": "out of paper" })),
    ]);
    let callee = live(api, failing).await;
    let caller = caller(api, json!({ "workflowId": callee })).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    let child = only_run(api, &callee).await;
    let message = format!("{child} failed: STOPPED: out of paper");
    assert_eq!(report["status"], "failed");
    assert_eq!(
        node(&report, 2)["error"],
        json!({ "code": "CHILD_FAILED", "message": message })
    );
    assert_eq!(report["error"], json!(format!("CHILD_FAILED: {message}")));
}

async fn a_failed_call_can_be_handled(world: &World) {
    let api = &world.api;
    let failing = graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("wait", json!({ "amount": 0.2, "unit": "seconds" })),
        ("stop", json!({ "status": "failed", "message": "no" })),
    ]);
    let callee = live(api, failing).await;
    let flow = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "kind": "run_workflow", "after": "start",
            "params": { "workflowId": callee } },
        { "op": "add_node", "tempId": "rescue", "kind": "set", "params": { "fields": { "code": "{{error.code}}" } } },
        { "op": "connect", "from": "call", "to": "rescue", "type": "error" },
    ]);
    let caller = api.workflow_with("Caller", flow).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 2)["status"], "failed");
    assert_eq!(node(&report, 3)["status"], "completed");
}

async fn a_cancelled_run_fails_its_caller(world: &World) {
    let api = &world.api;
    let callee = live(api, waiting_for_an_hour()).await;
    let caller = caller(api, json!({ "workflowId": callee })).await;
    let run = api.start(&caller, json!({})).await;
    let child = only_run(api, &callee).await;
    let _ = api.reached(&run, &["waiting"]).await;
    let _ = api
        .post(format!("/runs/{child}/cancel"), json!({}))
        .await
        .data(200);
    let report = api.ended(&run).await;
    let error = json!({ "code": "CHILD_FAILED", "message": format!("{child} was cancelled") });
    assert_eq!(node(&report, 2)["error"], error);
}

async fn cancelling_a_caller_cancels_what_it_waits_for(world: &World) {
    let api = &world.api;
    let last = live(api, waiting_for_an_hour()).await;
    let between = graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("run_workflow", json!({ "workflowId": last })),
    ]);
    let between = live(api, between).await;
    let caller = caller(api, json!({ "workflowId": between })).await;
    let run = api.start(&caller, json!({})).await;
    let (child, grandchild) = (only_run(api, &between).await, only_run(api, &last).await);
    for waiting in [&run, &child, &grandchild] {
        let _ = api.reached(waiting, &["waiting"]).await;
    }
    let _ = api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200);
    for cancelled in [&run, &child, &grandchild] {
        assert_eq!(api.ended(cancelled).await["status"], "cancelled");
    }
}

async fn a_call_ends_at_the_nodes_time_out(world: &World) {
    let api = &world.api;
    let callee = live(api, waiting_for_an_hour()).await;
    let flow = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "kind": "run_workflow", "after": "start",
            "params": { "workflowId": callee }, "config": { "timeoutMs": 400 } },
    ]);
    let caller = api.workflow_with("Caller", flow).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(node(&report, 2)["error"]["code"], "NODE_TIMEOUT", "{report}");
    let child = only_run(api, &callee).await;
    assert_eq!(
        api.ended(&child).await["status"],
        "cancelled",
        "nobody waits for it any more"
    );
}

async fn each_item_calls_its_own_run(world: &World) {
    let api = &world.api;
    let callee = live(api, doubling()).await;
    let flow = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "each", "kind": "splitter", "after": "start",
            "params": { "items": [1, 2, 3, 4, 5], "concurrency": 3 } },
        { "op": "add_node", "tempId": "call", "kind": "run_workflow", "after": "each",
            "params": { "workflowId": callee, "input": { "n": "{{$item}}" } } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "call",
            "params": { "of": 2, "collect": "{{3.output.doubled}}" } },
    ]);
    let caller = api.workflow_with("Caller", flow).await;
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 4)["output"]["items"], json!([2, 4, 6, 8, 10]));
    assert_eq!(runs(api, &callee).await.len(), 5);
}

async fn each_attempt_calls_a_run_of_its_own(world: &World) {
    let api = &world.api;
    let failing = graphs::chain(&[
        ("workflow_trigger", json!({})),
        ("stop", json!({ "status": "failed", "message": "no" })),
    ]);
    let callee = live(api, failing).await;
    let flow = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "kind": "run_workflow", "after": "start",
            "params": { "workflowId": callee }, "config": { "retry": { "maxAttempts": 2, "delayMs": 1 } } },
    ]);
    let caller = api.workflow_with("Caller", flow).await;
    let run = api.start(&caller, json!({})).await;
    assert_eq!(api.ended(&run).await["status"], "failed");
    assert_eq!(runs(api, &callee).await.len(), 2);
    // The node tried again by hand, and the run from the start.
    let _ = api
        .post(format!("/runs/{run}/retry-node"), json!({ "nodeId": 2 }))
        .await
        .data(200);
    let four = until(async || (runs(api, &callee).await.len() == 4).then_some(()));
    assert!(four.await.is_some());
    assert_eq!(api.ended(&run).await["status"], "failed");
    let _ = api.post(format!("/runs/{run}/rerun"), json!({})).await.data(201);
    let six = until(async || (runs(api, &callee).await.len() == 6).then_some(()));
    assert!(six.await.is_some());
    assert_eq!(api.ended(&run).await["attemptNumber"], 2);
}

async fn only_live_workflows_are_called_unless_drafts_are(world: &World) {
    let api = &world.api;
    let callee = api.workflow_with("Callee", doubling()).await;
    let failure = async |params: Value| {
        let caller = caller(api, params).await;
        let run = api.start(&caller, json!({})).await;
        let report = api.ended(&run).await;
        (
            text(&node(&report, 2)["status"]),
            node(&report, 2)["error"]["message"].clone(),
        )
    };
    let deployed = json!({ "workflowId": callee, "input": { "n": 1 } });
    let draft = json!({ "workflowId": callee, "input": { "n": 1 }, "version": "draft" });
    let failed = |message: String| ("failed".to_owned(), json!(message));
    let completed = ("completed".to_owned(), Value::Null);
    assert_eq!(
        failure(deployed.clone()).await,
        failed(format!("workflow {callee} is not deployed"))
    );
    assert_eq!(failure(draft.clone()).await, completed);
    let _ = api
        .post(format!("/workflows/{callee}/deploy"), json!({}))
        .await
        .data(200);
    assert_eq!(
        failure(deployed.clone()).await,
        failed(format!("workflow {callee} is not active"))
    );
    let _ = api
        .patch(format!("/workflows/{callee}"), json!({ "active": true }))
        .await
        .data(200);
    assert_eq!(failure(deployed).await, completed);
    assert_eq!(runs(api, &callee).await.len(), 2);
}

async fn an_unknown_workflow_is_refused_before_it_runs(world: &World) {
    let api = &world.api;
    let stranger = world.stranger().await;
    let foreign = live(&stranger, doubling()).await;
    let deleted = api.workflow("Deleted").await;
    let _ = api.delete(format!("/workflows/{deleted}")).await;
    for unknown in [foreign.as_str(), deleted.as_str(), "wf_unknown", ""] {
        let caller = caller(api, json!({ "workflowId": unknown })).await;
        let checked = api
            .post(format!("/workflows/{caller}/validate"), json!({}))
            .await
            .data(200);
        assert_eq!(checked["valid"], false, "{unknown}: {checked}");
        let refused = api.post(format!("/workflows/{caller}/deploy"), json!({})).await;
        refused.error(400, "TOPOLOGY_INVALID");
    }
    // What a template gives is known when the node runs.
    let hidden = caller(api, json!({ "workflowId": format!("{{{{'{foreign}'}}}}") })).await;
    let run = api.start(&hidden, json!({})).await;
    let report = api.ended(&run).await;
    let error = json!({ "code": "CHILD_FAILED", "message": format!("there is no workflow {foreign}") });
    assert_eq!(node(&report, 2)["error"], error);
    assert_eq!(runs(&stranger, &foreign).await, Vec::<Value>::new());
}

async fn calls_go_so_deep_and_no_deeper(world: &World) {
    let api = &world.api;
    let (first, second) = (api.workflow("First").await, api.workflow("Second").await);
    for (own, other) in [(&first, &second), (&second, &first)] {
        let flow = graphs::chain(&[
            ("workflow_trigger", json!({})),
            ("run_workflow", json!({ "workflowId": other })),
        ]);
        api.edit(own, flow).await;
        api.go_live(own).await;
    }
    let run = api.start(&first, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "failed");
    assert!(
        text(&report["error"]).contains("DEPTH_LIMIT: runs call one another at most 16 levels deep"),
        "{report}"
    );
    let all = runs(api, &first).await.len() + runs(api, &second).await.len();
    assert_eq!(all, 17, "one that nobody called, and 16 below it");
}

async fn a_called_run_needs_a_credit(world: &World) {
    let api = &world.api;
    let callee = live(api, doubling()).await;
    let caller = caller(api, json!({ "workflowId": callee })).await;
    let change = contract::v1::UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        credits: Some(test_support::at_most(1)),
        ..Default::default()
    };
    world.admin.change(change).await;
    // The caller holds the only one.
    let run = api.start(&caller, json!({})).await;
    let report = api.ended(&run).await;
    let message = "the workflow cannot be run: no credits are left";
    assert_eq!(
        node(&report, 2)["error"],
        json!({ "code": "CHILD_FAILED", "message": message })
    );
    assert_eq!(runs(api, &callee).await, Vec::<Value>::new());
}
