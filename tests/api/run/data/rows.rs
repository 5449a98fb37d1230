//! Rows that nodes write and read.

use serde_json::{Value, json};
use test_support::text;

use super::{failure, outputs, products, run};
use crate::database::schema::create;
use crate::world::World;

on_both_databases!(
    rows_are_written_and_read,
    a_query_filters_sorts_and_counts,
    what_rows_cannot_be_is_named,
    parameters_are_judged_when_they_are_known,
    ten_thousand_rows_go_in_at_once,
    another_attempt_writes_again,
);

fn without_times(row: &Value) -> Value {
    let mut row = row.clone();
    let fields = row.as_object_mut().unwrap();
    fields.retain(|name, _| !["id", "createdAt", "updatedAt"].contains(&name.as_str()));
    row
}

async fn rows_are_written_and_read(world: &World) {
    let (id, table) = products(world).await;
    let price = text(&table["columns"][1]["id"]);
    let nodes = [
        (
            "database_insert",
            json!({ "databaseId": id, "rows": [
                { "sku": "a", "price": "{{1.price}}", "größe": "übergroß 👕" },
                { "sku": "b", (price.as_str()): 2.5, "since": null },
            ] }),
        ),
        (
            "database_get",
            json!({ "databaseId": "{{1.id}}", "match": { "sku": "a" } }),
        ),
        (
            "database_update",
            json!({ "databaseId": id, "match": { "sku": "a" }, "row": { "since": "2026-01-31", "größe": null } }),
        ),
        (
            "database_upsert",
            json!({ "databaseId": id, "match": { "sku": "c" }, "row": { (price.as_str()): 3 } }),
        ),
        (
            "database_upsert",
            json!({ "databaseId": id, "match": { (price.as_str()): 3 }, "row": { "größe": "S" } }),
        ),
        (
            "database_delete",
            json!({ "databaseId": id, "filters": [{ "columnId": price, "operator": "gt", "value": 2 }] }),
        ),
        (
            "database_get",
            json!({ "databaseId": id, "match": { "sku": "b" } }),
        ),
        ("database_query", json!({ "databaseId": id })),
    ];
    let shown = outputs(&world.api, &nodes, json!({ "price": 1, "id": id })).await;
    let a = json!({ "sku": "a", "price": 1, "since": null, "größe": "übergroß 👕" });
    let b = json!({ "sku": "b", "price": 2.5, "since": null, "größe": null });
    assert_eq!(shown[2]["count"], 2);
    assert!(text(&shown[2]["rows"][0]["id"]).starts_with("row_"));
    assert_eq!(
        (
            without_times(&shown[2]["rows"][0]),
            without_times(&shown[2]["rows"][1])
        ),
        (a.clone(), b)
    );
    assert_eq!(shown[3]["row"], shown[2]["rows"][0]);
    let changed = json!({ "sku": "a", "price": 1, "since": "2026-01-31", "größe": null });
    assert_eq!(
        (&shown[4]["count"], without_times(&shown[4]["rows"][0])),
        (&json!(1), changed.clone())
    );
    let c = json!({ "sku": "c", "price": 3, "since": null, "größe": null });
    assert_eq!(
        (&shown[5]["count"], without_times(&shown[5]["rows"][0])),
        (&json!(1), c)
    );
    assert_eq!(shown[6]["rows"][0]["id"], shown[5]["rows"][0]["id"]);
    assert_eq!(shown[6]["rows"][0]["größe"], "S");
    assert_eq!(shown[7], json!({ "count": 2 }));
    assert_eq!(shown[8], json!({ "row": null }));
    assert_eq!(
        (&shown[9]["count"], without_times(&shown[9]["rows"][0])),
        (&json!(1), changed)
    );
    let seen = world.api.get(format!("/databases/{id}/rows")).await.body(200);
    assert_eq!(
        (&seen["count"], &seen["data"][0]),
        (&json!(1), &shown[9]["rows"][0])
    );
}

