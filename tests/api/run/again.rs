//! Running again what has ended: the whole run, or from a node that failed.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    a_rerun_is_a_new_attempt_of_the_same_run,
    a_rerun_follows_the_graph_and_the_input_of_the_first,
    a_failed_node_is_resumed,
    what_cannot_run_again_is_refused,
);

/// Doubles a number that the run is given, or fails without one.
fn doubling() -> Value {
    graphs::chain(&[
        ("webhook_trigger", json!({})),
        ("set", json!({ "fields": { "kept": true } })),
        ("set", json!({ "fields": { "double": "{{1.body.number * 2}}" } })),
        ("set", json!({ "fields": { "last": "{{3.double}}" } })),
    ])
}

/// A run of the deployed workflow with this body, ended.
async fn called(world: &World, body: Value) -> Value {
    let workflow = world.api.workflow_with("x", doubling()).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let accepted = world.api.call_hook(&webhook, &[], body).await.data(202);
    world.api.ended(accepted["runId"].as_str().unwrap()).await
}

async fn a_rerun_is_a_new_attempt_of_the_same_run(world: &World) {
    let first = called(world, json!({ "number": 21 })).await;
    let run = first["id"].as_str().unwrap();
    let again = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    assert_eq!(
        (&again["runId"], &again["attemptNumber"]),
        (&json!(run), &json!(2))
    );
    assert!(
        again["status"].is_string() && again["updatedAt"].is_i64(),
        "{again}"
    );
    let second = world.api.ended(run).await;
    assert_eq!(
        (&second["attemptNumber"], &second["status"]),
        (&json!(2), &json!("succeeded"))
    );
    assert_eq!(second["nodes"][3]["output"], json!({ "last": 42 }));
    assert_eq!(second["createdAt"], first["createdAt"]);
    // What ran twice costs twice.
    assert_eq!(
        (&first["creditsUsed"], &second["creditsUsed"]),
        (&json!(3.0), &json!(6.0))
    );
}

async fn a_rerun_follows_the_graph_and_the_input_of_the_first(world: &World) {
    let first = called(world, json!({ "number": 1 })).await;
    let (run, workflow) = (
        first["id"].as_str().unwrap(),
        first["workflowId"].as_str().unwrap(),
    );
    let changed =
        json!([{ "op": "update_params", "nodeId": 4, "params": { "fields": { "last": "changed" } } }]);
    world.api.edit(workflow, changed).await;
    let _ = world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200);
    let _ = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    let second = world.api.ended(run).await;
    assert_eq!(
        (&second["versionNo"], &second["trigger"]),
        (&json!(1), &first["trigger"])
    );
    assert_eq!(second["nodes"][3]["output"], json!({ "last": 2 }));
}

async fn a_failed_node_is_resumed(world: &World) {
    let first = called(world, json!({})).await;
    assert_eq!(first["status"], "failed");
    let run = first["id"].as_str().unwrap();
    let path = format!("/runs/{run}/retry-node");
    world
        .api
        .post(&path, json!({ "nodeId": 3, "attemptNumber": 2 }))
        .await
        .error(400, "attempt_mismatch");
    let resumed = world
        .api
        .post(&path, json!({ "nodeId": 3, "attemptNumber": 1 }))
        .await
        .data(200);
    assert_eq!((&resumed["runId"], &resumed["nodeId"]), (&json!(run), &json!(3)));
    assert_eq!(resumed["attemptNumber"], 1);
    assert!(
        resumed["status"].is_string() && resumed["updatedAt"].is_i64(),
        "{resumed}"
    );
    let second = world.api.ended(run).await;
    // The same input fails again; what was done before it was not done again.
    assert_eq!(
        (&second["status"], &second["attemptNumber"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(second["nodes"][1], first["nodes"][1]);
    assert_eq!(second["nodes"][2]["status"], "failed");
}

async fn what_cannot_run_again_is_refused(world: &World) {
    let ended = called(world, json!({ "number": 1 })).await;
    let run = ended["id"].as_str().unwrap();
    for (body, place) in [
        (json!({ "nodeId": 3 }), "nodeId"),
        (json!({ "nodeId": 99 }), "nodeId"),
        (json!({}), "nodeId"),
        (json!({ "nodeId": "3" }), "nodeId"),
    ] {
        world
            .api
            .post(format!("/runs/{run}/retry-node"), body)
            .await
            .invalid(place);
    }
    let workflow = world.api.workflow_with("y", graphs::long_wait()).await;
    let waiting = world.api.start(&workflow, json!({})).await;
    let _ = world.api.reached(&waiting, &["waiting"]).await;
    world
        .api
        .post(format!("/runs/{waiting}/rerun"), json!({}))
        .await
        .error(400, "run_not_terminal");
    world
        .api
        .post("/runs/run_unknown/rerun", json!({}))
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .post("/runs/run_unknown/retry-node", json!({ "nodeId": 1 }))
        .await
        .error(404, "NOT_FOUND");
}
