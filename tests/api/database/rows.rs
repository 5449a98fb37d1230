//! Rows as the API reads them.

use serde_json::{Map, Value, json};
use test_support::{percent_encoded, text};

use super::schema::create;
use crate::world::World;

on_both_databases!(
    a_row_has_every_column,
    filters_and_sorts_go_by_id_or_name,
    pages_carry_the_count,
    a_cursor_belongs_to_its_query,
    what_cannot_be_asked_is_named,
);

/// A table of products with these rows; gives its id.
async fn table(world: &World, rows: &[Value]) -> (String, Value) {
    let columns = json!([
        { "name": "sku", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "indexed": true },
        { "name": "sold", "type": "boolean" },
    ]);
    let table = create(world, columns).await;
    let id = text(&table["id"]);
    let rows: Vec<Map<String, Value>> = rows.iter().filter_map(|row| row.as_object().cloned()).collect();
    let written = world
        .store()
        .await
        .insert_rows(&world.organization, &id, &rows)
        .await;
    assert_eq!(written.unwrap().len(), rows.len());
    (format!("/databases/{id}/rows"), table)
}

/// A query of these parameters, percent-encoded.
fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    format!("{path}?{}", pairs.join("&"))
}

fn skus(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["sku"].as_str()).collect()
}

fn products(number: usize) -> Vec<Value> {
    (0..number)
        .map(|n| json!({ "sku": format!("s{n:03}"), "price": n / 4, "sold": n % 2 == 0 }))
        .collect()
}

async fn a_row_has_every_column(world: &World) {
    let given = [
        json!({ "sku": "a", "price": 1.5 }),
        json!({ "sku": "b", "sold": true }),
    ];
    let (path, table) = table(world, &given).await;
    let body = world.api.get(&path).await.body(200);
    assert_eq!((&body["count"], &body["next_cursor"]), (&json!(2), &Value::Null));
    let rows = body["data"].as_array().unwrap();
    let (newest, oldest) = (&rows[0], &rows[1]);
    assert!(text(&oldest["id"]).starts_with("row_") && oldest["createdAt"].is_i64());
    assert_eq!(
        oldest,
        &json!({
            "id": oldest["id"], "sku": "a", "price": 1.5, "sold": null,
            "createdAt": oldest["createdAt"], "updatedAt": oldest["createdAt"],
        })
    );
    assert_eq!((&newest["price"], &newest["sold"]), (&Value::Null, &json!(true)));
    let schema = world
        .api
        .get(format!("/databases/{}", text(&table["id"])))
        .await
        .data(200);
    assert_eq!(schema["rowCount"], 2);
}

async fn filters_and_sorts_go_by_id_or_name(world: &World) {
    let (path, table) = table(world, &products(20)).await;
    let price = text(&table["columns"][1]["id"]);
    for (column, sold) in [
        (price.as_str(), "sold"),
        ("price", &text(&table["columns"][2]["id"])),
    ] {
        let filters = json!([
            { "columnId": column, "operator": "gte", "value": 3 },
            { "columnId": sold, "operator": "eq", "value": true },
        ]);
        let filters = filters.to_string();
        let parameters = [
            ("filters", filters.as_str()),
            ("sortColumnId", column),
            ("sortDir", "desc"),
        ];
        let body = world.api.get(query(&path, &parameters)).await.body(200);
        assert_eq!(body["count"], 4);
        assert_eq!(
            skus(body["data"].as_array().unwrap()),
            ["s018", "s016", "s014", "s012"]
        );
    }
    let ascending = query(&path, &[("sortColumnId", "sku"), ("limit", "2")]);
    let (rows, cursor) = world.api.get(ascending).await.page();
    assert_eq!(skus(&rows), ["s000", "s001"]);
    assert!(cursor.is_some());
    let oldest_first = query(&path, &[("sortDir", "asc"), ("limit", "1")]);
    assert_eq!(skus(&world.api.get(oldest_first).await.page().0), ["s000"]);
}

async fn pages_carry_the_count(world: &World) {
    let (path, table) = table(world, &products(120)).await;
    let (rows, _) = world.api.get(&path).await.page();
    assert_eq!(rows.len(), 50, "the default size of a page");
    let id = text(&table["id"]);
    let store = world.store().await;
    for sort in ["", "price", "sold", "sku"] {
        let mut parameters = vec![
            ("limit", "33"),
            (
                "filters",
                r#"[{"columnId":"sku","operator":"starts_with","value":"s"}]"#,
            ),
        ];
        if !sort.is_empty() {
            parameters.push(("sortColumnId", sort));
        }
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut page = parameters.clone();
            page.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let body = world.api.get(query(&path, &page)).await.body(200);
            // Counted once: rows that come later are in the pages perhaps, not in the count.
            assert_eq!(body["count"], 120);
            let rows = body["data"].as_array().unwrap();
            seen.extend(skus(rows).into_iter().map(str::to_owned));
            cursor = body["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
            let late = json!({ "sku": format!("t-{sort}-{}", seen.len()), "price": 0 });
            store
                .insert_rows(&world.organization, &id, &[late.as_object().unwrap().clone()])
                .await
                .unwrap();
        }
        assert_eq!(seen.len(), 120, "{sort}");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 120, "{sort}");
    }
}

async fn a_cursor_belongs_to_its_query(world: &World) {
    let (path, _) = table(world, &products(5)).await;
    let (_, cursor) = world.api.get(query(&path, &[("limit", "2")])).await.page();
    let cursor = cursor.unwrap();
    let (rows, _) = world
        .api
        .get(query(&path, &[("limit", "3"), ("cursor", &cursor)]))
        .await
        .page();
    assert_eq!(skus(&rows), ["s002", "s001", "s000"]);
    for other in [("sortColumnId", "sku"), ("sortDir", "asc"), ("filters", "[]")] {
        world
            .api
            .get(query(&path, &[other, ("cursor", &cursor)]))
            .await
            .invalid("cursor");
    }
    world
        .api
        .get(query(&path, &[("cursor", "x")]))
        .await
        .invalid("cursor");
}

async fn what_cannot_be_asked_is_named(world: &World) {
    let (path, _) = table(world, &products(1)).await;
    for (name, value, place) in [
        ("filters", "[", "filters"),
        ("filters", "{}", "filters"),
        ("filters", r#"[{"columnId":"sku"}]"#, "filters[0].operator"),
        (
            "filters",
            r#"[{"columnId":"sku","operator":"eq","value":"a","x":1}]"#,
            "filters[0].x",
        ),
        (
            "filters",
            r#"[{"columnId":"none","operator":"eq","value":"a"}]"#,
            "filters[0].columnId",
        ),
        (
            "filters",
            r#"[{"columnId":"sku","operator":"like","value":"a"}]"#,
            "filters[0].operator",
        ),
        (
            "filters",
            r#"[{"columnId":"price","operator":"eq","value":"a"}]"#,
            "filters[0].value",
        ),
        (
            "filters",
            r#"[{"columnId":"price","operator":"in","value":[1,"a"]}]"#,
            "filters[0].value[1]",
        ),
        ("sortColumnId", "none", "sortColumnId"),
        ("sortDir", "up", "sortDir"),
        ("limit", "0", "limit"),
        ("order", "asc", "order"),
    ] {
        world.api.get(query(&path, &[(name, value)])).await.invalid(place);
    }
    world
        .api
        .get("/databases/db_none/rows")
        .await
        .error(404, "NOT_FOUND");
}
