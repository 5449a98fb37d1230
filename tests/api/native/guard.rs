//! Drivers go where requests may go, and manifests that name one are checked.

use serde_json::json;
use test_support::{Server, ServerOptions};

use super::Connected;
use crate::catalog::add;
use crate::world::World;

on_both_databases!(
    private_addresses_are_out_of_reach,
    nobody_at_home_is_worth_another_attempt,
    manifests_name_what_drivers_have,
    a_credential_of_a_server_is_not_for_requests,
);

/// Where each app's server would be.
fn data(app: &str, host: &str, port: u16) -> serde_json::Value {
    match app {
        "redis" => json!({ "host": host, "port": port, "tls": "disable" }),
        _ => {
            json!({ "host": host, "port": port, "database": "d", "username": "u", "password": "pass-word", "tls": "disable" })
        }
    }
}

/// What its list is asked for.
fn params(app: &str) -> serde_json::Value {
    match app {
        "redis" => json!({ "pattern": "*" }),
        _ => json!({ "query": "SELECT 1" }),
    }
}

const APPS: [(&str, &str); 3] = [
    ("postgresql", "query"),
    ("mysql", "query"),
    ("redis", "find_keys"),
];

async fn private_addresses_are_out_of_reach(world: &World) {
    for (app, module) in APPS {
        for host in ["10.0.0.1", "169.254.169.254", "127.0.0.2", "::1", "0x7f000002"] {
            let connected = Connected::new(world, app, data(app, host, 1)).await;
            let (code, message) = connected.failure(module, params(app)).await;
            assert_eq!(code, "CONNECTION_BLOCKED", "{app} {host}: {message}");
            assert!(message.contains("--outbound-allow"), "{message}");
        }
        let connected = Connected::new(world, app, data(app, "10.0.0.1", 1)).await;
        let verified = connected.verified().await;
        assert_eq!(verified["status"], "invalid");
        assert!(
            verified["error"].as_str().unwrap().contains("private"),
            "{verified}"
        );
    }
}

async fn nobody_at_home_is_worth_another_attempt(world: &World) {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (app, module) in APPS {
        let connected = Connected::new(world, app, data(app, "127.0.0.1", free.port())).await;
        // The app's own retries, one after a second and one after two, come first.
        let workflow = connected.workflow(module, params(app), json!({})).await;
        let run = world.api.start(&workflow, json!({})).await;
        let report = world.api.ended(&run).await;
        let node = &report["nodes"][1];
        assert_eq!(node["error"]["code"], "CONNECTION_FAILED", "{report}");
        assert_eq!(node["attempt"], 3, "{report}");
    }
}

async fn manifests_name_what_drivers_have(world: &World) {
    let manifest = |changes: &[(&str, &str)]| {
        let mut text = include_str!("shop_queue.yaml").to_owned();
        for (right, wrong) in changes {
            assert!(text.contains(right), "{right}");
            text = text.replacen(right, wrong, 1);
        }
        text
    };
    let added = add(&world.admin, Some(&world.organization), &manifest(&[])).await;
    assert_eq!(
        added.unwrap().version,
        1,
        "an organization's own app may have a driver"
    );
    for (right, wrong, says) in [
        (
            "driver: redis",
            "driver: oracle",
            "there are imap, mysql, postgresql, redis",
        ),
        (
            "operation: list_pop",
            "operation: eval",
            "is no operation of redis",
        ),
        ("operation: list_pop", "operation: find_keys", "gives a list"),
        ("operation: list_pop", "connection: required", "is required"),
        (
            "name: count",
            "name: script",
            "the operation list_pop takes key, end, count",
        ),
        (
            "name: password",
            "name: socket",
            "the driver redis reads host, port",
        ),
        ("type: server", "type: none", "must be server"),
        (
            "driver: redis",
            "driver: redis\nheaders: { a: b }",
            "does not belong to an app with a driver",
        ),
        (
            "name: key, label: Key, type: text, required: true",
            "name: end, label: Key, type: text",
            "required field key",
        ),
    ] {
        let refused = add(
            &world.admin,
            Some(&world.organization),
            &manifest(&[(right, wrong)]),
        )
        .await;
        let message = format!("{:?}", refused.unwrap_err());
        assert!(message.contains(says), "{wrong}: {message}");
    }
}

async fn a_credential_of_a_server_is_not_for_requests(world: &World) {
    let connected = Connected::new(world, "redis", data("redis", "127.0.0.1", 1)).await;
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "kind": "http_request", "after": "start",
          "params": { "url": "http://127.0.0.1:1/", "credentialId": connected.credential } },
    ]);
    let workflow = world.api.workflow_with("Leak", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let error = connected.recorded(&run).await["error"].clone();
    assert_eq!(error["code"], "HTTP_BLOCKED", "{error}");
}

/// A server whose operator allows nothing reaches not even this machine.
#[tokio::test]
async fn without_leave_this_machine_is_out_of_reach() {
    let server = Server::start(ServerOptions::default()).await;
    let api = server.first_api();
    let body = json!({ "appId": "redis", "connectionId": "server", "name": "Own", "data": data("redis", "localhost", 6379) });
    let made = api.post("/credentials", body).await.data(200);
    let path = format!(
        "/credentials/{}/verify",
        test_support::text(&made["credentialId"])
    );
    let verified = api.post(path, json!({})).await.data(200);
    assert!(
        verified["error"].as_str().unwrap().contains("private"),
        "{verified}"
    );
}
