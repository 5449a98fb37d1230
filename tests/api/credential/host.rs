//! Hosts that depend on a credential's fields: its secrets go to its own, and nowhere else.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};
use test_support::{Asked, Target, graphs, text};

use super::connect::page;
use crate::world::World;

on_both_databases!(
    a_secret_goes_to_its_own_host_only,
    a_secret_goes_by_https_unless_its_app_says_otherwise,
    a_credential_is_bound_to_the_hosts_it_names,
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
    let data = json!({ "url": own.url(""), "token": "t-1" });
    let credential = create(world, "ollama", "key", data).await;
    let node = sent(world, &credential, own.url("/")).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(own.asked()[0].header("authorization"), "Bearer t-1");
    for url in [other.url("/"), "https://ollama.com/".to_owned()] {
        let node = sent(world, &credential, url).await;
        assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{node}");
    }
    assert!(other.asked().is_empty());
}

async fn a_secret_goes_by_https_unless_its_app_says_otherwise(world: &World) {
    let own = echo().await;
    let stripe = create(world, "stripe", "secret_key", json!({ "token": "sk_test_1" })).await;
    let server = json!({ "host": own.address().to_string(), "token": "glpat-1" });
    let gitlab = create(world, "gitlab", "token", server).await;
    for (credential, url, instead) in [
        (
            &stripe,
            "http://api.stripe.com/v1/charges".to_owned(),
            "https://api.stripe.com",
        ),
        (
            &stripe,
            "https://api.stripe.com:8443/v1/charges".to_owned(),
            "https://api.stripe.com",
        ),
        // Its port is the one that the credential names, but not without encryption.
        (&gitlab, own.url("/"), &*format!("https://{}", own.address())),
        (
            &gitlab,
            "https://127.0.0.1/".to_owned(),
            &*format!("https://{}", own.address()),
        ),
    ] {
        let node = sent(world, credential, url.clone()).await;
        assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{url}: {node}");
        let message = text(&node["error"]["message"]);
        assert!(
            message.ends_with(&format!("write {instead} instead")),
            "{message}"
        );
    }
    assert!(own.asked().is_empty());
}

async fn a_credential_is_bound_to_the_hosts_it_names(world: &World) {
    let (own, other) = (echo().await, echo().await);
    let bound = |hosts: String| json!({ "token": "t-1", "hosts": hosts });
    let hosts = format!("api.example.com, {}", own.url(""));
    let credential = create(world, "http", "bearer", bound(hosts)).await;
    let node = sent(world, &credential, own.url("/")).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(own.asked()[0].header("authorization"), "Bearer t-1");
    for url in [other.url("/"), "http://api.example.com/".to_owned()] {
        let node = sent(world, &credential, url.clone()).await;
        assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{url}: {node}");
        let message = text(&node["error"]["message"]);
        assert!(
            message.contains("its field hosts binds it to api.example.com"),
            "{message}"
        );
    }
    assert!(other.asked().is_empty());
    let module = json!({ "url": other.url("/") });
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "appId": "http", "moduleSlug": "request", "after": "start",
          "credentialId": credential["credentialId"], "params": module },
    ]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let node = world.api.ended(&run).await["nodes"][1].clone();
    assert_eq!(
        node["error"]["code"], "HTTP_BLOCKED",
        "the module of the app, too: {node}"
    );
    assert!(other.asked().is_empty());
    let free = create(world, "http", "bearer", json!({ "token": "t-2" })).await;
    let node = sent(world, &free, other.url("/")).await;
    assert_eq!(node["status"], "completed", "nothing binds it: {node}");
    for hosts in ["a b", "a.test/x", "a.test, u@b.test"] {
        let body = json!({ "appId": "http", "connectionId": "bearer", "name": "x", "data": bound(hosts.to_owned()) });
        world.api.post("/credentials", body).await.invalid("data.hosts");
    }
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
    // One that makes a host would be asked whether the token is right.
}
