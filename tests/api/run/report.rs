//! Reading runs: the report, its nodes, the list.

use serde_json::{Value, json};
use test_support::{graphs, text};

use crate::world::World;

on_both_databases!(
    a_report_has_all_its_fields,
    a_failed_run_says_why,
    skipped_nodes_are_listed,
    nodes_are_paged_in_order_of_start,
    runs_are_listed_newest_first,
    a_run_is_found_by_status_and_id,
    what_is_not_a_run_is_404,
);

fn is_instant(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.len() == 24 && text.ends_with('Z') && text.contains('T'))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

async fn a_report_has_all_its_fields(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let always = [
        "attemptNumber",
        "createdAt",
        "createdBy",
        "creditsUsed",
        "error",
        "finishedAt",
        "id",
        "nodes",
        "nodesTruncated",
        "status",
        "trigger",
        "versionNo",
        "workflowId",
    ];
    assert_eq!(keys(&report), always);
    assert_eq!(
        (&report["id"], &report["workflowId"]),
        (&json!(run), &json!(workflow))
    );
    assert_eq!(
        (&report["status"], &report["error"]),
        (&json!("succeeded"), &Value::Null)
    );
    assert_eq!(
        (&report["attemptNumber"], &report["nodesTruncated"]),
        (&json!(1), &json!(false))
    );
    assert!(
        is_instant(&report["createdAt"]) && is_instant(&report["finishedAt"]),
        "{report}"
    );
    assert_eq!(report["trigger"]["kind"], "manual");
    let node = &report["nodes"][1];
    let always = [
        "appId",
        "attempt",
        "creditsUsed",
        "durationMs",
        "error",
        "finishedAt",
        "kind",
        "label",
        "logs",
        "moduleSlug",
        "nodeId",
        "output",
        "startedAt",
        "status",
    ];
    assert_eq!(keys(node), always);
    assert_eq!(
        (&node["nodeId"], &node["label"], &node["status"]),
        (&json!(2), &json!("Set fields"), &json!("completed"))
    );
    assert_eq!(
        (&node["output"], &node["error"]),
        (&json!({ "answer": 42 }), &Value::Null)
    );
    assert_eq!(
        (&node["kind"], &node["appId"], &node["attempt"]),
        (&json!("set"), &json!("native"), &json!(1))
    );
    assert!(is_instant(&node["startedAt"]) && is_instant(&node["finishedAt"]) && node["durationMs"].is_i64());
    // A trigger costs nothing.
    assert_eq!(
        (&report["nodes"][0]["creditsUsed"], &node["creditsUsed"]),
        (&json!(0.0), &json!(1.0))
    );
}

async fn a_failed_run_says_why(world: &World) {
    let failing = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "a": "{{1.missing * 2}}" } })),
        ("set", json!({ "fields": {} })),
    ]);
    let workflow = world.api.workflow_with("x", failing).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "failed");
    assert!(
        text(&report["error"]).starts_with("EXPRESSION_ERROR: "),
        "{report}"
    );
    let node = &report["nodes"][1];
    assert_eq!(
        (&node["status"], &node["error"]["code"]),
        (&json!("failed"), &json!("EXPRESSION_ERROR"))
    );
    assert!(!text(&node["error"]["message"]).is_empty());
    assert!(node.get("output").is_none(), "{node}");
}

async fn skipped_nodes_are_listed(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    for (price, taken, left) in [(60, 4, 5), (10, 5, 4)] {
        let body = json!({ "id": 1, "price": price, "customer": "Ada" });
        let run = text(&world.api.call_hook(&webhook, &[], body).await.data(202)["runId"]);
        let report = world.api.ended(&run).await;
        assert_eq!(report["status"], "succeeded", "{report}");
        let node = |id: i64| {
            report["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|node| node["nodeId"] == id)
                .unwrap()
        };
        assert_eq!(node(taken)["status"], "completed");
        assert_eq!(node(left)["status"], "skipped");
        assert_eq!(node(left)["startedAt"], Value::Null);
        assert_eq!(node(3)["output"]["matched"].as_array().unwrap().len(), 1);
    }
}

async fn nodes_are_paged_in_order_of_start(world: &World) {
    let mut nodes = vec![("manual_trigger", json!({}))];
    nodes.extend((0..11).map(|_| ("set", json!({ "fields": {} }))));
    let workflow = world.api.workflow_with("x", graphs::chain(&nodes)).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let ids: Vec<i64> = report["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["nodeId"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, (1..=12).collect::<Vec<_>>());
    let paged = world.api.all_pages(&format!("/runs/{run}/nodes?limit=5")).await;
    assert_eq!(json!(paged), report["nodes"]);
    world
        .api
        .get(format!("/runs/{run}/nodes?cursor=x"))
        .await
        .invalid("cursor");
    world
        .api
        .get("/runs/run_unknown/nodes")
        .await
        .error(404, "NOT_FOUND");
}

async fn runs_are_listed_newest_first(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    world.api.get("/runs").await.invalid("workflowId");
    assert_eq!(
        world.api.get(format!("/runs?workflowId={workflow}")).await.page(),
        (vec![], None)
    );
    let mut started = Vec::new();
    for _ in 0..5 {
        started.insert(0, world.api.start(&workflow, json!({})).await);
    }
    for run in &started {
        let _ = world.api.ended(run).await;
    }
    let rows = world
        .api
        .all_pages(&format!("/runs?workflowId={workflow}&limit=2"))
        .await;
    let listed: Vec<String> = rows.iter().map(|row| text(&row["id"])).collect();
    assert_eq!(listed, started);
    assert_eq!(
        keys(&rows[0]),
        [
            "createdAt",
            "creditsUsed",
            "finishedAt",
            "id",
            "status",
            "workflowId"
        ]
    );
    assert_eq!(
        (&rows[0]["status"], &rows[0]["workflowId"]),
        (&json!("succeeded"), &json!(workflow))
    );
    assert!(is_instant(&rows[0]["createdAt"]) && is_instant(&rows[0]["finishedAt"]));
    assert_eq!(rows[0]["creditsUsed"], 1.0);
    let (_, cursor) = world
        .api
        .get(format!("/runs?workflowId={workflow}&limit=2"))
        .await
        .page();
    let other = world.api.workflow("y").await;
    world
        .api
        .get(format!("/runs?workflowId={other}&cursor={}", cursor.unwrap()))
        .await
        .invalid("cursor");
}

async fn a_run_is_found_by_status_and_id(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let short = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&short).await;
    let waiting = json!([
        { "op": "add_node", "tempId": "w", "kind": "wait", "params": { "amount": 1, "unit": "hours" }, "after": 2 },
    ]);
    world.api.edit(&workflow, waiting).await;
    let long = world.api.start(&workflow, json!({})).await;
    let _ = world.api.reached(&long, &["waiting"]).await;
    let ids = async |query: &str| -> Vec<String> {
        let rows = world
            .api
            .all_pages(&format!("/runs?workflowId={workflow}&q={query}"))
            .await;
        rows.iter().map(|row| text(&row["id"])).collect()
    };
    assert_eq!(ids("succeeded").await, [short.as_str()]);
    assert_eq!(ids("waiting").await, [long.as_str()]);
    assert_eq!(ids(&long).await, [long.as_str()]);
    assert_eq!(ids("").await, [long, short]);
}

async fn what_is_not_a_run_is_404(world: &World) {
    world.api.get("/runs/run_unknown").await.error(404, "NOT_FOUND");
    world
        .api
        .get("/runs?workflowId=wf_unknown")
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .post("/runs/run_unknown/cancel", json!({}))
        .await
        .error(404, "NOT_FOUND");
}
