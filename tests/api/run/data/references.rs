//! Databases and structures that nodes name, and that are not there.

use serde_json::json;
use test_support::{graphs, text};

use super::{failure, products};
use crate::world::World;

on_both_databases!(
    what_does_not_exist_is_named_before_it_is_deployed,
    what_does_not_exist_fails_its_node,
    kinds_describe_themselves,
);

async fn what_does_not_exist_is_named_before_it_is_deployed(world: &World) {
    let (id, _) = products(world).await;
    let stranger = world.stranger().await;
    for id in [id.as_str(), "db_00000000000000000000000000"] {
        let nodes = graphs::chain(&[
            ("manual_trigger", json!({})),
            ("database_query", json!({ "databaseId": id })),
            ("database_query", json!({ "databaseId": "{{1.id}}" })),
            (
                "structure_validate",
                json!({ "structureId": "struct_none", "value": {} }),
            ),
        ]);
        let workflow = stranger.workflow_with("Foreign", nodes).await;
        let result = stranger
            .post(format!("/workflows/{workflow}/validate"), json!({}))
            .await
            .data(200);
        assert_eq!(
            result,
            json!({ "valid": false, "issues": [
                "nodes[2].params.databaseId: must be the id of a database of the organization",
                "nodes[4].params.structureId: must be the id of a structure of the organization",
            ] })
        );
        let refused = stranger
            .post(format!("/workflows/{workflow}/deploy"), json!({}))
            .await
            .error(400, "TOPOLOGY_INVALID");
        assert_eq!(
            refused["details"][0]["path"], "nodes[2].params.databaseId",
            "{refused}"
        );
    }
    let nodes = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("database_query", json!({ "databaseId": id })),
    ]);
    let workflow = world.api.workflow_with("Own", nodes).await;
    let deploy = format!("/workflows/{workflow}/deploy");
    let _ = world.api.post(&deploy, json!({})).await.data(200);
    let _ = world.api.delete(format!("/databases/{id}")).await.data(200);
    world
        .api
        .post(&deploy, json!({}))
        .await
        .error(400, "TOPOLOGY_INVALID");
}

async fn what_does_not_exist_fails_its_node(world: &World) {
    let (id, _) = products(world).await;
    let stranger = world.stranger().await;
    let row = json!({ "price": 1 });
    for (kind, more) in [
        ("database_insert", json!({ "row": row })),
        ("database_get", json!({ "match": row })),
        ("database_query", json!({})),
        ("database_update", json!({ "match": row, "row": row })),
        ("database_upsert", json!({ "match": row, "row": row })),
        ("database_delete", json!({ "filters": [] })),
    ] {
        let mut params = more;
        params["databaseId"] = json!("{{1.id}}");
        for id in [id.as_str(), "db_none", ""] {
            let (code, message) = failure(&stranger, kind, params.clone(), json!({ "id": id })).await;
            assert_eq!(code, "NOT_FOUND", "{kind} {id}: {message}");
        }
        let (code, _) = failure(&stranger, kind, params, json!({ "id": 5 })).await;
        assert_eq!(code, "EXPRESSION_ERROR");
    }
    let rows = world.api.get(format!("/databases/{id}/rows")).await.body(200);
    assert_eq!(rows["count"], 0);
    let params = json!({ "structureId": "{{1.id}}", "value": {} });
    let (code, _) = failure(
        &stranger,
        "structure_validate",
        params,
        json!({ "id": "struct_none" }),
    )
    .await;
    assert_eq!(code, "NOT_FOUND");
}

async fn kinds_describe_themselves(world: &World) {
    for kind in [
        "database_insert",
        "database_get",
        "database_query",
        "database_update",
        "database_upsert",
        "database_delete",
        "variable_set",
        "structure_validate",
    ] {
        let spec = world.api.get(format!("/catalog/nodes/{kind}")).await.data(200);
        assert_eq!(spec["routes"], json!(["normal", "fallback", "error"]));
        assert!(text(&spec["description"]).contains("Output: "), "{spec}");
        let workflow = world.api.workflow(kind).await;
        let op = json!([{ "op": "add_node", "tempId": "n", "kind": kind, "params": spec["example"] }]);
        let _ = world.api.edit(&workflow, op).await;
    }
}
