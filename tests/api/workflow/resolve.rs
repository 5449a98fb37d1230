//! Expressions resolved against past runs. Whatever is wrong with them is told in the answer.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    an_expression_sees_the_outputs_of_the_latest_run,
    a_node_sees_only_what_is_above_it,
    what_is_wrong_is_part_of_the_answer,
    long_strings_are_cut,
    variables_resolve_but_secrets_do_not,
);

async fn resolve(world: &World, workflow: &str, body: Value) -> Value {
    world
        .api
        .post(format!("/workflows/{workflow}/resolve-expression"), body)
        .await
        .data(200)
}

async fn flow(world: &World) -> String {
    let operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "set",
            json!({ "fields": { "total": 6, "name": "a", "list": [1, 2] } }),
        ),
        ("set", json!({ "fields": { "long": "{{repeat(\"ä\", 10001)}}" } })),
    ]);
    world.api.workflow_with("Resolved", operations).await
}

async fn run_flow(world: &World) -> (String, String) {
    let workflow = flow(world).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ended = world.api.ended(&run).await;
    (workflow, run)
}

async fn an_expression_sees_the_outputs_of_the_latest_run(world: &World) {
    let (workflow, run) = run_flow(world).await;
    for (expression, resolved, kind) in [
        ("{{2.total * 2}}", json!(12), "number"),
        ("2.name", json!("a"), "string"),
        ("{{2.list}}", json!([1, 2]), "array"),
        ("2", json!({ "total": 6, "name": "a", "list": [1, 2] }), "object"),
        ("{{2.total = 6}}", json!(true), "boolean"),
        ("total: {{2.total}}", json!("total: 6"), "string"),
        ("{{$run.id}}", json!(run), "string"),
    ] {
        let answer = resolve(world, &workflow, json!({ "expression": expression })).await;
        let expected =
            json!({ "resolved": resolved, "resolvedType": kind, "truncated": false, "error": null });
        assert_eq!(answer, expected, "{expression}");
    }
    let named = resolve(world, &workflow, json!({ "expression": "2.name", "runId": run })).await;
    assert_eq!(named["resolved"], "a");
}

async fn a_node_sees_only_what_is_above_it(world: &World) {
    let (workflow, _) = run_flow(world).await;
    let above = resolve(
        world,
        &workflow,
        json!({ "expression": "2.total", "fromNodeId": "3" }),
    )
    .await;
    assert_eq!(above["resolved"], 6);
    let itself = resolve(
        world,
        &workflow,
        json!({ "expression": "2.total", "fromNodeId": "2" }),
    )
    .await;
    assert_eq!(
        (&itself["resolved"], itself.get("resolvedType")),
        (&Value::Null, None)
    );
}

async fn what_is_wrong_is_part_of_the_answer(world: &World) {
    let workflow = flow(world).await;
    let without_run = resolve(world, &workflow, json!({ "expression": "1" })).await;
    assert!(
        without_run["error"].as_str().unwrap().contains("no runs yet"),
        "{without_run}"
    );
    let run = world.api.start(&workflow, json!({})).await;
    let _ended = world.api.ended(&run).await;
    for body in [
        json!({ "expression": "{{1 +" }),
        json!({ "expression": "{{nothing(1)}}" }),
        json!({ "expression": "{{2.name * 2}}" }),
        json!({ "expression": "x".repeat(10_001) }),
        json!({ "expression": "1", "runId": "run_00000000000000000000000000" }),
        json!({ "expression": "1", "fromNodeId": "99" }),
    ] {
        let answer = resolve(world, &workflow, body.clone()).await;
        assert!(
            answer["resolved"].is_null() && answer["error"].is_string(),
            "{body}: {answer}"
        );
    }
    let path = format!("/workflows/{workflow}/resolve-expression");
    world.api.post(&path, json!({})).await.invalid("expression");
    world
        .api
        .post(&path, json!({ "expression": "1", "fromNodeId": "x" }))
        .await
        .invalid("fromNodeId");
}

async fn long_strings_are_cut(world: &World) {
    let (workflow, _) = run_flow(world).await;
    let answer = resolve(world, &workflow, json!({ "expression": "3.long" })).await;
    assert_eq!(answer["truncated"], true);
    assert_eq!(
        answer["resolved"].as_str().map(|text| text.chars().count()),
        Some(10_000)
    );
}

async fn variables_resolve_but_secrets_do_not(world: &World) {
    let _ = world
        .api
        .put("/variables/CITY", json!({ "value": "Bern" }))
        .await
        .data(201);
    let _ = world
        .api
        .put(
            "/variables/TOKEN",
            json!({ "value": "hidden-away", "isSecret": true }),
        )
        .await
        .data(201);
    let (workflow, _) = run_flow(world).await;
    let plain = resolve(world, &workflow, json!({ "expression": "{{$vars.CITY}}" })).await;
    assert_eq!(plain["resolved"], "Bern");
    let secret = resolve(world, &workflow, json!({ "expression": "{{$vars.TOKEN}}" })).await;
    assert!(secret["error"].as_str().unwrap().contains("TOKEN"), "{secret}");
    assert!(!secret.to_string().contains("hidden-away"));
}
