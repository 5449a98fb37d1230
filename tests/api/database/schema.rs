//! Tables and their columns.

use serde_json::{Value, json};
use test_support::text;

use crate::world::World;

on_both_databases!(
    a_table_has_all_its_fields,
    what_no_table_can_be_is_named,
    tables_are_listed_newest_first,
    columns_are_replaced_as_a_whole,
    rows_keep_columns_from_changing,
    a_deleted_table_is_gone,
);

fn columns() -> Value {
    json!([
        { "name": " sku ", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "required": true },
        { "name": "since", "type": "date", "indexed": true },
    ])
}

pub(crate) async fn create(world: &World, columns: Value) -> Value {
    let body = json!({ "name": "Products", "columns": columns });
    world.api.post("/databases", body).await.data(201)
}

async fn a_table_has_all_its_fields(world: &World) {
    let body = json!({
        "name": " Products ", "description": "What we sell", "columns": columns(), "teamId": world.team,
    });
    let created = world.api.post("/databases", body).await.data(201);
    let ids: Vec<String> = created["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| text(&column["id"]))
        .collect();
    assert!(ids.iter().all(|id| id.starts_with("col_")));
    let expected = json!({
        "id": created["id"],
        "name": "Products",
        "description": "What we sell",
        "columns": [
            { "id": ids[0], "name": "sku", "type": "text", "required": false, "indexed": true },
            { "id": ids[1], "name": "price", "type": "number", "required": true, "indexed": false },
            { "id": ids[2], "name": "since", "type": "date", "required": false, "indexed": true },
        ],
        "rowCount": 0,
        "uniqueKeyColumnId": ids[0],
    });
    assert_eq!(created, expected);
    let path = format!("/databases/{}", text(&created["id"]));
    assert_eq!(world.api.get(&path).await.data(200), expected);
    let plain = create(world, json!([{ "name": "a", "type": "json" }])).await;
    let names: Vec<&String> = plain.as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "name", "columns", "rowCount"]);
}

async fn what_no_table_can_be_is_named(world: &World) {
    let refused = async |body: Value, path: &str| world.api.post("/databases", body).await.invalid(path);
    let column = json!({ "name": "a", "type": "text" });
    refused(json!({ "columns": [column] }), "name").await;
    refused(json!({ "name": "x" }), "columns").await;
    refused(json!({ "name": "x", "columns": [] }), "columns").await;
    refused(
        json!({ "name": "x", "columns": [column], "teamId": "team_none" }),
        "teamId",
    )
    .await;
    refused(json!({ "name": "x", "columns": [column], "colour": 1 }), "colour").await;
    for (second, path) in [
        (json!({ "name": "a", "type": "text" }), "columns[1].name"),
        (json!({ "name": "id", "type": "text" }), "columns[1].name"),
        (json!({ "name": " ", "type": "text" }), "columns[1].name"),
        (json!({ "name": "b", "type": "varchar" }), "columns[1].type"),
        (json!({ "name": "b" }), "columns[1].type"),
        (
            json!({ "name": "b", "type": "text", "required": 1 }),
            "columns[1].required",
        ),
    ] {
        refused(json!({ "name": "x", "columns": [column, second] }), path).await;
    }
    let keys = json!([
        { "name": "a", "type": "text", "uniqueKey": true }, { "name": "b", "type": "text", "uniqueKey": true },
    ]);
    refused(json!({ "name": "x", "columns": keys }), "columns[1].uniqueKey").await;
}

async fn tables_are_listed_newest_first(world: &World) {
    let first = create(world, columns()).await;
    let second = create(world, columns()).await;
    let summary =
        |table: &Value| json!({ "id": table["id"], "name": "Products", "columnCount": 3, "rowCount": 0 });
    let all = world.api.get("/databases").await.body(200);
    assert_eq!(
        all,
        json!({ "data": [summary(&second), summary(&first)], "truncated": false })
    );
    let one = world.api.get("/databases?limit=1").await.body(200);
    assert_eq!(one, json!({ "data": [summary(&second)], "truncated": true }));
    assert_eq!(
        world.api.get("/databases?limit=2").await.body(200)["truncated"],
        false
    );
    for limit in ["0", "-1", "x"] {
        world
            .api
            .get(format!("/databases?limit={limit}"))
            .await
            .invalid("limit");
    }
}

async fn columns_are_replaced_as_a_whole(world: &World) {
    let table = create(world, columns()).await;
    let path = format!("/databases/{}", text(&table["id"]));
    let wanted = json!([{ "name": "new", "type": "boolean" }, { "name": "sku", "type": "text" }]);
    let changed = world
        .api
        .patch(&path, json!({ "columns": wanted }))
        .await
        .data(200);
    assert_eq!(changed["columns"][1]["id"], table["columns"][0]["id"]);
    assert_eq!(changed["columns"].as_array().unwrap().len(), 2);
    assert_eq!(changed["columns"][1]["indexed"], false);
    assert!(changed.get("uniqueKeyColumnId").is_none());
    assert_eq!(world.api.get(&path).await.data(200), changed);
    world.api.patch(&path, json!({})).await.invalid("columns");
    world
        .api
        .patch(&path, json!({ "columns": null }))
        .await
        .invalid("columns");
    world
        .api
        .patch(&path, json!({ "columns": wanted, "name": "y" }))
        .await
        .invalid("name");
    let unknown = world
        .api
        .patch("/databases/db_none", json!({ "columns": wanted }))
        .await;
    unknown.error(404, "NOT_FOUND");
    let trail = world.api.get("/activity").await;
    // The feed is another noun's; where it is there, it tells of both writes.
    if trail.status == 200 {
        let events = trail.data(200)["events"].clone();
        assert_eq!(events[0]["action"], "database.updated");
        assert_eq!(events[1]["action"], "database.created");
    }
}

async fn rows_keep_columns_from_changing(world: &World) {
    let table = create(world, json!([{ "name": "n", "type": "text" }])).await;
    let id = text(&table["id"]);
    let row = json!({ "n": "seven" });
    let rows = [row.as_object().unwrap().clone()];
    world
        .store()
        .await
        .insert_rows(&world.organization, &id, &rows)
        .await
        .unwrap();
    let path = format!("/databases/{id}");
    let integer = json!({ "columns": [{ "name": "n", "type": "integer" }] });
    world.api.patch(&path, integer).await.invalid("columns[0].type");
    let required = json!({ "columns": [{ "name": "n", "type": "text" }, { "name": "m", "type": "text", "required": true }] });
    world
        .api
        .patch(&path, required)
        .await
        .invalid("columns[1].required");
    let kept = world.api.get(&path).await.data(200);
    assert_eq!(kept["columns"], table["columns"]);
    assert_eq!(kept["rowCount"], 1);
}

async fn a_deleted_table_is_gone(world: &World) {
    let table = create(world, columns()).await;
    let path = format!("/databases/{}", text(&table["id"]));
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    world.api.get(&path).await.error(404, "NOT_FOUND");
    world
        .api
        .get(format!("{path}/rows"))
        .await
        .error(404, "NOT_FOUND");
    let body = json!({ "columns": columns() });
    world.api.patch(&path, body).await.error(404, "NOT_FOUND");
    assert_eq!(world.api.get("/databases").await.body(200)["data"], json!([]));
}
