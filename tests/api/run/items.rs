//! Runs of many items: what the report shows of them, and how many there may be.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_support::{Api, Server, ServerOptions, graphs, text};

use crate::world::World;

on_both_databases!(
    iterations_are_listed_page_by_page,
    scopes_nest_and_their_nodes_say_where,
    items_that_fail_are_told_to_the_aggregator,
    items_go_on_where_they_were_after_a_wait,
);

/// A trigger (1), a splitter (2), nodes for each item, and the aggregator of them all.
fn each(splitter: Value, inside: &[(&str, Value)]) -> Value {
    let mut nodes = vec![("manual_trigger", json!({})), ("splitter", splitter)];
    nodes.extend(inside.iter().cloned());
    nodes.push(("aggregator", json!({ "of": 2 })));
    graphs::chain(&nodes)
}

async fn report_of(api: &Api, operations: Value) -> Value {
    let workflow = api.workflow_with("items", operations).await;
    let run = api.start(&workflow, json!({})).await;
    api.ended(&run).await
}

/// The nodes of a run with this id, by iteration.
fn of_node(nodes: &[Value], id: i64) -> BTreeMap<String, Value> {
    let wanted = nodes.iter().filter(|node| node["nodeId"] == id);
    wanted
        .map(|node| {
            (
                node["iteration"].as_str().unwrap_or_default().to_owned(),
                node.clone(),
            )
        })
        .collect()
}

async fn iterations_are_listed_page_by_page(world: &World) {
    let items: Vec<u32> = (0..1_200).collect();
    let flow = each(
        json!({ "items": items, "concurrency": 7 }),
        &[("set", json!({ "fields": { "n": "{{$item * 2}}" } }))],
    );
    let report = report_of(&world.api, flow).await;
    assert_eq!(report["status"], "succeeded", "{}", report["error"]);
    assert_eq!(
        (
            report["nodes"].as_array().unwrap().len(),
            &report["nodesTruncated"]
        ),
        (1_000, &json!(true))
    );
    let all = world
        .api
        .all_pages(&format!("/runs/{}/nodes?limit=200", text(&report["id"])))
        .await;
    assert_eq!(all.len(), 3 + 1_200);
    assert_eq!(all[..1_000], report["nodes"].as_array().unwrap()[..]);
    let inside = of_node(&all, 3);
    assert_eq!(inside.len(), 1_200, "each iteration once");
    assert_eq!(inside["1199"]["output"], json!({ "n": 2_398 }));
    let collected = &of_node(&all, 4)[""]["output"];
    assert_eq!(
        (&collected["count"], &collected["items"][7]["n"]),
        (&json!(1_200), &json!(14))
    );
}

async fn scopes_nest_and_their_nodes_say_where(world: &World) {
    let flow = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "rows", "kind": "splitter", "after": "start",
          "params": { "items": [[1, 2], [], [3]] } },
        { "op": "add_node", "tempId": "cells", "kind": "splitter", "after": "rows", "params": { "items": "{{$item}}" } },
        { "op": "add_node", "tempId": "cell", "kind": "js_code", "after": "cells",
          "params": { "code": "return { cell: item * 10 }" } },
        { "op": "add_node", "tempId": "row", "kind": "aggregator", "after": "cell",
          "params": { "of": 3, "collect": "{{4.cell}}" } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "row",
          "params": { "of": 2, "collect": "{{5.items}}" } },
    ]);
    let report = report_of(&world.api, flow).await;
    let nodes = report["nodes"].as_array().unwrap();
    let places = |id| of_node(nodes, id).into_keys().collect::<Vec<_>>();
    assert_eq!(places(4), ["0.0", "0.1", "2.0"], "{report}");
    assert_eq!(places(5), ["0", "1", "2"]);
    assert_eq!(
        of_node(nodes, 6)[""]["output"]["items"],
        json!([[10, 20], [], [30]])
    );
}

async fn items_that_fail_are_told_to_the_aggregator(world: &World) {
    let code = json!({ "code": "if (item === 2) throw new Error('no ' + item); return { item }" });
    let mut flow = each(
        json!({ "items": [1, 2, 3], "concurrency": 3 }),
        &[("js_code", code)],
    );
    let failed = report_of(&world.api, flow.clone()).await;
    assert_eq!(
        failed["status"], "failed",
        "a splitter that says nothing: {failed}"
    );
    flow[1]["config"] = json!({ "onError": "continue" });
    let report = report_of(&world.api, flow.clone()).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    let collected = &of_node(nodes, 4)[""]["output"];
    assert_eq!(collected["items"], json!([{ "item": 1 }, { "item": 3 }]));
    let error = &collected["errors"][0];
    assert_eq!(
        (&error["index"], &error["nodeId"], &error["code"]),
        (&json!(1), &json!(3), &json!("CODE_ERROR"))
    );
    assert_eq!(of_node(nodes, 3)["1"]["status"], "failed");
    // The node's own word comes before the splitter's.
    flow[2]["config"] = json!({ "onError": "fail" });
    assert_eq!(report_of(&world.api, flow).await["status"], "failed");
}

async fn items_go_on_where_they_were_after_a_wait(world: &World) {
    let flow = each(
        json!({ "items": [1, 2, 3], "concurrency": 3 }),
        &[
            ("wait", json!({ "amount": "{{$item / 20}}", "unit": "seconds" })),
            ("set", json!({ "fields": { "n": "{{$item}}" } })),
        ],
    );
    let report = report_of(&world.api, flow).await;
    let nodes = report["nodes"].as_array().unwrap();
    let collected = &of_node(nodes, 5)[""]["output"];
    assert_eq!(
        collected["items"],
        json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }]),
        "{report}"
    );
}

/// A server of its own, whose memory nobody else takes.
#[tokio::test]
async fn ten_thousand_items_take_bounded_memory() {
    const MOST_KIB: u64 = 256 << 10;
    let server = Server::start(ServerOptions::default()).await;
    let api = server.first_api();
    let items = json!({ "items": "{{range(0; 10000)}}", "concurrency": 20 });
    let small = each(
        items.clone(),
        &[("set", json!({ "fields": { "n": "{{$item * 2}}" } }))],
    );
    let before = peak_kib(&server);
    let report = report_of(&api, small).await;
    assert_eq!(report["status"], "succeeded", "{}", report["error"]);
    let run = text(&report["id"]);
    let last = api.get(format!("/runs/{run}/nodes?limit=1")).await.page();
    assert_eq!(last.0.len(), 1);
    let grown = peak_kib(&server) - before;
    assert!(grown < MOST_KIB, "10,000 small items took {grown} KiB");

    // Ten thousand large ones are refused before they fill the machine.
    let large = json!({ "fields": { "text": "{{repeat('0123456789'; 100000)}}" } });
    let flow = each(items, &[("set", large)]);
    let workflow = api.workflow_with("large", flow).await;
    let run = api.start(&workflow, json!({})).await;
    let ended = test_support::until(async || {
        let runs = api.get(format!("/runs?workflowId={workflow}")).await.page().0;
        (!runs[0]["finishedAt"].is_null()).then_some(runs[0]["status"].clone())
    });
    assert_eq!(ended.await, Some(json!("failed")), "{run}");
    let grown = peak_kib(&server) - before;
    assert!(grown < 4 * MOST_KIB, "large items took {grown} KiB");
}

/// The most memory that the server has had, as the kernel tells.
fn peak_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}
