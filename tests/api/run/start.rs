//! Starting runs.

use std::collections::BTreeSet;

use contract::v1::{BillingStatus, SetPlanRequest, UpdateOrganizationRequest};
use serde_json::{Value, json};
use test_support::{at_most, graphs, text, together};

use crate::world::World;

on_both_databases!(
    a_key_makes_a_repeated_start_one_run,
    of_fifty_starts_with_one_key_one_counts,
    a_key_belongs_to_its_body_and_its_workflow,
    keys_are_visible_ascii,
    a_scoped_run_takes_its_inputs_from_the_caller,
    a_scoped_run_takes_its_inputs_from_a_run,
    seeds_that_cannot_be_used_are_refused,
    nothing_to_start_is_refused,
    bills_and_credits_come_last,
);

async fn a_key_makes_a_repeated_start_one_run(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/runs");
    let first = world
        .api
        .post_with(
            &path,
            &[("idempotency-key", "k 1".trim_end_matches(" 1"))],
            json!({}),
        )
        .await;
    let run = first.data(201)["runId"].clone();
    assert_eq!(first.header("idempotent-replayed"), "");
    let again = world
        .api
        .post_with(&path, &[("idempotency-key", "k")], json!({}))
        .await;
    assert_eq!(again.data(201)["runId"], run);
    assert_eq!(again.header("idempotent-replayed"), "true");
    let without = world.api.start(&workflow, json!({})).await;
    assert_ne!(run, without);
    // The replay is answered whatever the bill says.
    let overdue = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(overdue).await;
    let replayed = world
        .api
        .post_with(&path, &[("idempotency-key", "k")], json!({}))
        .await;
    assert_eq!(replayed.data(201)["runId"], run);
}

async fn of_fifty_starts_with_one_key_one_counts(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let starts = (0..50).map(|_| {
        let (api, path) = (world.api.clone(), format!("/workflows/{workflow}/runs"));
        async move {
            let answer = api
                .post_with(path, &[("idempotency-key", "once")], json!({}))
                .await;
            (
                text(&answer.data(201)["runId"]),
                answer.header("idempotent-replayed") == "true",
            )
        }
    });
    let answers = together(starts).await;
    let runs: BTreeSet<&String> = answers.iter().map(|(run, _)| run).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(answers.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert_eq!(
        world
            .api
            .all_pages(&format!("/runs?workflowId={workflow}"))
            .await
            .len(),
        1
    );
}

async fn a_key_belongs_to_its_body_and_its_workflow(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/runs");
    let key = [("idempotency-key", "k")];
    let run = world
        .api
        .post_with(&path, &key, json!({ "nodeId": "1" }))
        .await
        .data(201)["runId"]
        .clone();
    for other in [json!({}), json!({ "nodeId": "2" })] {
        world
            .api
            .post_with(&path, &key, other)
            .await
            .error(409, "idempotency_key_reused");
    }
    let second = world.api.workflow_with("y", graphs::small_flow()).await;
    let path = format!("/workflows/{second}/runs");
    let started = world.api.post_with(&path, &key, json!({})).await;
    assert_ne!(started.data(201)["runId"], run);
    assert_eq!(started.header("idempotent-replayed"), "");
}

async fn keys_are_visible_ascii(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/runs");
    for wrong in ["", "a b", "käse", &"x".repeat(256)] {
        let answer = world
            .api
            .post_with(&path, &[("idempotency-key", wrong)], json!({}))
            .await;
        answer.error(400, "VALIDATION_ERROR");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    world
        .api
        .post_with(&path, &twice, json!({}))
        .await
        .error(400, "VALIDATION_ERROR");
    let longest = "~".repeat(255);
    let _ = world
        .api
        .post_with(&path, &[("idempotency-key", &longest)], json!({}))
        .await
        .data(201);
}

/// Two computed nodes after a trigger, the second from the first.
fn doubling() -> Value {
    graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "number": 20 } })),
        ("set", json!({ "fields": { "double": "{{2.number * 2}}" } })),
    ])
}

async fn a_scoped_run_takes_its_inputs_from_the_caller(world: &World) {
    let workflow = world.api.workflow_with("x", doubling()).await;
    let body = json!({ "nodeId": "3", "upstreamOutputs": { "2": { "number": 5 } } });
    let run = world.api.start(&workflow, body).await;
    let report = world.api.ended(&run).await;
    let nodes = report["nodes"].as_array().unwrap();
    let ran: Vec<_> = nodes
        .iter()
        .filter(|node| !node["startedAt"].is_null())
        .map(|node| &node["nodeId"])
        .collect();
    assert_eq!(ran, [3]);
    let last = nodes.iter().find(|node| node["nodeId"] == 3).unwrap();
    assert_eq!(last["output"], json!({ "double": 10 }));
    assert_eq!(report["trigger"], json!({ "kind": "manual", "nodeId": 3 }));
    assert_eq!(
        (&report["versionNo"], &report["createdBy"]),
        (&Value::Null, &json!(world.owner))
    );
}

