//! Modules of apps that give several things: what follows runs once for each.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, text};

use crate::world::World;

on_both_databases!(
    what_follows_a_search_runs_once_for_each_thing,
    a_search_that_finds_nothing_is_aggregated,
    an_item_that_fails_is_an_error_of_the_aggregate,
    a_search_that_fails_has_no_items,
    a_disabled_search_passes_its_input_through,
);

/// A service with two pages of orders, and one where there are none.
async fn orders() -> Target {
    Target::start(|asked: &Asked| {
        let answer = Response::builder().header("content-type", "application/json");
        let (link, body) = match (asked.uri.path(), asked.uri.query()) {
            ("/orders", None) => (
                "</orders?page=2>; rel=\"next\"",
                json!([{ "id": 1 }, { "id": 2 }]),
            ),
            ("/orders", Some(_)) => ("", json!([{ "id": 3 }])),
            ("/none", _) => ("", json!([])),
            _ => ("", json!({ "no": "list" })),
        };
        answer
            .header("link", link)
            .body(Bytes::from(body.to_string()))
            .unwrap()
    })
    .await
}

/// A trigger (1), the list at a path (2), a node for each thing (3), and what came of them (4).
fn flow(url: &str, each: Value, config: Value) -> Value {
    json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "list", "appId": "http", "moduleSlug": "list", "after": "start",
          "params": { "url": url }, "config": config },
        { "op": "add_node", "tempId": "each", "kind": "set", "after": "list", "params": { "fields": each } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "each", "params": { "of": 2 } },
    ])
}

async fn report(world: &World, operations: Value) -> Value {
    let workflow = world.api.workflow_with("Orders", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    world.api.ended(&run).await
}

fn node(report: &Value, id: i64) -> Vec<&Value> {
    let nodes = report["nodes"].as_array().unwrap().iter();
    nodes.filter(|node| node["nodeId"] == id).collect()
}

async fn what_follows_a_search_runs_once_for_each_thing(world: &World) {
    let service = orders().await;
    let each = json!({ "order": "{{2.id}}", "same": "{{$item.id == 2.id}}", "place": "{{$index}}" });
    let report = report(world, flow(&service.url("/orders"), each, json!({}))).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 2)[0]["output"], json!({ "count": 3 }));
    let each = node(&report, 3);
    let iterations: Vec<String> = each.iter().map(|node| text(&node["iteration"])).collect();
    assert_eq!(iterations, ["0", "1", "2"]);
    let order = |id: i64| json!({ "order": id, "same": true, "place": id - 1 });
    let all = json!({ "items": [order(1), order(2), order(3)], "count": 3, "errors": [] });
    assert_eq!(node(&report, 4)[0]["output"], all);
    assert_eq!(service.asked().len(), 2, "each page is asked for once");
}

async fn a_search_that_finds_nothing_is_aggregated(world: &World) {
    let service = orders().await;
    let report = report(world, flow(&service.url("/none"), json!({}), json!({}))).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(
        node(&report, 4)[0]["output"],
        json!({ "items": [], "count": 0, "errors": [] })
    );
    assert!(node(&report, 3).is_empty());
}

async fn an_item_that_fails_is_an_error_of_the_aggregate(world: &World) {
    let service = orders().await;
    let each = json!({ "order": "{{2.id == 2 ? 2.id * 'x' : 2.id}}" });
    let config = json!({ "onError": "continue", "concurrency": 3 });
    let report = report(world, flow(&service.url("/orders"), each, config)).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let all = &node(&report, 4)[0]["output"];
    assert_eq!(all["items"], json!([{ "order": 1 }, { "order": 3 }]));
    assert_eq!(
        (&all["errors"][0]["index"], &all["errors"][0]["nodeId"]),
        (&json!(1), &json!(3))
    );
}

async fn a_search_that_fails_has_no_items(world: &World) {
    let service = orders().await;
    let report = report(world, flow(&service.url("/other"), json!({}), json!({}))).await;
    assert_eq!(report["status"], "failed", "{report}");
    let error = &node(&report, 2)[0]["error"];
    assert_eq!(error["code"], "HTTP_ERROR");
    assert!(text(&error["message"]).contains("no list"), "{error}");
}

async fn a_disabled_search_passes_its_input_through(world: &World) {
    let service = orders().await;
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "one", "kind": "set", "after": "start", "params": { "fields": { "id": 9 } } },
        { "op": "add_node", "tempId": "list", "appId": "http", "moduleSlug": "list", "after": "one",
          "params": { "url": service.url("/orders") }, "config": { "disabled": true } },
        { "op": "add_node", "tempId": "each", "kind": "set", "after": "list",
          "params": { "fields": { "order": "{{3.id}}" } } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "each", "params": { "of": 3 } },
    ]);
    let report = report(world, operations).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 5)[0]["output"]["items"], json!([{ "order": 9 }]));
    assert!(service.asked().is_empty());
}
