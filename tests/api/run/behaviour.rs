//! What happens in a run: waits, cancels, retries, error and fallback edges, stops.

use serde_json::{Value, json};
use test_support::{graphs, text, together};

use crate::world::World;

on_both_databases!(
    a_waiting_run_is_cancelled_once,
    of_many_cancels_each_is_told_the_truth,
    a_short_wait_goes_on_by_itself,
    a_failing_node_is_tried_again,
    an_error_edge_handles_a_failure,
    continue_takes_the_normal_edges,
    stop_ends_the_run_at_once,
    a_run_follows_the_graph_it_started_with,
    waiting_does_not_count_against_a_time_limit,
    a_run_that_works_too_long_is_failed,
);

/// The node of a report.
fn node(report: &Value, id: i64) -> &Value {
    let found = report["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["nodeId"] == id);
    found.unwrap_or_else(|| panic!("no node {id}: {report}"))
}

async fn report_of(world: &World, operations: Value) -> Value {
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    world.api.ended(&run).await
}

async fn a_run_that_works_too_long_is_failed(world: &World) {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("splitter", json!({ "items": "{{1.items}}" })),
        ("set", json!({ "fields": { "doubled": "{{2.item * 2}}" } })),
    ]);
    let workflow = world.api.workflow_with("busy", flow).await;
    let limit = json!({ "executionTimeoutMs": 1 });
    let limited = world.api.patch(format!("/workflows/{workflow}"), limit).await;
    assert_eq!(limited.status, 200, "{}", limited.text());
    let items: Vec<usize> = (0..10_000).collect();
    let body = json!({ "nodeId": "2", "upstreamOutputs": { "1": { "items": items } } });
    let run = world.api.start(&workflow, body).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "failed", "{}", report["error"]);
    assert!(
        text(&report["error"]).starts_with("RUN_TIMEOUT: "),
        "{}",
        report["error"]
    );
}

async fn a_waiting_run_is_cancelled_once(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let waiting = world.api.reached(&run, &["waiting"]).await;
    assert_eq!(
        (&waiting["finishedAt"], &node(&waiting, 2)["status"]),
        (&Value::Null, &json!("waiting"))
    );
    assert_eq!(node(&waiting, 2)["finishedAt"], Value::Null);
    let path = format!("/runs/{run}/cancel");
    assert_eq!(
        world.api.post(&path, json!({})).await.data(200),
        json!({ "ok": true })
    );
    let report = world.api.get(format!("/runs/{run}")).await.data(200);
    assert_eq!(
        (&report["status"], &node(&report, 2)["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert!(report["finishedAt"].is_string());
    assert!(
        report["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|node| node["nodeId"] != 3 || node["startedAt"].is_null())
    );
    world.api.post(&path, json!({})).await.error(400, "run_terminal");
}

async fn of_many_cancels_each_is_told_the_truth(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let cancels = (0..10).map(|_| {
        let (api, path) = (world.api.clone(), format!("/runs/{run}/cancel"));
        async move { api.post(path, json!({})).await }
    });
    let mut done = 0;
    for answer in together(cancels).await {
        match answer.status {
            200 => done += 1,
            _ => _ = answer.error(400, "run_terminal"),
        }
    }
    assert!(done >= 1);
    assert_eq!(world.api.ended(&run).await["status"], "cancelled");
    let ended = world.api.workflow_with("y", graphs::small_flow()).await;
    let run = world.api.start(&ended, json!({})).await;
    let _ = world.api.ended(&run).await;
    world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .error(400, "run_terminal");
}

async fn a_short_wait_goes_on_by_itself(world: &World) {
    let report = report_of(
        world,
        graphs::chain(&[
            ("manual_trigger", json!({})),
            ("wait", json!({ "amount": 0.05, "unit": "seconds" })),
            ("wait", json!({ "until": "2020-01-01T00:00:00Z" })),
            ("set", json!({ "fields": { "until": "{{2.until}}" } })),
        ]),
    )
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert!(node(&report, 2)["durationMs"].as_i64().unwrap() >= 50);
    assert_eq!(
        node(&report, 4)["output"]["until"],
        node(&report, 2)["output"]["until"]
    );
}

async fn a_failing_node_is_tried_again(world: &World) {
    let report = report_of(
        world,
        json!([
            { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "b", "kind": "set", "after": "a",
              "params": { "fields": { "x": "{{1.missing * 2}}" } },
              "config": { "retry": { "maxAttempts": 3, "delayMs": 20, "multiplier": 2 } } },
        ]),
    )
    .await;
    let failed = node(&report, 2);
    assert_eq!(
        (&report["status"], &failed["attempt"]),
        (&json!("failed"), &json!(3))
    );
    // 20 ms, then 40 ms.
    assert!(failed["durationMs"].as_i64().unwrap() >= 60, "{failed}");
}

async fn an_error_edge_handles_a_failure(world: &World) {
    let report = report_of(world, json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "set", "after": "a",
          "params": { "fields": { "x": "{{1.missing * 2}}" } } },
        { "op": "add_node", "tempId": "normal", "kind": "set", "after": "b", "params": { "fields": {} } },
        { "op": "add_node", "tempId": "wrong", "kind": "set", "params": { "fields": {} } },
        { "op": "add_node", "tempId": "right", "kind": "set",
          "params": { "fields": { "code": "{{error.code}}", "node": "{{error.nodeId}}" } } },
        { "op": "connect", "from": "b", "to": "wrong", "type": "error", "filter": "{{error.code == 'OTHER'}}" },
        { "op": "connect", "from": "b", "to": "right", "type": "error",
          "filter": "{{error.code == 'EXPRESSION_ERROR'}}" },
    ])).await;
    assert_eq!(
        (&report["status"], &report["error"]),
        (&json!("succeeded"), &Value::Null),
        "{report}"
    );
    assert_eq!(node(&report, 2)["status"], "failed");
    assert_eq!(
        (&node(&report, 3)["status"], &node(&report, 4)["status"]),
        (&json!("skipped"), &json!("skipped"))
    );
    assert_eq!(node(&report, 5)["output"]["code"], "EXPRESSION_ERROR");
}

async fn continue_takes_the_normal_edges(world: &World) {
    let report = report_of(world, json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "set", "after": "a", "config": { "onError": "continue" },
          "params": { "fields": { "x": "{{1.missing * 2}}" } } },
        { "op": "add_node", "tempId": "c", "kind": "set", "after": "b",
          "params": { "fields": { "seen": "{{2.error.code}}" } } },
    ])).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 2)["status"], "failed");
    assert_eq!(node(&report, 3)["output"], json!({ "seen": "EXPRESSION_ERROR" }));
}

