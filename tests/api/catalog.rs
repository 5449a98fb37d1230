//! The catalog: what there is to build workflows with.

use serde_json::json;
use test_support::text;

use crate::world::World;

on_both_databases!(
    native_kinds_describe_themselves,
    apps_are_searched,
    unknown_things_are_not_found
);

async fn native_kinds_describe_themselves(world: &World) {
    for kind in [
        "manual_trigger",
        "webhook_trigger",
        "set",
        "condition",
        "splitter",
        "aggregator",
        "wait",
        "stop",
    ] {
        let spec = world.api.get(format!("/catalog/nodes/{kind}")).await.data(200);
        assert_eq!(
            (&spec["kind"], &spec["persists_under"]),
            (&json!(kind), &json!("params"))
        );
        for text_field in ["label", "description", "expressionGrammar", "edgeModel"] {
            assert!(!text(&spec[text_field]).is_empty(), "{kind} {text_field}");
        }
        assert!(spec["insertable"].is_boolean() && spec["example"].is_object());
        for (name, field) in spec["shape"].as_object().unwrap() {
            assert!(
                field["type"].is_string() && field["required"].is_boolean(),
                "{kind} {name}"
            );
            assert!(!text(&field["description"]).is_empty(), "{kind} {name}");
        }
        // The example is one: it can be added.
        let workflow = world.api.workflow(kind).await;
        let op = json!([{ "op": "add_node", "tempId": "n", "kind": kind, "params": spec["example"] }]);
        if spec["insertable"] == true && kind != "splitter" && kind != "aggregator" {
            let _ = world.api.edit(&workflow, op).await;
        }
    }
    let stop = world.api.get("/catalog/nodes/stop").await.data(200);
    assert_eq!(stop["routes"], json!([]));
    let wait = world.api.get("/catalog/nodes/wait").await.data(200);
    assert_eq!(wait["routes"], json!(["normal", "fallback", "error"]));
    assert!(text(&wait["shape"]["unit"]["description"]).contains("seconds, minutes, hours, days"));
}

async fn apps_are_searched(world: &World) {
    assert!(
        world
            .api
            .get("/catalog/apps?query=nothing+like+this")
            .await
            .data(200)
            == json!([])
    );
    world.api.get("/catalog/apps").await.invalid("query");
    world.api.get("/catalog/apps?query=").await.invalid("query");
    world
        .api
        .get("/catalog/apps?query=x&limit=0")
        .await
        .invalid("limit");
}

async fn unknown_things_are_not_found(world: &World) {
    for path in [
        "/catalog/nodes/warp_drive",
        "/catalog/nodes/http",
        "/catalog/apps/nothing/modules/x",
        "/catalog/apps/native/modules/wait",
    ] {
        world.api.get(path).await.error(404, "NOT_FOUND");
    }
}
