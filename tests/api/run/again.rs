//! Runs run again: whole, as a new attempt, and from a failed node on.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    a_rerun_is_the_next_attempt_of_the_same_run,
    only_an_ended_run_is_run_again,
    a_retried_node_goes_on_in_the_same_attempt,
    only_a_failed_node_is_retried,
    another_attempt_than_the_named_one_is_refused,
);

/// A run whose second node fails: what it multiplies is missing.
async fn failed_run(world: &World) -> String {
    let operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "x": "{{1.missing * 2}}" } })),
        ("set", json!({ "fields": { "y": 1 } })),
    ]);
    let workflow = world.api.workflow_with("Fails", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    assert_eq!(world.api.ended(&run).await["status"], "failed");
    run
}

async fn a_rerun_is_the_next_attempt_of_the_same_run(world: &World) {
    let workflow = world.api.workflow_with("Again", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let first = world.api.ended(&run).await;
    let rerun = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    assert_eq!(
        (&rerun["runId"], &rerun["attemptNumber"]),
        (&json!(run), &json!(2))
    );
    assert!(
        rerun["status"].is_string() && rerun["updatedAt"].is_i64(),
        "{rerun}"
    );
    let second = world.api.ended(&run).await;
    assert_eq!(
        (&second["status"], &second["attemptNumber"]),
        (&json!("succeeded"), &json!(2))
    );
    let outputs = |report: &Value| -> Vec<Value> {
        report["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| node["output"].clone())
            .collect()
    };
    assert_eq!(outputs(&first), outputs(&second));
    assert_eq!(
        second["creditsUsed"].as_f64(),
        first["creditsUsed"].as_f64().map(|credits| credits * 2.0)
    );
    let runs = world.api.all_pages(&format!("/runs?workflowId={workflow}")).await;
    assert_eq!(runs.len(), 1, "a rerun is not another run");
}

async fn only_an_ended_run_is_run_again(world: &World) {
    let workflow = world.api.workflow_with("Waits", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .error(400, "run_not_terminal");
    let retry = json!({ "nodeId": 2 });
    world
        .api
        .post(format!("/runs/{run}/retry-node"), retry)
        .await
        .error(400, "run_not_terminal");
    world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    world
        .api
        .post("/runs/run_00000000000000000000000000/rerun", json!({}))
        .await
        .error(404, "NOT_FOUND");
    let stranger = world.stranger().await;
    stranger
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .error(404, "NOT_FOUND");
}

async fn a_retried_node_goes_on_in_the_same_attempt(world: &World) {
    let run = failed_run(world).await;
    let retried = world
        .api
        .post(format!("/runs/{run}/retry-node"), json!({ "nodeId": 2 }))
        .await
        .data(200);
    assert_eq!(
        (&retried["nodeId"], &retried["attemptNumber"]),
        (&json!(2), &json!(1))
    );
    let report = world.api.ended(&run).await;
    // It fails again, for the same reason, and has cost twice.
    assert_eq!(
        (&report["status"], &report["attemptNumber"]),
        (&json!("failed"), &json!(1))
    );
    let node = report["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["nodeId"] == 2)
        .cloned();
    assert_eq!(node.unwrap()["error"]["code"], "EXPRESSION_ERROR");
}

async fn only_a_failed_node_is_retried(world: &World) {
    let run = failed_run(world).await;
    for wrong in [1, 3, 99, -1] {
        world
            .api
            .post(format!("/runs/{run}/retry-node"), json!({ "nodeId": wrong }))
            .await
            .invalid("nodeId");
    }
    world
        .api
        .post(format!("/runs/{run}/retry-node"), json!({}))
        .await
        .invalid("nodeId");
}

async fn another_attempt_than_the_named_one_is_refused(world: &World) {
    let run = failed_run(world).await;
    let path = format!("/runs/{run}/retry-node");
    world
        .api
        .post(&path, json!({ "nodeId": 2, "attemptNumber": 2 }))
        .await
        .error(400, "attempt_mismatch");
    world
        .api
        .post(&path, json!({ "nodeId": 2, "attemptNumber": 1 }))
        .await
        .data(200);
}
