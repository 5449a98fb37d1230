//! Nodes that keep data: rows of databases, variables, and values that are checked against structures.

use serde_json::{Value, json};
use test_support::{Api, graphs, text};

use crate::database::schema::create;
use crate::world::World;

on_both_databases!(
    rows_are_written_and_read,
    a_query_filters_sorts_and_counts,
    what_rows_cannot_be_is_named,
    parameters_are_judged_when_they_are_known,
    ten_thousand_rows_go_in_at_once,
    a_failed_node_that_runs_again_writes_again,
    what_does_not_exist_is_named_before_it_is_deployed,
    what_does_not_exist_fails_its_node,
    a_variable_is_set_by_a_node,
    a_secret_stays_one,
    a_team_has_its_own_variable,
    a_value_is_checked_against_a_structure,
    kinds_describe_themselves,
);

/// The report of a run of these nodes, one after the other, behind a trigger (1).
async fn run(api: &Api, nodes: &[(&str, Value)], input: Value) -> Value {
    let mut chain = vec![("manual_trigger", json!({}))];
    chain.extend_from_slice(nodes);
    let workflow = api.workflow_with("Data", graphs::chain(&chain)).await;
    let run = api
        .start(&workflow, json!({ "upstreamOutputs": { "1": input } }))
        .await;
    api.ended(&run).await
}

/// The outputs of the nodes of such a run by id, which must succeed.
async fn outputs(api: &Api, nodes: &[(&str, Value)], input: Value) -> Vec<Value> {
    let report = run(api, nodes, input).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let shown = report["nodes"].as_array().unwrap();
    std::iter::once(&Value::Null)
        .chain(shown.iter().map(|node| &node["output"]))
        .cloned()
        .collect()
}

/// The code and the message of the failure of one node behind a trigger.
async fn failure(api: &Api, kind: &str, params: Value, input: Value) -> (String, String) {
    let report = run(api, &[(kind, params)], input).await;
    assert_eq!(report["status"], "failed", "{report}");
    let error = &report["nodes"][1]["error"];
    (text(&error["code"]), text(&error["message"]))
}

/// A database of products; its id and schema.
async fn products(world: &World) -> (String, Value) {
    let columns = json!([
        { "name": "sku", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "required": true },
        { "name": "since", "type": "date", "indexed": true },
        { "name": "größe", "type": "text" },
    ]);
    let table = create(world, columns).await;
    (text(&table["id"]), table)
}

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
        let params = json!({ "databaseId": id, "row": "{{1}}" });
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

