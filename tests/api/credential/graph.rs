//! Credentials that workflows name.

use serde_json::{Value, json};
use test_support::text;

use super::{bearer, create};
use crate::world::World;

on_both_databases!(
    operations_check_whose_credential_it_is,
    a_graph_names_credentials_that_cannot_be_used,
);

/// A trigger and a request of the app `http`.
fn request_of_http() -> Value {
    json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "ask", "appId": "http", "moduleSlug": "request", "after": "start",
          "params": { "url": "https://api.example.com/" } },
    ])
}

/// The errors of operations that may fail.
async fn errors(world: &World, workflow: &str, operations: Value) -> Vec<String> {
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let body = json!({ "ops": operations, "expectedUpdatedAt": draft["updatedAt"] });
    let result = world
        .api
        .post(format!("/workflows/{workflow}/ops"), body)
        .await
        .data(200);
    result["errors"].as_array().unwrap().iter().map(text).collect()
}

async fn operations_check_whose_credential_it_is(world: &World) {
    let own = bearer(world, "token").await;
    let stranger = world.stranger().await;
    let body = json!({ "appId": "http", "connectionId": "bearer", "name": "x", "data": { "token": "t" } });
    let foreign = text(&stranger.post("/credentials", body).await.data(200)["credentialId"]);
    let workflow = world.api.workflow_with("x", request_of_http()).await;
    let found = errors(
        world,
        &workflow,
        json!([
            { "op": "set_credential", "nodeId": 2, "credentialId": foreign },
            { "op": "set_credential", "nodeId": 2, "credentialId": "cred_none" },
            { "op": "add_node", "tempId": "n", "appId": "http", "moduleSlug": "request", "credentialId": foreign },
            { "op": "set_credential", "nodeId": 2, "credentialId": own },
            { "op": "add_node", "tempId": "m", "kind": "set", "credentialId": own, "params": { "fields": {} } },
        ]),
    )
    .await;
    assert_eq!(found.len(), 3, "{found:?}");
    for (error, beginning) in found.iter().zip([
        "ops[0] set_credential: CREDENTIAL_NOT_FOUND",
        "ops[1] set_credential: CREDENTIAL_NOT_FOUND",
        "ops[2] add_node: CREDENTIAL_NOT_FOUND",
    ]) {
        assert!(error.starts_with(beginning), "{error}");
    }
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    assert_eq!(
        (
            &draft["nodes"][1]["credentialId"],
            draft["nodes"].as_array().unwrap().len()
        ),
        (&json!(own), 3)
    );
    let found = errors(
        world,
        &workflow,
        json!([{ "op": "set_credential", "nodeId": 2, "credentialId": null }]),
    )
    .await;
    assert!(found.is_empty());
}

async fn a_graph_names_credentials_that_cannot_be_used(world: &World) {
    let waiting = text(&create(world, "bearer", json!({})).await["credentialId"]);
    let workflow = world.api.workflow_with("x", request_of_http()).await;
    let set = json!([{ "op": "set_credential", "nodeId": 2, "credentialId": waiting }]);
    let _ = world.api.edit(&workflow, set).await;
    let validate = async || {
        world
            .api
            .post(format!("/workflows/{workflow}/validate"), json!({}))
            .await
            .data(200)
    };
    let found = validate().await;
    assert_eq!(found["valid"], false);
    let issue = text(&found["issues"][0]);
    assert!(
        issue.contains("nodes[2].credentialId") && issue.contains("credential_required"),
        "{issue}"
    );
    for path in ["deploy", "runs"] {
        let refused = world
            .api
            .post(format!("/workflows/{workflow}/{path}"), json!({}))
            .await;
        let error = refused.error(400, "TOPOLOGY_INVALID");
        assert_eq!(error["details"][0]["path"], "nodes[2].credentialId", "{error}");
    }
    let _ = world
        .api
        .delete(format!("/credentials/{waiting}"))
        .await
        .data(200);
    let issue = text(&validate().await["issues"][0]);
    assert!(issue.contains("does not exist"), "{issue}");
    let own = bearer(world, "token").await;
    let set = json!([{ "op": "set_credential", "nodeId": 2, "credentialId": own }]);
    let _ = world.api.edit(&workflow, set).await;
    assert_eq!(validate().await, json!({ "valid": true, "issues": [] }));
}
