//! The built-in manifests, and what an interpreter must refuse.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use url::Url;

use super::*;

/// A manifest with this in the place of its parts.
fn manifest(connections: &str, modules: &str, rest: &str) -> String {
    format!(
        "manifest: 1\nid: shop\nname: Shop\nbaseUrl: https://api.shop.test/v1\n\
         hosts: [api.shop.test, '*.shop.example']\n\
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
    assert_eq!(apps.iter().count(), BUILT_IN.len());
    for (file, _) in BUILT_IN {
        let id = file.strip_suffix(".yaml").unwrap();
        assert_eq!(apps.find(id).unwrap().id, id, "{file} is named after its app");
    }
    let app = http();
    let connections: Vec<&str> = app.connections.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(connections, ["none", "basic", "bearer", "api_key"]);
    assert!(
        app.permits(&Url::parse("https://anything.test/").unwrap(), None)
            .is_ok()
    );
}

/// What is said of a manifest that is refused.
fn refusal(text: &str) -> String {
    let refused = App::read(text)
        .err()
        .unwrap_or_else(|| panic!("accepted: {text}"));
    refused.to_string()
}

#[test]
fn what_has_not_the_form_is_refused_with_its_line() {
    for (text, says) in [
        (manifest("[]", "[]", "surprise: 1"), "unknown field `surprise`"),
        (
            manifest("[]", "[]", "").replace("api.shop.test", "'https://x'"),
            "https://x is no host",
        ),
        (manifest("[{ id: c, label: C, type: magic }]", "[]", ""), "magic"),
        (
            manifest(
                "[{ id: c, label: C, type: bearer, fields: [{ name: a, label: A, type: colour }] }]",
                "[]",
                "",
            ),
            "colour",
        ),
        (
            manifest(
                "[{ id: c, label: C, type: bearer, verify: { url: '{{1 +}}' } }]",
                "[]",
                "",
            ),
            "at character",
        ),
        (
            manifest("[]", "[{ id: m, request: { path: x } }]", ""),
            "must begin with /",
        ),
        ("[]".to_owned(), "line 1"),
    ] {
        let said = refusal(&text);
        assert!(said.contains(says) && said.contains("line "), "{said}");
    }
}

/// A module with this besides its name.
fn module(rest: &str) -> String {
    manifest(
        "[]",
        &format!("[{{ id: m, label: M, description: d, {rest} }}]"),
        "",
    )
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let connection = |rest: &str| manifest(&format!("[{{ id: c, label: C, {rest} }}]"), "[]", "");
    let field = "{ name: a, label: A, type: integer }";
    for (text, says) in [
        (
            manifest("[]", "[]", "").replace("manifest: 1", "manifest: 2"),
            "manifest: version 2 is not known",
        ),
        (
            manifest("[]", "[]", "").replace("id: shop", "id: My-Shop"),
            "id: \"My-Shop\" must be of lower-case",
        ),
        (
            manifest("[]", "[]", "").replace("[api.shop.test, '*.shop.example']", "[other.test]"),
            "baseUrl: leads to api.shop.test, which hosts does not permit",
        ),
        (
            connection("type: oauth2_client_credentials, oauth2: { tokenUrl: 'http://api.shop.test/token' }"),
            "tokenUrl: leads to http://api.shop.test, and hosts permits https://api.shop.test; an entry with http://",
        ),
        (
            manifest("[]", "[]", "").replace("https://api.shop.test/v1", "https://{{connection.shop}}.test"),
            "baseUrl: connection.shop is no field: there are none",
        ),
        (
            connection("type: bearer, fields: [{ name: token, label: A, type: integer, default: x }]"),
            "connections.c.fields.token.default: must be a whole number",
        ),
        (connection("type: api_key"), "connections.c.apply: is required"),
        (
            connection("type: server"),
            "connections.c.type: server belongs to apps with a driver",
        ),
        (
            manifest("[]", "[]", "driver: redis"),
            "baseUrl: does not belong to an app with a driver",
        ),
        (
            module("type: action, operation: get, request: { path: / }"),
            "modules.m.operation: belongs to apps with a driver",
        ),
        (
            connection("type: bearer, apply: [{ to: header, name: a, value: '{{connection.tokn}}' }]"),
            "connections.c.apply.value: connection.tokn is no field; there are token",
        ),
        (
            connection("type: bearer, apply: [{ to: cookie, name: a, value: b }]"),
            "connections.c.apply: to must be header or query",
        ),
        (
            connection("type: token_exchange"),
            "connections.c.exchange: belongs to",
        ),
        (
            connection("type: oauth2_client_credentials, oauth2: { tokenUrl: 'https://elsewhere.test/' }"),
            "connections.c.oauth2.tokenUrl: leads to elsewhere.test",
        ),
        (
            connection("type: bearer, verify: { path: '/x/{{connection.token}}' }"),
            "connections.c.verify.path: connection.token is no field: there are none",
        ),
        (
            manifest(
                "[{ id: c, label: C, type: none }, { id: c, label: C, type: none }]",
                "[]",
                "",
            ),
            "connections: the id c stands twice",
        ),
        (module("type: action"), "modules.m.request: is required"),
        (
            module("type: action, request: {}"),
            "modules.m.request: must have either a path or a url",
        ),
        (
            module("type: action, request: { path: /x }, items: '{{response.body}}'"),
            "modules.m.items: does not belong to a module of the type action",
        ),
        (
            module(&format!(
                "type: action, fields: [{field}], request: {{ path: '/{{{{parameters.b}}}}' }}"
            )),
            "modules.m.request.path: parameters.b is no field; there are a",
        ),
        (
            module("type: action, request: { path: '/{{response.body}}' }"),
            "modules.m.request.path: response is not known here; there are parameters, connection",
        ),
        (
            module(
                "type: action, request: { path: /x }, fields: [{ name: a, label: A, type: text, options: lists }]",
            ),
            "modules.m.fields.a.options: lists is no rpc of the app",
        ),
        (
            module("type: trigger, request: { path: /x }"),
            "modules.m: a trigger has either poll or webhook",
        ),
        (
            module("type: trigger, request: { path: /x }, poll: { key: '{{$item.id}}', order: id }"),
            "modules.m.poll.order: \"id\" is the same for all items",
        ),
        (
            module(
                "type: trigger, request: { path: /x }, poll: { key: '{{$item.id}}', order: '{{parameters.column}}' }",
            ),
            "modules.m.poll.order: parameters.column is no field: there are none",
        ),
        (
            module("type: search, request: { path: /x }, pagination: { type: page }"),
            "modules.m.pagination.parameter: belongs to",
        ),
        (
            manifest("[]", "[]", "tests: [{ name: t, module: x, exchanges: [] }]"),
            "tests[t].module: names nothing that the app has",
        ),
    ] {
        let said = refusal(&text);
        assert!(said.contains(says), "{said}\n is not\n{says}");
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
        assert_eq!(
            app.permits(&Url::parse(url).unwrap(), None).is_ok(),
            permitted,
            "{url}"
        );
    }
}

/// A manifest with this entry of `hosts`, a connection with a shop and one that is told it with its token.
fn manifest_with_host(host: &str) -> String {
    let token =
        "{ tokenUrl: 'https://api.shop.test/token', response: { keep: { cell: '{{response.body.cell}}' } } }";
    let connections = format!(
        "[{{ id: key, label: K, type: bearer, fields: [{{ name: shop, label: S, type: text }}] }}, \
         {{ id: app, label: A, type: oauth2_client_credentials, oauth2: {token} }}]"
    );
    manifest(&connections, "[]", "").replace("'*.shop.example'", &format!("'{host}'"))
}

#[test]
fn a_host_may_be_the_connections_own() {
    let app = App::read(&manifest_with_host("{{connection.shop}}.shop.example")).unwrap();
    let (key, other) = (app.connection("key").unwrap(), app.connection("app").unwrap());
    let data = |shop: Value| {
        key.read(object(json!({ "shop": shop, "token": "t" })))
            .ok()
            .unwrap()
    };
    let (eu, none, wrong) = (data(json!("eu")), data(json!(null)), data(json!("evil.test/")));
    let token = other
        .read(object(json!({ "clientId": "c", "clientSecret": "s" })))
        .ok()
        .unwrap();
    let permits = |url: &str, connected| app.permits(&Url::parse(url).unwrap(), connected);
    let own = "https://eu.shop.example/";
    assert_eq!(permits(own, Some((key, &eu))), Ok(()));
    for connected in [Some((key, &none)), Some((other, &token)), None] {
        assert!(permits(own, connected).is_err());
        assert_eq!(
            permits("https://api.shop.test/", connected),
            Ok(()),
            "is everybody's"
        );
    }
    for url in [
        "https://us.shop.example/",
        "https://shop.example/",
        "https://x.eu.shop.example/",
    ] {
        assert!(permits(url, Some((key, &eu))).is_err(), "{url}");
    }
    let refused = permits("https://evil.test/.shop.example", Some((key, &wrong)));
    assert!(matches!(refused, Err(HostRefused::NoHost(_))), "{refused:?}");
    assert_eq!(app.check_hosts(key, &eu), Ok(()));
    assert_eq!(app.check_hosts(key, &none), Ok(()), "it is not known yet");
    assert_eq!(app.check_hosts(key, &wrong).err().unwrap().name, "shop");
    assert_eq!(app.check_hosts(other, &token), Ok(()));
}

#[test]
fn a_host_is_made_of_what_a_connection_has_and_is_not_secret() {
    assert!(App::read(&manifest_with_host("{{connection.cell}}.shop.example")).is_ok());
    for (host, says) in [
        (
            "{{connection.token}}.shop.example",
            "connection.token is no field",
        ),
        (
            "{{connection.clientSecret}}.shop.example",
            "connection.clientSecret is no field",
        ),
        (
            "{{connection.cell}}-{{connection.shop}}.shop.example",
            "no connection has all of cell, shop",
        ),
        ("{{parameters.shop}}.shop.example", "parameters is not known here"),
        ("{{$now}}.shop.example", "names a field of connection"),
        ("{{connection.shop}}shop.example", "must begin with a dot"),
    ] {
        let said = refusal(&manifest_with_host(host));
        assert!(said.contains(says), "{said}\n is not\n{says}");
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
    let typed = api_key
        .read_form(&data, &form, &ConnectionData::default())
        .ok()
        .unwrap();
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
fn a_type_brings_its_fields_and_what_it_adds() {
    let text = manifest("[{ id: c, label: C, type: basic }]", "[]", "");
    let app = App::read(&text).unwrap();
    let connection = app.connection("c").unwrap();
    let names: Vec<(&str, bool)> = connection
        .fields
        .iter()
        .map(|field| (field.name.as_str(), field.secret))
        .collect();
    assert_eq!(names, [("username", false), ("password", true)]);
    let data = connection
        .read(object(json!({ "username": "Ada", "password": "pa:ss" })))
        .ok()
        .unwrap();
    let grant = connection.grant(&data).unwrap();
    assert_eq!(grant.secrets.headers[0].1.to_str().unwrap(), "Basic QWRhOnBhOnNz");
}

#[test]
fn a_token_that_was_not_fetched_is_not_sent() {
    let oauth2 = "oauth2: { tokenUrl: 'https://api.shop.test/token', response: { keep: { shop: '{{response.body.shop}}' } } }";
    let text = manifest(
        &format!("[{{ id: c, label: C, type: oauth2_client_credentials, {oauth2} }}]"),
        "[{ id: m, label: M, type: action, description: d, request: { path: '/{{connection.shop}}/x' } }]",
        "",
    );
    let app = App::read(&text).unwrap();
    let connection = app.connection("c").unwrap();
    let values = json!({ "clientId": "c", "clientSecret": "s" });
    let without = connection.read(object(values.clone())).ok().unwrap();
    assert!(matches!(connection.grant(&without), Err(GrantError::NoToken)));
    let mut values = object(values);
    values.extend(object(
        json!({ "accessToken": "at", "refreshToken": "rt", "shop": "eu" }),
    ));
    assert!(
        connection.read(values.clone()).is_err(),
        "callers cannot give what is fetched"
    );
    let data = connection.read_whole(values).ok().unwrap();
    let grant = connection.grant(&data).unwrap();
    assert_eq!(grant.secrets.headers[0].1.to_str().unwrap(), "Bearer at");
    let hidden: Vec<&str> = grant.hidden.iter().map(crate::secret::Secret::expose).collect();
    assert!(
        ["s", "at", "rt"].iter().all(|secret| hidden.contains(secret)),
        "{hidden:?}"
    );
    let walk = app
        .begin(app.module("m").unwrap(), &Map::new(), Some((connection, &data)))
        .unwrap();
    assert_eq!(walk.call()["url"], "https://api.shop.test/v1/eu/x");
}

#[test]
fn requests_never_see_secrets() {
    let text = manifest(
        "[{ id: c, label: C, type: bearer, fields: [{ name: shop, label: S, type: text }] }]",
        "[{ id: m, label: M, type: action, description: d, fields: \
         [{ name: limit, label: L, type: integer, default: 10 }], request: { path: '/{{parameters.limit}}', body: '{{connection}}' } }]",
        "",
    );
    let app = App::read(&text).unwrap();
    let connection = app.connection("c").unwrap();
    let data = connection
        .read(object(json!({ "shop": "eu", "token": "hidden" })))
        .ok()
        .unwrap();
    let module = app.module("m").unwrap();
    let walk = app.begin(module, &Map::new(), Some((connection, &data))).unwrap();
    let expected = json!({ "url": "https://api.shop.test/v1/10", "body": { "shop": "eu" } });
    assert_eq!(*walk.call(), expected);
}

#[test]
fn dynamic_options_are_cut_at_two_hundred() {
    let text = manifest(
        "[]",
        "[]",
        "rpcs: [{ id: lists, label: Lists, dependsOn: [board], request: { path: '/{{parameters.board}}' }, \
         options: { items: '{{response.body.rows}}', value: '{{$item.id}}', label: '{{$item.name}}' } }]",
    );
    let app = App::read(&text).unwrap();
    let rpc = app.rpc("lists").unwrap();
    let mut walk = app.ask(rpc, object(json!({ "board": 7 })), None).unwrap();
    assert_eq!(*walk.call(), json!({ "url": "https://api.shop.test/v1/7" }));
    let broken = json!({ "body": {} });
    assert!(walk.take(&broken, &broken).is_err());
    let rows = |count: usize| -> Vec<Value> {
        let row = |id| json!({ "id": id, "name": format!("Row {id}") });
        (0..count).map(row).collect()
    };
    let answer = json!({ "body": { "rows": rows(2) } });
    let found = walk.take(&answer, &answer).unwrap();
    let whole = json!({ "items": rows(2), "goesOn": false });
    assert_eq!(found, Step::Done(whole));
    let listed = |count, goes_on| Listed {
        items: rows(count),
        goes_on,
    };
    let all = rpc.choices(&listed(200, false)).unwrap();
    assert_eq!((all.items.len(), all.truncated, all.total), (200, false, None));
    let third = DynamicOption {
        value: json!(3),
        label: "Row 3".to_owned(),
    };
    assert_eq!(all.items[3], third);
    let cut = rpc.choices(&listed(201, false)).unwrap();
    assert_eq!(
        (cut.items.len(), cut.truncated, cut.total),
        (200, true, Some(201))
    );
    for count in [100, 200, 300] {
        let cut = rpc.choices(&listed(count, true)).unwrap();
        assert!(
            cut.truncated && cut.total.is_none(),
            "how many there are is not known"
        );
    }
}

#[test]
fn an_rpc_says_whether_the_service_has_more() {
    let text = manifest(
        "[]",
        "[]",
        "rpcs:
  - id: pages
    label: Pages
    request: { path: /rows }
    pagination: { type: cursor, next: '{{response.body.next}}', parameter: after, maxPages: 2 }
    options: { items: '{{response.body.rows}}', value: '{{$item}}', label: '{{$item}}' }
  - id: page
    label: A page
    request: { path: /rows }
    options: { items: '{{response.body.rows}}', more: '{{response.body.next != null}}', value: '{{$item}}', label: '{{$item}}' }
",
    );
    let app = App::read(&text).unwrap();
    let begin = |rpc: &str| app.ask(app.rpc(rpc).unwrap(), Map::new(), None).unwrap();
    let page = |next: &Value| json!({ "body": { "rows": ["r"], "next": next } });
    for (last, goes_on) in [(json!(null), false), (json!("another"), true)] {
        let mut pages = begin("pages");
        assert_eq!(
            pages.take(&page(&json!("p2")), &page(&json!("p2"))).unwrap(),
            Step::Again
        );
        let listed = json!({ "items": ["r", "r"], "goesOn": goes_on });
        assert_eq!(
            pages.take(&page(&last), &page(&last)).unwrap(),
            Step::Done(listed)
        );
        let listed = json!({ "items": ["r"], "goesOn": goes_on });
        assert_eq!(
            begin("page").take(&page(&last), &page(&last)).unwrap(),
            Step::Done(listed)
        );
    }
    let said = refusal(&text.replacen(
        "maxPages: 2 }\n    options: {",
        "maxPages: 2 }\n    options: { more: '{{true}}',",
        1,
    ));
    assert!(said.contains("rpcs.pages.options.more: belongs to"), "{said}");
}
