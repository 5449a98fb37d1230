//! Redis.

use serde_json::{Value, json};
use test_support::native::{NativeServer, PASSWORD, redis_or_skip};

use super::Connected;
use crate::world::World;

on_both_databases!(
    operations_do_what_they_say,
    failures_say_what_is_wrong,
    the_server_has_to_be_the_one_it_says,
    a_server_that_dies_leaves_it_open,
);

fn data(server: &NativeServer) -> Value {
    json!({ "host": "127.0.0.1", "port": server.port(), "password": PASSWORD, "tls": "disable" })
}

async fn operations_do_what_they_say(world: &World) {
    let Some(server) = redis_or_skip("operations of Redis", false).await else {
        return;
    };
    let connected = Connected::new(world, "redis", data(&server)).await;
    assert_eq!(connected.verified().await, json!({ "status": "valid" }));
    let evil = "a\r\nDEL other\r\n$3\r\n🦀";
    for (module, params, expected) in [
        ("get", json!({ "key": "other" }), json!({ "value": null })),
        (
            "set",
            json!({ "key": "other", "value": evil }),
            json!({ "done": true }),
        ),
        ("get", json!({ "key": "other" }), json!({ "value": evil })),
        (
            "set",
            json!({ "key": "other", "value": 1, "when": "absent" }),
            json!({ "done": false }),
        ),
        (
            "set",
            json!({ "key": "none", "value": 1, "when": "present" }),
            json!({ "done": false }),
        ),
        (
            "set",
            json!({ "key": "json", "value": { "a": [1] }, "expiresInSeconds": 600 }),
            json!({ "done": true }),
        ),
        ("get", json!({ "key": "json" }), json!({ "value": "{\"a\":[1]}" })),
        ("increment", json!({ "key": "number" }), json!({ "value": 1 })),
        (
            "increment",
            json!({ "key": "number", "by": -3 }),
            json!({ "value": -2 }),
        ),
        (
            "hash_set",
            json!({ "key": "hash", "values": { "a": "x", "b": 2 } }),
            json!({ "added": 2 }),
        ),
        (
            "hash_get",
            json!({ "key": "hash", "field": "b" }),
            json!({ "value": "2" }),
        ),
        (
            "hash_get",
            json!({ "key": "hash" }),
            json!({ "values": { "a": "x", "b": "2" } }),
        ),
        ("hash_get", json!({ "key": "none" }), json!({ "values": {} })),
        (
            "list_push",
            json!({ "key": "list", "values": ["b", "c"] }),
            json!({ "length": 2 }),
        ),
        (
            "list_push",
            json!({ "key": "list", "values": "a", "end": "left" }),
            json!({ "length": 3 }),
        ),
        (
            "list_pop",
            json!({ "key": "list", "count": 2 }),
            json!({ "values": ["a", "b"] }),
        ),
        ("list_pop", json!({ "key": "none" }), json!({ "values": [] })),
        (
            "publish",
            json!({ "channel": "orders", "message": { "id": 1 } }),
            json!({ "receivers": 0 }),
        ),
        (
            "delete",
            json!({ "keys": ["hash", "none"] }),
            json!({ "count": 1 }),
        ),
        ("delete", json!({ "keys": "list" }), json!({ "count": 1 })),
    ] {
        assert_eq!(connected.output(module, params).await, expected, "{module}");
    }
    let mut keys = connected.found("find_keys", json!({ "pattern": "*o*" })).await;
    keys.sort_by_key(ToString::to_string);
    assert_eq!(keys, [json!({ "key": "json" }), json!({ "key": "other" })]);
    let _pushed = connected
        .output("list_push", json!({ "key": "jobs", "values": [1, 2, 3] }))
        .await;
    assert_eq!(
        connected
            .found("list_range", json!({ "key": "jobs", "limit": 2 }))
            .await,
        [json!({ "value": "1" }), json!({ "value": "2" })]
    );
}

async fn failures_say_what_is_wrong(world: &World) {
    let Some(server) = redis_or_skip("failures of Redis", false).await else {
        return;
    };
    for password in [json!("wr0ng-pass"), Value::Null] {
        let mut wrong = data(&server);
        wrong["password"] = password;
        let connected = Connected::new(world, "redis", wrong).await;
        let (code, message) = connected.failure("get", json!({ "key": "a" })).await;
        assert_eq!(code, "CREDENTIAL_INVALID", "{message}");
        assert!(!message.contains("wr0ng-pass"), "{message}");
        assert_eq!(connected.verified().await["status"], "invalid");
    }
    let connected = Connected::new(world, "redis", data(&server)).await;
    let _set = connected
        .output("set", json!({ "key": "text", "value": "x" }))
        .await;
    for (module, params, expected) in [
        ("increment", json!({ "key": "text" }), "SERVER_ERROR"),
        ("list_pop", json!({ "key": "text" }), "SERVER_ERROR"),
        (
            "list_push",
            json!({ "key": "a", "values": [] }),
            "EXPRESSION_ERROR",
        ),
        (
            "hash_set",
            json!({ "key": "a", "values": {} }),
            "EXPRESSION_ERROR",
        ),
        (
            "set",
            json!({ "key": "a", "value": 1, "expiresInSeconds": -1 }),
            "EXPRESSION_ERROR",
        ),
    ] {
        let (code, message) = connected.failure(module, params).await;
        assert_eq!(code, expected, "{module}: {message}");
    }
    // What is larger than a call may bring is not read.
    let half = "x".repeat(512 * 1024);
    let push = json!({ "key": "large", "values": "{{map(1.times; n => 1.text)}}" });
    let input = json!({ "times": [1, 2, 3, 4, 5, 6, 7, 8], "text": half });
    for _ in 0..3 {
        let pushed = connected.ran("list_push", push.clone(), input.clone()).await;
        assert!(pushed["length"].is_number(), "{pushed}");
    }
    let (code, _) = connected.failure("list_range", json!({ "key": "large" })).await;
    assert_eq!(code, "ANSWER_TOO_LARGE");
}

async fn the_server_has_to_be_the_one_it_says(world: &World) {
    let Some(server) = redis_or_skip("TLS of Redis", true).await else {
        return;
    };
    for (host, trusted, is_right) in [
        ("localhost", Some(server.certificate()), true),
        ("localhost", None, false),
        ("127.0.0.1", Some(server.certificate()), false),
    ] {
        let data =
            json!({ "host": host, "port": server.port(), "password": PASSWORD, "caCertificate": trusted });
        let verified = Connected::new(world, "redis", data).await.verified().await;
        assert_eq!(verified["status"] == "valid", is_right, "{host} {verified}");
    }
}

async fn a_server_that_dies_leaves_it_open(world: &World) {
    let Some(mut server) = redis_or_skip("a Redis that dies", false).await else {
        return;
    };
    let connected = Connected::new(world, "redis", data(&server)).await;
    assert_eq!(connected.verified().await, json!({ "status": "valid" }));
    server.pause();
    let run = connected
        .started("set", json!({ "key": "a", "value": 1 }), json!({}))
        .await;
    let report = world.api.reached(&run, &["running", "failed"]).await;
    assert_eq!(report["status"], "running", "{report}");
    server.kill();
    let error = connected.recorded(&run).await["error"].clone();
    let code = error["code"].as_str().unwrap();
    assert!(
        code == "CONNECTION_FAILED" || code == "CONNECTION_LOST",
        "{error}"
    );
}
