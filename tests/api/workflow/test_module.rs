//! Trying out one node of an app.

use bytes::Bytes;
use contract::v1::{BillingStatus, UpdateOrganizationRequest};
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, graphs};

use crate::credential::bearer;
use crate::world::World;

on_both_databases!(
    a_module_is_executed_and_nothing_is_recorded,
    a_failure_is_an_output,
    only_nodes_of_apps_are_tried_out,
    an_unpaid_bill_stops_trials,
);

/// A service that tells the path and the key of what it was asked.
async fn echo() -> Target {
    Target::start(|asked: &Asked| {
        let told = json!({
            "uri": asked.uri.to_string(),
            "authorization": asked.header("authorization"),
            "key": asked.header("idempotency-key"),
        });
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(told.to_string())).unwrap()
    })
    .await
}

/// A trigger (1), a node with a number (2) and a module of an app (3).
async fn asking(world: &World, params: Value) -> String {
    let credential = bearer(world, "module-token").await;
    let mut operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "n": 5 } })),
    ]);
    let module = json!({
        "op": "add_node", "tempId": "ask", "appId": "http", "moduleSlug": "request", "after": "n2",
        "credentialId": credential, "params": params,
    });
    operations.as_array_mut().unwrap().push(module);
    world.api.workflow_with("x", operations).await
}

async fn try_out(world: &World, workflow: &str, node: Value) -> test_support::Answer {
    let path = format!("/workflows/{workflow}/test-module");
    world.api.post(path, json!({ "nodeId": node })).await
}

async fn a_module_is_executed_and_nothing_is_recorded(world: &World) {
    let service = echo().await;
    let secret = json!({ "value": "s3cret-word", "isSecret": true });
    let _ = world.api.put("/variables/HUSH", secret).await.data(201);
    let query = json!({ "hush": "{{$vars.HUSH}}", "trigger": "{{$run.trigger.kind}}" });
    let workflow = asking(world, json!({ "url": service.url("/{{2.n}}"), "query": query })).await;
    // Before the first run there is nothing to see.
    let before = try_out(world, &workflow, json!(3)).await.data(200);
    assert!(
        before["body"]["uri"]
            .as_str()
            .is_none_or(|uri| !uri.starts_with("/5")),
        "{before}"
    );
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&run).await;
    let (first, second) = (
        try_out(world, &workflow, json!(3)).await.data(200),
        try_out(world, &workflow, json!("3")).await.data(200),
    );
    assert_eq!(
        (&first["status"], &first["body"]["uri"]),
        (&json!(200), &json!("/5?hush=***&trigger=manual"))
    );
    assert_ne!(
        first["body"]["authorization"], "",
        "the credential was sent: {first}"
    );
    assert_ne!(
        first["body"]["key"], second["body"]["key"],
        "each trial is a request of its own"
    );
    let (runs, _) = world.api.get(format!("/runs?workflowId={workflow}")).await.page();
    assert_eq!(runs.len(), 1);
}

async fn a_failure_is_an_output(world: &World) {
    let workflow = asking(world, json!({ "url": "http://127.0.0.1:1/" })).await;
    let output = try_out(world, &workflow, json!(3)).await.data(200);
    let code = output["error"]["code"].as_str().unwrap_or_default();
    assert!(code.starts_with("HTTP_"), "{output}");
    assert!(output["error"]["message"].is_string());
}

async fn only_nodes_of_apps_are_tried_out(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    for node in [
        json!(1),
        json!("2"),
        json!(99),
        json!("one"),
        json!(""),
        json!(1.5),
        Value::Null,
    ] {
        try_out(world, &workflow, node).await.invalid("nodeId");
    }
    let path = format!("/workflows/{workflow}/test-module");
    world.api.post(&path, json!({})).await.invalid("nodeId");
    try_out(world, "wf_unknown", json!(1))
        .await
        .error(404, "NOT_FOUND");
    let stranger = world.stranger().await;
    stranger
        .post(&path, json!({ "nodeId": 1 }))
        .await
        .error(404, "NOT_FOUND");
    // Parameters that are not finished yet.
    let workflow = asking(world, json!({})).await;
    try_out(world, &workflow, json!(3)).await.invalid("params.url");
}

async fn an_unpaid_bill_stops_trials(world: &World) {
    let service = echo().await;
    let workflow = asking(world, json!({ "url": service.url("/") })).await;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(change).await;
    try_out(world, &workflow, json!(3))
        .await
        .error(402, "PAYMENT_REQUIRED");
}