async fn stop_ends_the_run_at_once(world: &World) {
    let stop = |params: Value| {
        json!([
            { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "hour", "kind": "wait", "after": "a",
              "params": { "amount": 1, "unit": "hours" } },
            { "op": "add_node", "tempId": "end", "kind": "stop", "after": "a", "params": params },
        ])
    };
    let failed = report_of(
        world,
        stop(json!({ "status": "failed", "message": "no {{1 + 1}}" })),
    )
    .await;
    assert_eq!(
        (&failed["status"], &failed["error"]),
        (&json!("failed"), &json!("STOPPED: no 2"))
    );
    let ended = report_of(world, stop(json!({}))).await;
    assert_eq!(
        (&ended["status"], &ended["error"]),
        (&json!("succeeded"), &Value::Null)
    );
    assert_eq!(node(&ended, 2)["status"], "cancelled");
}

async fn a_run_follows_the_graph_it_started_with(world: &World) {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 0.2, "unit": "seconds" })),
        ("set", json!({ "fields": { "version": "first" } })),
    ]);
    let workflow = world.api.workflow_with("x", flow).await;
    let run = world.api.start(&workflow, json!({})).await;
    let changed =
        json!([{ "op": "update_params", "nodeId": 3, "params": { "fields": { "version": "second" } } }]);
    world.api.edit(&workflow, changed).await;
    let report = world.api.ended(&run).await;
    assert_eq!(text(&node(&report, 3)["output"]["version"]), "first");
}

async fn waiting_does_not_count_against_a_time_limit(world: &World) {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 0.3, "unit": "seconds" })),
        ("set", json!({ "fields": { "done": true } })),
    ]);
    let workflow = world.api.workflow_with("x", flow).await;
    let limited = json!({ "executionTimeoutMs": 200 });
    let _ = world
        .api
        .patch(format!("/workflows/{workflow}"), limited)
        .await
        .data(200);
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
}
