//! Objects in a real store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use test_support::{HttpClient, ObjectStore, text};

use super::call::{self, credential, fails, output, verify};
use crate::world::World;

on_both_databases!(
    objects_are_written_read_and_deleted,
    objects_are_listed_page_by_page,
    a_url_is_a_key_for_a_while,
    the_store_decides_who_is_asking,
    what_cannot_be_done_is_told,
    new_objects_start_runs,
);

const KEY: (&str, &str) = ("AKIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPx");

async fn store(token: Option<&str>) -> Option<ObjectStore> {
    ObjectStore::start_or_skip("objects", KEY, token, &["orders", "other"]).await
}

fn data(store: &ObjectStore) -> Value {
    json!({ "endpoint": store.url(), "bucket": "orders", "accessKeyId": KEY.0, "secretAccessKey": KEY.1 })
}

async fn objects_are_written_read_and_deleted(world: &World) {
    let Some(store) = store(None).await else { return };
    let credential = credential(world, "s3", data(&store)).await;
    assert_eq!(verify(world, &credential).await, json!({ "status": "valid" }));
    let key = "Ünterlagen/a b+c&d=e/100%.json";
    let written = output(
        world,
        ("s3", "put_object"),
        &credential,
        json!({ "key": key, "text": { "order": 7 }, "contentType": "application/json" }),
    )
    .await;
    assert_eq!(
        (&written["bucket"], &written["size"]),
        (&json!("orders"), &json!(11)),
        "{written}"
    );
    let read = output(world, ("s3", "get_object"), &credential, json!({ "key": key })).await;
    assert_eq!(
        (&read["text"], &read["base64"]),
        (&json!("{\"order\":7}"), &Value::Null),
        "{read}"
    );
    assert_eq!(
        (&read["contentType"], &read["etag"]),
        (&json!("application/json"), &written["etag"])
    );
    let bytes = STANDARD.encode([0xff, 0x00, 0xfe]);
    let params = json!({ "bucket": "other", "key": "bytes", "base64": bytes });
    let _ = output(world, ("s3", "put_object"), &credential, params).await;
    let params = json!({ "bucket": "other", "key": "bytes" });
    let read = output(world, ("s3", "get_object"), &credential, params.clone()).await;
    assert_eq!(
        (&read["text"], &read["base64"]),
        (&Value::Null, &json!(bytes)),
        "{read}"
    );
    let mut as_text = params.clone();
    as_text["as"] = json!("text");
    fails(
        world,
        ("s3", "get_object"),
        &credential,
        as_text,
        ("SERVER_ERROR", "no text", 1),
    )
    .await;
    for _twice in 0..2 {
        let gone = output(world, ("s3", "delete_object"), &credential, params.clone()).await;
        assert_eq!(gone, params);
    }
    fails(
        world,
        ("s3", "get_object"),
        &credential,
        params,
        ("SERVER_ERROR", "NoSuchKey", 1),
    )
    .await;
}

async fn objects_are_listed_page_by_page(world: &World) {
    let Some(store) = store(None).await else { return };
    let credential = credential(world, "s3", data(&store)).await;
    let put = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "many", "kind": "splitter", "after": "start",
          "params": { "items": "{{range(0; 8)}}" } },
        { "op": "add_node", "tempId": "put", "appId": "s3", "moduleSlug": "put_object", "after": "many",
          "credentialId": credential, "params": { "key": "in box/{{$item}} ü", "text": "{{$item}}" } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "put", "params": { "of": 2 } },
    ]);
    let listing = |params: Value| {
        json!([
            { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "list", "appId": "s3", "moduleSlug": "list_objects", "after": "start",
              "credentialId": credential, "params": params },
            { "op": "add_node", "tempId": "key", "kind": "set", "after": "list", "params": { "fields": { "key": "{{2.key}}" } } },
            { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "key",
              "params": { "of": 2, "collect": "{{3.key}}" } },
        ])
    };
    let run = async |operations: Value| {
        let workflow = world.api.workflow_with("objects", operations).await;
        let run = world.api.start(&workflow, json!({})).await;
        let report = world.api.ended(&run).await;
        assert_eq!(report["status"], "succeeded", "{report}");
        let nodes = report["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["nodeId"] == 4).unwrap()["output"].clone()
    };
    assert_eq!(run(put).await["count"], 8);
    // The store lists three a page.
    let all = run(listing(json!({ "prefix": "in box/", "limit": 5000 }))).await;
    let keys: Vec<String> = (0..8).map(|number| format!("in box/{number} ü")).collect();
    assert_eq!(all["items"], json!(keys));
    assert_eq!(
        run(listing(json!({ "limit": 7 }))).await["items"],
        json!(keys[..7])
    );
    assert_eq!(
        run(listing(json!({ "prefix": "in box/5" }))).await["items"],
        json!(keys[5..6])
    );
    assert_eq!(
        run(listing(json!({ "prefix": "nothing" }))).await["items"],
        json!([])
    );
}