async fn a_query_filters_sorts_and_counts(world: &World) {
    let (id, table) = products(world).await;
    let rows: Vec<Value> = (0..60)
        .map(|n| json!({ "sku": format!("s{n:02}"), "price": n / 2 }))
        .collect();
    let since = text(&table["columns"][2]["id"]);
    let nodes = [
        (
            "database_insert",
            json!({ "databaseId": id, "rows": "{{1.rows}}" }),
        ),
        ("database_query", json!({ "databaseId": id })),
        (
            "database_query",
            json!({
                "databaseId": id,
                "filters": [{ "columnId": "price", "operator": "lt", "value": "{{5}}" }],
                "sort": { "columnId": "sku", "direction": "desc" },
                "limit": 3,
            }),
        ),
        (
            "database_query",
            json!({ "databaseId": id, "sort": { "columnId": since }, "limit": "{{100}}", "filters": [] }),
        ),
        (
            "database_query",
            json!({ "databaseId": id, "filters": [{ "columnId": "sku", "operator": "eq", "value": "no" }] }),
        ),
    ];
    let shown = outputs(&world.api, &nodes, json!({ "rows": rows })).await;
    assert_eq!(
        (&shown[3]["count"], shown[3]["rows"].as_array().unwrap().len()),
        (&json!(60), 50)
    );
    assert_eq!(shown[3]["rows"][0]["sku"], "s59", "newest first");
    assert_eq!(shown[4]["count"], 10);
    let skus = shown[4]["rows"].as_array().unwrap().iter().map(|row| &row["sku"]);
    assert_eq!(skus.collect::<Vec<_>>(), ["s09", "s08", "s07"]);
    assert_eq!(
        (&shown[5]["count"], shown[5]["rows"].as_array().unwrap().len()),
        (&json!(60), 60)
    );
    assert_eq!(shown[6], json!({ "rows": [], "count": 0 }));
}

async fn what_rows_cannot_be_is_named(world: &World) {
    let (id, _) = products(world).await;
    let first = [(
        "database_insert",
        json!({ "databaseId": id, "row": { "sku": "a", "price": 1 } }),
    )];
    let _ = outputs(&world.api, &first, json!({})).await;
    let invalid = "VALIDATION_ERROR";
    for (row, code, part) in [
        (
            json!({ "sku": "b", "price": 1, "colour": "red" }),
            invalid,
            "colour is not a column",
        ),
        (
            json!({ "sku": "b", "price": "1" }),
            invalid,
            "price must be a number",
        ),
        (json!({ "sku": "b" }), invalid, "price must have a value"),
        (
            json!({ "sku": "b", "price": null }),
            invalid,
            "price must have a value",
        ),
        (
            json!({ "sku": "b", "price": 1, "since": "31.1.2026" }),
            invalid,
            "since must be a day",
        ),
        (json!({}), invalid, "price must have a value"),
        (json!({ "sku": "a", "price": 2 }), "CONFLICT", "unique key sku"),
    ] {
        let params = json!({ "databaseId": id, "row": "{{$node(1)}}" });
        let (found, message) = failure(&world.api, "database_insert", params, row.clone()).await;
        assert_eq!(found, code, "{row}: {message}");
        assert!(message.contains(part), "{row}: {message}");
    }
    // One wrong row keeps all of them out, and is named.
    let rows = json!([{ "sku": "x", "price": 1 }, { "sku": "y", "price": true }]);
    let params = json!({ "databaseId": id, "rows": rows });
    let (code, message) = failure(&world.api, "database_insert", params, json!({})).await;
    assert_eq!(code, invalid);
    assert!(message.contains("row 1 does not fit"), "{message}");
    let matching = json!({ "databaseId": id, "match": { "sku": 5 }, "row": { "price": 1 } });
    let (code, message) = failure(&world.api, "database_update", matching, json!({})).await;
    assert!(
        code == invalid && message.contains("sku must be a text"),
        "{message}"
    );
    let losing = json!({ "databaseId": id, "match": { "sku": "a" }, "row": { "price": null } });
    let (code, message) = failure(&world.api, "database_upsert", losing, json!({})).await;
    assert!(
        code == invalid && message.contains("price must have a value"),
        "{message}"
    );
    let filters = json!([{ "columnId": "price", "operator": "almost", "value": 1 }]);
    let params = json!({ "databaseId": id, "filters": filters });
    let (code, message) = failure(&world.api, "database_delete", params, json!({})).await;
    assert!(
        code == invalid && message.contains("filters[0].operator"),
        "{message}"
    );
    let rows = world.api.get(format!("/databases/{id}/rows")).await.body(200);
    assert_eq!(rows["count"], 1, "nothing was written: {rows}");
}