async fn a_scoped_run_takes_its_inputs_from_a_run(world: &World) {
    let workflow = world.api.workflow_with("x", doubling()).await;
    let first = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&first).await;
    let changed = json!([{ "op": "update_params", "nodeId": 2, "params": { "fields": { "number": 1 } } }]);
    world.api.edit(&workflow, changed).await;
    for body in [
        json!({ "seedFromRun": { "runId": first, "nodeId": 3 } }),
        json!({ "nodeId": "3", "seedFromRun": { "runId": first } }),
        json!({ "nodeId": "3", "seedFromRun": { "runId": first, "nodeId": 3 } }),
    ] {
        let run = world.api.start(&workflow, body).await;
        let report = world.api.ended(&run).await;
        let last = report["nodes"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["output"], json!({ "double": 40 }), "{report}");
    }
}

async fn seeds_that_cannot_be_used_are_refused(world: &World) {
    let workflow = world.api.workflow_with("x", doubling()).await;
    let path = format!("/workflows/{workflow}/runs");
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&run).await;
    let other = world.api.workflow_with("y", doubling()).await;
    let elsewhere = world.api.start(&other, json!({})).await;
    for (body, place) in [
        (json!({ "nodeId": "9" }), "nodeId"),
        (json!({ "nodeId": "three" }), "nodeId"),
        (json!({ "nodeId": 3 }), "nodeId"),
        (
            json!({ "nodeId": "3", "upstreamOutputs": { "two": {} } }),
            "upstreamOutputs.two",
        ),
        (
            json!({ "nodeId": "3", "seedFromRun": { "runId": "run_unknown" } }),
            "seedFromRun.runId",
        ),
        (
            json!({ "nodeId": "3", "seedFromRun": { "runId": elsewhere } }),
            "seedFromRun.runId",
        ),
        (
            json!({ "nodeId": "2", "seedFromRun": { "runId": run, "nodeId": 3 } }),
            "seedFromRun.nodeId",
        ),
        (json!({ "seedFromRun": { "runId": run } }), "seedFromRun.nodeId"),
        (json!({ "seedFromRun": { "nodeId": 3 } }), "seedFromRun.runId"),
        (
            json!({ "nodeId": "3", "seedFromRun": { "runId": run }, "upstreamOutputs": { "2": {} } }),
            "seedFromRun",
        ),
    ] {
        world.api.post(&path, body).await.invalid(place);
    }
    let unknown = world.api.post("/workflows/wf_unknown/runs", json!({})).await;
    unknown.error(404, "NOT_FOUND");
}

async fn nothing_to_start_is_refused(world: &World) {
    let workflow = world.api.workflow("x").await;
    let path = format!("/workflows/{workflow}/runs");
    world
        .api
        .post(&path, json!({}))
        .await
        .error(400, "TOPOLOGY_INVALID");
    world
        .api
        .edit(&workflow, graphs::chain(&[("manual_trigger", json!({}))]))
        .await;
    let disabled = json!([{ "op": "update_config", "nodeId": 1, "config": { "disabled": true } }]);
    world.api.edit(&workflow, disabled).await;
    world
        .api
        .post(&path, json!({}))
        .await
        .error(400, "TOPOLOGY_INVALID");
    // Without a trigger, the nodes that nothing leads to begin.
    let loose = json!([
        { "op": "remove_node", "nodeId": 1 },
        { "op": "add_node", "tempId": "a", "kind": "set", "params": { "fields": { "a": 1 } } },
        { "op": "add_node", "tempId": "b", "kind": "set", "params": { "fields": { "b": 2 } } },
    ]);
    world.api.edit(&workflow, loose).await;
    let run = world.api.start(&workflow, json!({})).await;
    assert_eq!(world.api.ended(&run).await["nodes"].as_array().unwrap().len(), 2);
}

async fn bills_and_credits_come_last(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/runs");
    let change = |status: BillingStatus, credits: i64| UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: status.into(),
        credits: Some(at_most(credits)),
        ..Default::default()
    };
    world.admin.change(change(BillingStatus::PastDue, 5)).await;
    world
        .api
        .post(&path, json!({}))
        .await
        .error(402, "PAYMENT_REQUIRED");
    world
        .api
        .post(&path, json!({ "nodeId": "9" }))
        .await
        .invalid("nodeId");
    world.admin.change(change(BillingStatus::Ok, 1)).await;
    let run = world.api.start(&workflow, json!({})).await;
    assert_eq!(world.api.ended(&run).await["creditsUsed"], 1.0);
    world
        .api
        .post(&path, json!({}))
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
    world
        .api
        .post("/workflows/wf_unknown/runs", json!({}))
        .await
        .error(404, "NOT_FOUND");
    let plan = format!("idle-{}", world.organization.to_lowercase());
    let inactive = SetPlanRequest {
        id: plan.clone(),
        active: Some(false),
        ..Default::default()
    };
    world.admin.plan(inactive).await;
    let moved = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        plan_id: Some(plan),
        ..Default::default()
    };
    world.admin.change(moved).await;
    world
        .api
        .post(&path, json!({}))
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
}
