//! Hosts that depend on a credential's fields: its secrets go to its own, and nowhere else.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};
use test_support::{Asked, Target, graphs, text};

use super::connect::page;
use crate::world::World;

on_both_databases!(
    a_secret_goes_to_its_own_host_only,
    another_host_of_the_vendor_is_another_host,
    a_field_that_makes_no_host_is_refused,
    the_page_refuses_it_too,
);

async fn echo() -> Target {
    Target::start(|_: &Asked| Response::builder().status(200).body(Bytes::new()).unwrap()).await
}

async fn create(world: &World, app: &str, connection: &str, data: Value) -> Value {
    let body = json!({ "appId": app, "connectionId": connection, "name": "Mine", "data": data });
    world.api.post("/credentials", body).await.data(200)
}

/// The end of the node that sends a request to this URL with this credential.
async fn sent(world: &World, credential: &Value, url: String) -> Value {
    let params = json!({ "url": url, "credentialId": credential["credentialId"] });
    let operations = graphs::chain(&[("manual_trigger", json!({})), ("http_request", params)]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    world.api.ended(&run).await["nodes"][1].clone()
}

async fn a_secret_goes_to_its_own_host_only(world: &World) {
    let (own, other) = (echo().await, echo().await);
    let data = json!({ "host": own.address().to_string(), "token": "glpat-1" });
    let credential = create(world, "gitlab", "token", data).await;
    let node = sent(world, &credential, own.url("/")).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(own.asked()[0].header("authorization"), "Bearer glpat-1");
    for url in [other.url("/"), "https://gitlab.com/".to_owned()] {
        let node = sent(world, &credential, url).await;
        assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{node}");
    }
    assert!(other.asked().is_empty());
}

async fn another_host_of_the_vendor_is_another_host(world: &World) {
    for (app, connection, data, host) in [
        (
            "jira",
            "api_token",
            json!({ "site": "mine", "username": "a@b.test", "password": "s" }),
            "other.atlassian.net",
        ),
        (
            "shopify",
            "access_token",
            json!({ "shop": "mine", "token": "shpat_1" }),
            "other.myshopify.com",
        ),
        (
            "supabase",
            "secret_key",
            json!({ "project": "mine", "key": "sb_secret_1" }),
            "other.supabase.co",
        ),
        (
            "ollama",
            "key",
            json!({ "url": "https://mine.test", "token": "t" }),
            "other.test",
        ),
        (
            "pipedrive",
            "token",
            json!({ "token": "t" }),
            "other.pipedrive.com",
        ),
    ] {
        let credential = create(world, app, connection, data).await;
        let node = sent(world, &credential, format!("https://{host}/")).await;
        assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{node}");
        let message = text(&node["error"]["message"]);
        assert!(message.contains(&format!("do not go to {host}")), "{message}");
    }
}

async fn a_field_that_makes_no_host_is_refused(world: &World) {
    for host in [
        "evil.test/x",
        "evil.test/",
        "https://evil.test",
        "u@evil.test",
        "*",
        "*.evil.test",
        "evil.test:0x1",
        "evil.test?",
        "a..b",
        "a b",
    ] {
        let data = json!({ "host": host, "token": "t" });
        let body = json!({ "appId": "gitlab", "connectionId": "token", "name": "x", "data": data });
        world.api.post("/credentials", body).await.invalid("data.host");
    }
    let data = json!({ "url": "https://mine.test?x=/y", "token": "t" });
    let body = json!({ "appId": "ollama", "connectionId": "key", "name": "x", "data": data });
    world.api.post("/credentials", body).await.invalid("data.url");
}

async fn the_page_refuses_it_too(world: &World) {
    // Everything is left to a person, who is asked for the shop as well.
    let made = create(world, "shopify", "access_token", json!({})).await;
    let refused = page(world, &made, Method::POST, "shop=-.-&token=shpat_1").await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let long = "x".repeat(64);
    let refused = page(world, &made, Method::POST, &format!("shop={long}&token=shpat_1")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("makes no host"), "{}", refused.text());
    let done = page(world, &made, Method::POST, "shop=mine&token=shpat_1").await;
    assert_eq!(done.status, 200, "{}", done.text());
}