async fn parameters_are_judged_when_they_are_known(world: &World) {
    let (id, _) = products(world).await;
    let input = json!({ "id": id, "list": [], "text": "x" });
    for (kind, params, part) in [
        (
            "database_get",
            json!({ "match": "{{1.text}}" }),
            "match must be an object",
        ),
        ("database_get", json!({ "match": {} }), "at least one column"),
        (
            "database_update",
            json!({ "match": { "sku": "a" }, "row": "{{1.missing}}" }),
            "row must be",
        ),
        (
            "database_insert",
            json!({ "row": "{{1.list}}" }),
            "row must be an object",
        ),
        ("database_insert", json!({ "rows": [1] }), "list of objects"),
        (
            "database_insert",
            json!({ "rows": "{{1.missing}}" }),
            "row must be an object, or rows",
        ),
        (
            "database_delete",
            json!({ "filters": "{{1.missing}}" }),
            "filters must be a list",
        ),
        ("database_query", json!({ "limit": 0 }), "limit must be"),
        ("database_query", json!({ "limit": 10_001 }), "limit must be"),
        (
            "database_query",
            json!({ "sort": { "columnId": "sku", "direction": "up" } }),
            "sort must be",
        ),
        (
            "database_query",
            json!({ "sort": { "column": "sku" } }),
            "sort must be",
        ),
    ] {
        let mut params = params;
        params["databaseId"] = json!("{{1.id}}");
        let (code, message) = failure(&world.api, kind, params.clone(), input.clone()).await;
        assert_eq!(code, "EXPRESSION_ERROR", "{kind} {params}: {message}");
        assert!(message.contains(part), "{kind} {params}: {message}");
    }
    // What can be seen before is refused before.
    let workflow = world.api.workflow("Refused").await;
    let node = json!([{ "op": "add_node", "tempId": "n", "kind": "database_insert",
                        "params": { "databaseId": id, "row": {}, "rows": [] } }]);
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let body = json!({ "ops": node, "expectedUpdatedAt": draft["updatedAt"] });
    let answer = world.api.post(format!("/workflows/{workflow}/ops"), body).await;
    let shown = answer.data(200);
    assert!(
        text(&shown["errors"][0]).contains("cannot be given beside row"),
        "{shown}"
    );
}

async fn ten_thousand_rows_go_in_at_once(world: &World) {
    let table = create(
        world,
        json!([{ "name": "n", "type": "integer", "indexed": true }]),
    )
    .await;
    let id = text(&table["id"]);
    let rows = |number: usize| json!({ "rows": (0..number).map(|n| json!({ "n": n })).collect::<Vec<_>>() });
    let insert = json!({ "databaseId": id, "rows": "{{1.rows}}" });
    let (code, _) = failure(&world.api, "database_insert", insert.clone(), rows(10_001)).await;
    assert_eq!(code, "VALIDATION_ERROR");
    let nodes = [
        ("database_insert", insert),
        ("set", json!({ "fields": { "count": "{{2.count}}" } })),
        (
            "database_query",
            json!({ "databaseId": id, "limit": 1, "sort": { "columnId": "n", "direction": "desc" } }),
        ),
    ];
    let shown = outputs(&world.api, &nodes, rows(10_000)).await;
    assert_eq!(
        (&shown[3]["count"], &shown[4]["count"]),
        (&json!(10_000), &json!(10_000))
    );
    assert_eq!(shown[4]["rows"][0]["n"], 9_999);
}

async fn another_attempt_writes_again(world: &World) {
    let (id, _) = products(world).await;
    let insert = json!({ "databaseId": id, "row": { "price": "{{1.price}}" } });
    let report = run(&world.api, &[("database_insert", insert)], json!({ "price": 5 })).await;
    let run_id = text(&report["id"]);
    let again = world.api.post(format!("/runs/{run_id}/rerun"), json!({})).await;
    assert!(again.status < 300, "{}", again.text());
    let report = world.api.ended(&run_id).await;
    assert_eq!(
        (&report["status"], &report["attemptNumber"]),
        (&json!("succeeded"), &json!(2))
    );
    let rows = world.api.get(format!("/databases/{id}/rows")).await.body(200);
    assert_eq!(rows["count"], 2, "an attempt of its own writes of its own");
}
