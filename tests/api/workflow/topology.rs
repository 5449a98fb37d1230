//! The gate that every graph passes: what it refuses, and what `validate` says of a draft.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    what_is_no_graph_is_refused,
    a_draft_may_be_incomplete_and_validate_says_so,
);

async fn what_is_no_graph_is_refused(world: &World) {
    let set = || ("set", json!({ "fields": {} }));
    let chain = graphs::chain(&[
        ("manual_trigger", json!({})),
        set(),
        set(),
        set(),
        ("stop", json!({})),
    ]);
    let workflow = world.api.workflow_with("x", chain).await;
    let path = format!("/workflows/{workflow}");
    let before = world.api.get(&path).await.data(200);
    let connect =
        |from: i64, to: i64, edge: &str| json!({ "op": "connect", "from": from, "to": to, "type": edge });
    for (what, ops, named) in [
        ("a cycle", json!([connect(4, 2, "normal")]), "nodes[2]"),
        ("a self-loop", json!([connect(3, 3, "normal")]), "nodes[3]"),
        ("into a trigger", json!([connect(3, 1, "normal")]), "nodes[1]"),
        ("out of a stop", json!([connect(5, 3, "normal")]), "nodes[5]"),
        (
            "an error edge of a trigger",
            json!([connect(1, 4, "error")]),
            "nodes[1]",
        ),
        (
            "two fallbacks",
            json!([connect(2, 4, "fallback"), connect(2, 5, "fallback")]),
            "nodes[2]",
        ),
    ] {
        let body = json!({ "ops": ops, "expectedUpdatedAt": before["updatedAt"] });
        let error = world
            .api
            .post(format!("{path}/ops"), body)
            .await
            .error(400, "TOPOLOGY_INVALID");
        let details = error["details"].as_array().unwrap();
        assert!(
            details.iter().any(|detail| named_in(detail, named)),
            "{what}: {error}"
        );
    }
    assert_eq!(world.api.get(&path).await.data(200), before);
}

/// Whether a detail is about this place, or about an edge at it.
fn named_in(detail: &Value, place: &str) -> bool {
    let path = detail["path"].as_str().unwrap();
    path == place || path.starts_with("edges[") && !detail["message"].as_str().unwrap().is_empty()
}

async fn a_draft_may_be_incomplete_and_validate_says_so(world: &World) {
    let workflow = world.api.workflow("x").await;
    let validate = format!("/workflows/{workflow}/validate");
    let empty = world.api.post(&validate, json!({})).await.data(200);
    assert_eq!(empty["valid"], false);
    assert!(!empty["issues"].as_array().unwrap().is_empty());
    let incomplete = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({})),
        ("wait", json!({})),
    ]);
    world.api.edit(&workflow, incomplete).await;
    let told = world.api.post(&validate, json!({})).await.data(200);
    assert_eq!(told["valid"], false);
    let issues = told["issues"].to_string();
    assert!(
        issues.contains("nodes[2].params.fields") && issues.contains("nodes[3].params"),
        "{issues}"
    );
    let deploy = world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await;
    deploy.error(400, "TOPOLOGY_INVALID");
    let start = world
        .api
        .post(format!("/workflows/{workflow}/runs"), json!({}))
        .await;
    start.error(400, "TOPOLOGY_INVALID");
    world
        .api
        .edit(
            &workflow,
            json!([
                { "op": "update_params", "nodeId": 2, "params": { "fields": {} } },
                { "op": "update_params", "nodeId": 3, "params": { "amount": 1, "unit": "seconds" } },
            ]),
        )
        .await;
    let sound = world.api.post(&validate, json!({})).await.data(200);
    assert_eq!(sound, json!({ "valid": true, "issues": [] }));
    // No body at all is an empty one.
    let path = format!("/api/v1{validate}");
    let bare = world
        .api
        .send(http::Method::POST, &path, &[], bytes::Bytes::new())
        .await;
    assert_eq!(bare.data(200)["valid"], true);
}
