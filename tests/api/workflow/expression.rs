//! Evaluating an expression against a run.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    an_expression_is_evaluated_against_the_latest_run,
    what_is_wrong_is_part_of_the_answer,
);

async fn an_expression_is_evaluated_against_the_latest_run(world: &World) {
    let workflow = world.api.workflow_with("Orders", graphs::order_flow()).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let mut runs = Vec::new();
    for price in [60, 10] {
        let order = json!({ "id": price, "price": price, "customer": "Ada", "tags": ["a", "b"] });
        let run = world.api.call_hook(&webhook, &[], order).await.data(202)["runId"].clone();
        let _ = world.api.ended(run.as_str().unwrap()).await;
        runs.push(run);
    }
    let path = format!("/workflows/{workflow}/resolve-expression");
    for (expression, value, kind) in [
        ("{{2.total}}", json!(20), "number"),
        ("2.total", json!(20), "number"),
        (
            "{{1.body}}",
            json!({ "id": 10, "price": 10, "customer": "Ada", "tags": ["a", "b"] }),
            "object",
        ),
        ("1.body.tags[-1]", json!("b"), "string"),
        ("{{1.body.tags}}", json!(["a", "b"]), "array"),
        ("{{2.total > 100}}", json!(false), "boolean"),
        (
            "{{2.label}} of {{$workflow.name}}",
            json!("Order 10 of Ada of Orders"),
            "string",
        ),
    ] {
        let answer = world
            .api
            .post(&path, json!({ "expression": expression }))
            .await
            .data(200);
        let wanted = json!({ "resolved": value, "resolvedType": kind, "truncated": false, "error": null });
        assert_eq!(answer, wanted, "{expression}");
    }
    let earlier = json!({ "expression": "{{2.total}}", "runId": runs[0] });
    assert_eq!(world.api.post(&path, earlier).await.data(200)["resolved"], 120);
    // A node sees what is above it.
    let above = json!({ "expression": "{{2.total}}", "fromNodeId": "3" });
    assert_eq!(world.api.post(&path, above).await.data(200)["resolved"], 20);
    let beside = json!({ "expression": "{{2.total}}", "fromNodeId": "2" });
    assert_eq!(
        world.api.post(&path, beside).await.data(200)["resolved"],
        Value::Null
    );
}

async fn what_is_wrong_is_part_of_the_answer(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/resolve-expression");
    let failed = async |body: Value| {
        let answer = world.api.post(&path, body).await.data(200);
        assert_eq!(
            (&answer["resolved"], &answer["truncated"]),
            (&Value::Null, &json!(false))
        );
        assert!(answer.get("resolvedType").is_none(), "{answer}");
        assert!(
            answer["error"].as_str().is_some_and(|error| !error.is_empty()),
            "{answer}"
        );
    };
    failed(json!({ "expression": "{{2.answer}}" })).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&run).await;
    for expression in ["{{1 +}}", "{{2.answer * 'x'}}", "{{nothing(1)}}"] {
        failed(json!({ "expression": expression })).await;
    }
    failed(json!({ "expression": "{{2.answer}}", "runId": "run_unknown" })).await;
    failed(json!({ "expression": "{{2.answer}}", "fromNodeId": "99" })).await;
    for body in [
        json!({}),
        json!({ "expression": "" }),
        json!({ "expression": null }),
    ] {
        world.api.post(&path, body).await.invalid("expression");
    }
    let missing = world
        .api
        .post(
            "/workflows/wf_unknown/resolve-expression",
            json!({ "expression": "1" }),
        )
        .await;
    missing.error(404, "NOT_FOUND");
}
