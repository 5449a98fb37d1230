//! What comes with the service: native kinds and apps, as callers and their tools read them.

use serde_json::{Value, json};
use test_support::text;

use crate::world::World;

on_both_databases!(
    native_kinds_describe_themselves,
    apps_are_searched,
    modules_describe_themselves,
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
        "http_request",
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

/// The apps that a search finds.
async fn found(world: &World, query: &str) -> Vec<Value> {
    let found = world
        .api
        .get(format!("/catalog/apps?query={query}"))
        .await
        .data(200);
    found.as_array().unwrap().clone()
}

fn ids(rows: &[Value], name: &str) -> Vec<String> {
    rows.iter().map(|row| text(&row[name])).collect()
}

async fn apps_are_searched(world: &World) {
    assert_eq!(found(world, "qwertz+uiopq").await, Vec::<Value>::new());
    for (query, app) in [
        ("send+e-mail", "gmail"),
        ("sms", "twilio"),
        ("crm", "salesforce"),
        ("issues+of+a+project", "jira"),
        ("slak", "slack"),
    ] {
        let apps = found(world, query).await;
        assert!(ids(&apps, "appId").contains(&app.to_owned()), "{query}: {apps:?}");
    }
    let apps = found(world, "HTTP").await;
    assert!(ids(&apps, "appId").contains(&"native".to_owned()));
    let app = &apps[0];
    assert_eq!(app["name"], "HTTP", "an app of that name comes first");
    assert_eq!(
        app["modules"],
        json!([
            { "id": "request", "label": "Make a request", "type": "action" },
            { "id": "list", "label": "Get a list", "type": "search" },
            { "id": "new_item", "label": "New thing in a list", "type": "trigger" },
        ])
    );
    assert_eq!(app["rpcs"], json!([]));
    let connections = app["connections"].as_array().unwrap();
    assert_eq!(ids(connections, "id"), ["none", "basic", "bearer", "api_key"]);
    let token = json!({ "name": "token", "label": "Token", "type": "text", "required": true });
    assert_eq!(connections[2]["fields"][0], token);
    let native = found(world, "wait").await;
    assert_eq!(ids(&native, "appId"), ["native"]);
    assert_eq!(
        native[0]["modules"][0],
        json!({ "id": "wait", "label": "Wait", "type": "action" })
    );
    let described = found(world, "private+addresses").await;
    assert_eq!(described[0]["modules"][0]["id"], "http_request", "{described:?}");
    assert_eq!(
        ids(&found(world, "any+service").await, "appId"),
        ["http", "native"]
    );
    let limited = world.api.get("/catalog/apps?query=http&limit=1").await.data(200);
    assert_eq!(ids(limited.as_array().unwrap(), "appId"), ["http"]);
    for (path, place) in [
        ("/catalog/apps", "query"),
        ("/catalog/apps?query=", "query"),
        ("/catalog/apps?query=x&limit=0", "limit"),
        ("/catalog/apps?query=x&limit=many", "limit"),
        ("/catalog/apps?query=x&page=2", "page"),
    ] {
        world.api.get(path).await.invalid(place);
    }
}

async fn modules_describe_themselves(world: &World) {
    let spec = world
        .api
        .get("/catalog/apps/http/modules/request")
        .await
        .data(200);
    assert_eq!(
        (&spec["emitsMultipleBundles"], &spec["requiresConnection"]),
        (&json!(false), &json!(false))
    );
    let meta = &spec["meta"];
    assert_eq!(
        (&meta["appId"], &meta["moduleId"], &meta["type"]),
        (&json!("http"), &json!("request"), &json!("action"))
    );
    assert_eq!(meta["connections"].as_array().unwrap().len(), 4);
    let workflow = world.api.workflow("http").await;
    let op = json!([{ "op": "add_node", "tempId": "n", "appId": "http", "moduleSlug": "request", "params": meta["example"] }]);
    let _ = world.api.edit(&workflow, op).await;
    let mappable = spec["mappableFields"].as_array().unwrap();
    assert_eq!(
        ids(mappable, "name"),
        ["method", "url", "headers", "query", "body"]
    );
    assert_eq!(
        mappable[1],
        json!({ "name": "url", "label": "URL", "type": "text", "required": true })
    );
    let fixed = spec["staticFields"].as_array().unwrap();
    assert_eq!(
        ids(fixed, "name"),
        ["bodyType", "failOn", "followRedirects", "responseType"]
    );
    assert_eq!(
        meta["fields"]["responseType"]["choices"],
        json!(["auto", "json", "text", "base64"])
    );
    let posting = world.api.get("/catalog/apps/slack/modules/post_message").await;
    let posting = &posting.data(200)["meta"]["fields"];
    assert_eq!(posting["channel"], json!({ "options": "channels" }));
    assert_eq!(posting["blocks"], json!({ "description": "Block Kit." }));
    let several = world.api.get("/catalog/apps/http/modules/list").await.data(200);
    assert_eq!(several["emitsMultipleBundles"], true);
    // A native kind is no module: the answer says where it is described.
    world
        .api
        .get("/catalog/apps/native/modules/wait")
        .await
        .invalid("moduleId");
}

async fn unknown_things_are_not_found(world: &World) {
    for path in [
        "/catalog/nodes/warp_drive",
        "/catalog/nodes/http",
        "/catalog/apps/nothing/modules/x",
        "/catalog/apps/native/modules/x",
        "/catalog/apps/http/modules/x",
    ] {
        world.api.get(path).await.error(404, "NOT_FOUND");
    }
}
