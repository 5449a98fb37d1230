//! The built-in manifests, and what an interpreter must refuse.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use url::Url;

use super::*;

/// A manifest with this in the place of its parts.
fn manifest(connections: &str, modules: &str, rest: &str) -> String {
    format!(
        "manifest: 1\nid: shop\nname: Shop\nhosts: [api.shop.test, '*.shop.example']\n\
         connections: {connections}\nmodules: {modules}\n{rest}"
    )
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn http() -> Arc<App> {
    Arc::clone(Apps::built_in().unwrap().find("http").unwrap())
}

#[test]
fn the_built_in_apps_can_be_read() {
    let apps = Apps::built_in().unwrap();
    let ids: Vec<&str> = apps.iter().map(|app| app.id.as_str()).collect();
    assert_eq!(ids, ["http"]);
    let app = http();
    let connections: Vec<&str> = app.connections.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(connections, ["none", "basic", "bearer", "api_key"]);
    assert!(app.permits(&Url::parse("https://anything.test/").unwrap()));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let field = |text: &str| format!("[{{ id: c, label: C, type: t, fields: [{text}] }}]");
    for (text, says) in [
        (
            manifest("[]", "[]", "").replace("manifest: 1", "manifest: 2"),
            "version 2",
        ),
        (manifest("[]", "[]", "surprise: 1"), "surprise"),
        (
            manifest("[]", "[]", "").replace("api.shop.test", "'https://x'"),
            "no host",
        ),
        (
            manifest(&field("{ name: a, label: A, type: colour }"), "[]", ""),
            "colour",
        ),
        (
            manifest(
                &field("{ name: a, label: A, type: integer, default: x }"),
                "[]",
                "",
            ),
            "default of a",
        ),
        (
            manifest(
                &field("{ name: a, label: A, type: text }, { name: a, label: A, type: text }"),
                "[]",
                "",
            ),
            "stands twice",
        ),
        (
            manifest(
                "[{ id: c, label: C, type: t, apply: [{ to: header, name: a, value: '{{$vars.secrets.x}}' }] }]",
                "[]",
                "",
            ),
            "$vars.secrets",
        ),
        (
            manifest(
                "[{ id: c, label: C, type: t, verify: { url: '{{1 +}}' } }]",
                "[]",
                "",
            ),
            "cannot be read",
        ),
        ("[]".to_owned(), "cannot be read"),
    ] {
        let error = App::read(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn requests_stay_with_their_hosts() {
    let app = App::read(&manifest("[]", "[]", "")).unwrap();
    for (url, permitted) in [
        ("https://api.shop.test/x", true),
        ("https://eu.shop.example/", true),
        ("https://shop.example/", false),
        ("https://api.shop.test.evil.test/", false),
        ("https://evilshop.example/", false),
        ("https://1.1.1.1/", false),
    ] {
        assert_eq!(app.permits(&Url::parse(url).unwrap()), permitted, "{url}");
    }
}

#[test]
fn data_is_checked_by_the_fields() {
    let app = http();
    let api_key = app.connection("api_key").unwrap();
    let wrong = |given: Value| {
        let problems = api_key.read(object(given)).err().unwrap();
        problems
            .into_iter()
            .map(|problem| problem.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(wrong(json!({ "name": "a b" })), ["name"]);
    assert_eq!(
        wrong(json!({ "name": "x", "value": 1, "in": "body" })),
        ["value", "in"]
    );
    assert_eq!(wrong(json!({ "Value": "x" })), ["Value"]);
    assert_eq!(wrong(json!({ "value": "a\r\nb" })), ["value"]);
    assert_eq!(wrong(json!({ "value": " " })), ["value"]);
    assert_eq!(wrong(json!({ "value": "x".repeat(16_385) })), ["value"]);
    assert_eq!(wrong(json!({ "verifyUrl": "ftp://x" })), ["verifyUrl"]);
    assert_eq!(wrong(json!({ "verifyUrl": "https://u:p@x" })), ["verifyUrl"]);
    let data = api_key
        .read(object(json!({ "name": "x-key", "value": null })))
        .ok()
        .unwrap();
    let missing: Vec<&str> = api_key
        .missing(&data)
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(missing, ["value"]);
    let form = HashMap::from([
        ("value".to_owned(), "k".to_owned()),
        ("name".to_owned(), "other".to_owned()),
    ]);
    let typed = api_key.read_form(&api_key.missing(&data), &form).ok().unwrap();
    let whole = data.extended(typed);
    assert!(api_key.missing(&whole).is_empty());
    assert_eq!(
        serde_json::from_str::<Value>(whole.to_secret().expose()).unwrap(),
        json!({ "name": "x-key", "value": "k" })
    );
}

fn grant(connection: &str, data: Value) -> Grant {
    let app = http();
    let connection = app.connection(connection).unwrap();
    let data = connection.read(object(data)).ok().unwrap();
    connection.grant(&data).unwrap()
}

#[test]
fn connections_say_what_they_add() {
    let basic = grant("basic", json!({ "username": "Ada", "password": "pa:ss" }));
    let (name, value) = &basic.secrets.headers[0];
    assert_eq!(
        (name.as_str(), value.to_str().unwrap()),
        ("authorization", "Basic QWRhOnBhOnNz")
    );
    let hidden: Vec<&str> = basic.hidden.iter().map(crate::secret::Secret::expose).collect();
    assert_eq!(hidden, ["pa:ss", "QWRhOnBhOnNz", "Basic QWRhOnBhOnNz"]);
    let bearer = grant("bearer", json!({ "token": "t" }));
    assert_eq!(bearer.secrets.headers[0].1.to_str().unwrap(), "Bearer t");
    let header = grant("api_key", json!({ "name": "X-Key", "value": "k" }));
    assert_eq!(header.secrets.headers[0].0.as_str(), "x-key");
    let query = grant("api_key", json!({ "name": "key", "value": "k", "in": "query" }));
    assert!(query.secrets.headers.is_empty());
    assert_eq!(
        (
            query.secrets.query[0].0.as_str(),
            query.secrets.query[0].1.expose()
        ),
        ("key", "k")
    );
    assert!(grant("none", json!({})).secrets.headers.is_empty());
}

#[test]
fn request_templates_never_see_secrets() {
    let text = manifest(
        "[{ id: c, label: C, type: t, fields: [{ name: shop, label: S, type: text }, \
         { name: key, label: K, type: text, secret: true }] }]",
        "[{ id: m, label: M, type: action, description: d, connection: required, fields: \
         [{ name: limit, label: L, type: integer, default: 10 }], request: { url: \
         'https://{{$vars.connection.shop}}.shop.example/{{$vars.parameters.limit}}/{{$vars.connection.key}}' } }]",
        "",
    );
    let app = App::read(&text).unwrap();
    let connection = app.connection("c").unwrap();
    let data = connection
        .read(object(json!({ "shop": "eu", "key": "hidden" })))
        .ok()
        .unwrap();
    let module = app.module("m").unwrap();
    let request = module.request(&Map::new(), Some((connection, &data))).unwrap();
    assert_eq!(request, json!({ "url": "https://eu.shop.example/10/" }));
}

#[test]
fn dynamic_options_are_cut_at_two_hundred() {
    let text = manifest(
        "[]",
        "[]",
        "rpcs: [{ id: lists, label: Lists, dependsOn: [board], request: { url: 'https://api.shop.test/{{$vars.parameters.board}}' }, \
         options: { items: '{{$vars.response.body.rows}}', value: '{{$item.id}}', label: '{{$item.name}}' } }]",
    );
    let app = App::read(&text).unwrap();
    let rpc = app.rpc("lists").unwrap();
    let request = rpc.request(&json!({ "board": 7 }), None).unwrap();
    assert_eq!(request, json!({ "url": "https://api.shop.test/7" }));
    let response = |count: usize| {
        let rows: Vec<Value> = (0..count)
            .map(|id| json!({ "id": id, "name": format!("Row {id}") }))
            .collect();
        json!({ "body": { "rows": rows } })
    };
    let all = rpc.options.read(&response(200)).unwrap();
    assert_eq!((all.items.len(), all.total), (200, None));
    assert_eq!(
        all.items[3],
        DynamicOption {
            value: json!(3),
            label: "Row 3".to_owned()
        }
    );
    let cut = rpc.options.read(&response(201)).unwrap();
    assert_eq!((cut.items.len(), cut.total), (200, Some(201)));
    assert_eq!(rpc.options.read(&response(0)).unwrap().items, []);
    assert!(rpc.options.read(&json!({ "body": {} })).is_err());
}