async fn a_failed_node_that_runs_again_writes_again(world: &World) {
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
        for id in [&id, "db_none", ""] {
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

async fn variable(world: &World, name: &str) -> Value {
    let list = world.api.get("/variables").await.data(200);
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|variable| variable["name"] == name);
    found.cloned().unwrap_or_default()
}

async fn a_variable_is_set_by_a_node(world: &World) {
    let set = |value: Value| [("variable_set", json!({ "name": "LAST_ORDER", "value": value }))];
    let shown = outputs(&world.api, &set(json!("{{1.id}} 🧾")), json!({ "id": "o-1" })).await;
    let made = variable(world, "LAST_ORDER").await;
    assert_eq!(
        shown[2],
        json!({ "name": "LAST_ORDER", "updatedAt": made["updatedAt"] })
    );
    assert_eq!(
        (&made["value"], &made["isSecret"], &made["teamId"]),
        (&json!("o-1 🧾"), &json!(false), &Value::Null)
    );
    for (value, stored) in [(json!(7), "7"), (json!({ "a": [true] }), r#"{"a":[true]}"#)] {
        let _ = outputs(&world.api, &set(value), json!({})).await;
        assert_eq!(variable(world, "LAST_ORDER").await["value"], stored);
    }
    let trail = world.api.get("/activity?targetType=variable").await.data(200);
    let told: Vec<(&Value, &Value)> = trail["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["action"], &entry["actorUserId"]))
        .collect();
    let (updated, created) = (json!("variable.updated"), json!("variable.created"));
    assert_eq!(
        told,
        [
            (&updated, &Value::Null),
            (&updated, &Value::Null),
            (&created, &Value::Null)
        ]
    );
    for (name, value) in [
        ("1ST", json!("x")),
        ("Ä", json!("x")),
        ("", json!("x")),
        ("BLANK", json!(" ")),
        ("LONG", json!("x".repeat(262_145))),
    ] {
        let params = json!({ "name": "{{1.name}}", "value": "{{1.value}}" });
        let input = json!({ "name": name, "value": value });
        let (code, message) = failure(&world.api, "variable_set", params, input).await;
        assert_eq!(code, "VALIDATION_ERROR", "{name}: {message}");
    }
    let params = json!({ "name": "NULL", "value": "{{1.missing}}" });
    assert_eq!(
        failure(&world.api, "variable_set", params, json!({})).await.0,
        "EXPRESSION_ERROR"
    );
    assert_eq!(
        world
            .api
            .get("/variables")
            .await
            .data(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

async fn a_secret_stays_one(world: &World) {
    let body = json!({ "value": "old secret", "isSecret": true });
    let _ = world.api.put("/variables/TOKEN", body).await.data(201);
    let nodes = [("variable_set", json!({ "name": "TOKEN", "value": "{{1.token}}" }))];
    let shown = outputs(&world.api, &nodes, json!({ "token": "brand new" })).await;
    assert_eq!(shown[2]["name"], "TOKEN");
    let secret = variable(world, "TOKEN").await;
    assert_eq!(
        (&secret["isSecret"], &secret["value"]),
        (&json!(true), &Value::Null)
    );
    let says = [(
        "set",
        json!({ "fields": { "said": "<{{$vars.TOKEN}}>", "same": "{{$vars.TOKEN == 'brand new'}}" } }),
    )];
    let shown = outputs(&world.api, &says, json!({})).await;
    assert_eq!(shown[2], json!({ "said": "<***>", "same": true }));
    let (code, message) = failure(
        &world.api,
        "variable_set",
        nodes[0].1.clone(),
        json!({ "token": "short" }),
    )
    .await;
    assert_eq!(code, "VALIDATION_ERROR");
    assert!(message.contains("at least 6"), "{message}");
}

async fn a_team_has_its_own_variable(world: &World) {
    let body = json!({ "value": "team's", "teamId": world.team });
    let _ = world.api.put("/variables/WHERE", body).await.data(201);
    let nodes = [(
        "variable_set",
        json!({ "name": "WHERE", "value": "set by a node" }),
    )];
    let _ = outputs(&world.api, &nodes, json!({})).await;
    let only = variable(world, "WHERE").await;
    assert_eq!(
        (&only["value"], &only["teamId"]),
        (&json!("set by a node"), &json!(world.team)),
        "it is the one that $vars.WHERE gives"
    );
    assert_eq!(
        world
            .api
            .get("/variables")
            .await
            .data(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

async fn a_value_is_checked_against_a_structure(world: &World) {
    let fields = json!([
        { "name": "email", "type": "email", "required": true },
        { "name": "größe", "type": "integer" },
    ]);
    let structure = world
        .api
        .post("/structures", json!({ "name": "Customer", "fields": fields }))
        .await
        .data(201);
    let check = |value: &str| {
        (
            "structure_validate",
            json!({ "structureId": structure["id"], "value": value }),
        )
    };
    let nodes = [check("{{1.right}}"), check("{{1.wrong}}"), check("{{1.missing}}")];
    let input = json!({
        "right": { "email": "a@example.com", "größe": 1, "more": true },
        "wrong": { "größe": 1.5 },
    });
    let shown = outputs(&world.api, &nodes, input).await;
    assert_eq!(shown[2], json!({ "valid": true, "issues": [] }));
    assert_eq!(
        shown[3],
        json!({ "valid": false, "issues": [
            { "path": "email", "message": "must have a value" },
            { "path": "größe", "message": "must be a whole number of 64 bits" },
        ] })
    );
    assert_eq!(
        shown[4],
        json!({ "valid": false, "issues": [{ "path": "", "message": "must be an object" }] })
    );
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