async fn a_url_is_a_key_for_a_while(world: &World) {
    let Some(store) = store(None).await else { return };
    let credential = credential(world, "s3", data(&store)).await;
    let made = |method: &str| json!({ "key": "gruß.txt", "method": method, "expiresInSeconds": 600 });
    let put = output(world, ("s3", "presign_url"), &credential, made("put")).await;
    let get = output(world, ("s3", "presign_url"), &credential, made("get")).await;
    assert_eq!((&put["method"], &get["method"]), (&json!("PUT"), &json!("GET")));
    assert!(get["expiresAt"].as_i64().unwrap() > 1_700_000_000_000, "{get}");
    let anybody = HttpClient::new(
        store.url().strip_prefix("http://").unwrap().parse().unwrap(),
        None,
    );
    let send = async |method: &str, url: &Value, body: &'static str| {
        let uri = text(url).strip_prefix(&store.url()).unwrap().to_owned();
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .body(Bytes::from(body))
            .unwrap();
        anybody.send(request).await.unwrap()
    };
    assert_eq!(send("PUT", &put["url"], "Grüße").await.status, 200);
    assert_eq!(send("GET", &get["url"], "").await.text(), "Grüße");
    assert_eq!(
        send("GET", &put["url"], "").await.status,
        403,
        "it is for putting"
    );
    let forged = json!(text(&get["url"]).replace("gru%C3%9F", "other"));
    assert_eq!(send("GET", &forged, "").await.status, 403);
    let too_long = json!({ "key": "k", "expiresInSeconds": 604_801 });
    fails(
        world,
        ("s3", "presign_url"),
        &credential,
        too_long,
        ("EXPRESSION_ERROR", "604800", 1),
    )
    .await;
}

async fn the_store_decides_who_is_asking(world: &World) {
    let token = "session-token/1==";
    let Some(store) = store(Some(token)).await else {
        return;
    };
    let with = |changes: Value| {
        let mut data = data(&store);
        data["sessionToken"] = json!(token);
        data.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        data
    };
    for right in [json!({}), json!({ "bucket": null })] {
        let right = credential(world, "s3", with(right)).await;
        assert_eq!(verify(world, &right).await, json!({ "status": "valid" }));
    }
    for (wrong, says) in [
        (
            json!({ "secretAccessKey": "another-secret" }),
            "SignatureDoesNotMatch",
        ),
        (json!({ "accessKeyId": "AKIAOTHER" }), "InvalidAccessKeyId"),
        (json!({ "sessionToken": "another-token" }), "InvalidToken"),
        (json!({ "bucket": "missing" }), "NoSuchBucket"),
        (json!({ "endpoint": "http://127.0.0.2:9" }), "private or reserved"),
    ] {
        let wrong = credential(world, "s3", with(wrong)).await;
        call::refused(world, &wrong, says).await;
    }
    let wrong = credential(world, "s3", with(json!({ "secretAccessKey": "another-secret" }))).await;
    let params = json!({ "key": "k", "text": "" });
    let expected = ("CREDENTIAL_INVALID", "SignatureDoesNotMatch", 1);
    fails(world, ("s3", "put_object"), &wrong, params, expected).await;
    let right = credential(world, "s3", with(json!({}))).await;
    let _ = output(
        world,
        ("s3", "put_object"),
        &right,
        json!({ "key": "k", "text": "" }),
    )
    .await;
    let expected = ("SERVER_ERROR", "would show the token", 1);
    fails(
        world,
        ("s3", "presign_url"),
        &right,
        json!({ "key": "k" }),
        expected,
    )
    .await;
}

async fn what_cannot_be_done_is_told(world: &World) {
    let Some(mut store) = store(None).await else {
        return;
    };
    let credential = credential(world, "s3", data(&store)).await;
    let get = ("s3", "get_object");
    for (called, params, expected) in [
        (get, json!({ "key": "none" }), ("SERVER_ERROR", "NoSuchKey", 1)),
        (
            get,
            json!({ "bucket": "missing", "key": "k" }),
            ("SERVER_ERROR", "NoSuchBucket", 1),
        ),
        (get, json!({ "key": "slow-down" }), ("SERVER_BUSY", "SlowDown", 2)),
        (
            get,
            json!({ "key": "../other/k" }),
            ("EXPRESSION_ERROR", "no URL can hold", 1),
        ),
        (
            ("s3", "put_object"),
            json!({ "key": "k" }),
            ("EXPRESSION_ERROR", "must be given", 1),
        ),
    ] {
        fails(world, called, &credential, params, expected).await;
    }
    store.kill();
    fails(
        world,
        get,
        &credential,
        json!({ "key": "none" }),
        ("CONNECTION_FAILED", "127.0.0.1", 2),
    )
    .await;
    call::refused(world, &credential, "cannot be reached").await;
}

async fn new_objects_start_runs(world: &World) {
    let Some(store) = store(None).await else { return };
    let credential = credential(world, "s3", data(&store)).await;
    let put = async |key: &str| {
        output(
            world,
            ("s3", "put_object"),
            &credential,
            json!({ "key": key, "text": key }),
        )
        .await
    };
    let _ = put("inbox/old").await;
    call::starts_runs(
        world,
        &credential,
        ("s3", "new_object", json!({ "prefix": "inbox/" })),
        async |number| {
            let _ = put("outbox/other").await;
            let _ = put(&format!("inbox/new {number}")).await;
        },
        |started| assert!(text(&started["key"]).starts_with("inbox/new "), "{started}"),
    )
    .await;
}
