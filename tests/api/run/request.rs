//! Requests to other services: the kind `http_request` and the app `http`.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Server, ServerOptions, Target, graphs, text, until};

use crate::credential::bearer;
use crate::world::World;

on_both_databases!(
    a_request_says_what_it_is_told,
    bodies_are_written_as_asked,
    a_credential_is_sent_and_never_shown,
    secrets_do_not_follow_redirects,
    a_status_fails_the_node_or_not,
    a_retry_waits_as_long_as_it_is_asked_to,
    bytes_come_as_base64_up_to_a_limit,
    private_addresses_and_dead_ends_have_their_codes,
    pages_are_gathered,
    the_next_page_is_asked_with_the_key,
    a_credential_that_cannot_be_used_fails_the_node,
    the_module_of_the_app_does_the_same,
    a_cancelled_run_hangs_up,
    a_request_ends_with_its_node,
    parameters_are_checked,
);

fn answer(status: u16, body: &str) -> Response<Bytes> {
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    response.body(body.to_owned().into()).unwrap()
}

fn redirect(status: u16, location: &str) -> Response<Bytes> {
    let response = Response::builder().status(status).header("location", location);
    response.body(Bytes::new()).unwrap()
}

/// A service that tells what it was asked.
async fn echo() -> Target {
    Target::start(|asked: &Asked| {
        let headers: serde_json::Map<String, Value> = asked
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap_or_default())))
            .collect();
        answer(
            200,
            &json!({ "headers": headers, "uri": asked.uri.to_string() }).to_string(),
        )
    })
    .await
}

/// The report of a run of one request after a trigger.
async fn run(world: &World, kind: &str, params: Value) -> Value {
    let operations = graphs::chain(&[("manual_trigger", json!({})), (kind, params)]);
    let workflow = world.api.workflow_with("request", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    world.api.ended(&run).await
}

/// What the request of a run gave.
async fn output(world: &World, params: Value) -> Value {
    let report = run(world, "http_request", params).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    report["nodes"][1]["output"].clone()
}

/// What the request of a run failed with.
async fn failure(world: &World, params: Value) -> (String, String) {
    let report = run(world, "http_request", params).await;
    assert_eq!(report["status"], "failed", "{report}");
    let error = &report["nodes"][1]["error"];
    (text(&error["code"]), text(&error["message"]))
}

async fn a_request_says_what_it_is_told(world: &World) {
    let service = echo().await;
    let params = json!({
        "url": format!("{}?a=1", service.url("/x%20y")), "query": { "b": [2, true], "c ä": "&", "none": null },
        "headers": { "X-One": "1", "x-two": 2 },
    });
    let output = output(world, params).await;
    assert_eq!(
        (&output["status"], &output["headers"]["content-type"]),
        (&json!(200), &json!("application/json"))
    );
    assert!(output["durationMs"].is_u64());
    assert_eq!(output["body"]["uri"], "/x%20y?a=1&b=2&b=true&c+%C3%A4=%26");
    let asked = &service.asked()[0];
    assert_eq!(
        (
            asked.method.as_str(),
            asked.header("x-one"),
            asked.header("x-two")
        ),
        ("GET", "1", "2")
    );
    assert!(asked.header("user-agent").starts_with("switchyard/"));
    assert!(
        asked.header("idempotency-key").starts_with("run_"),
        "{:?}",
        asked.headers
    );
    assert!(asked.header("idempotency-key").ends_with("-1-2"));
}

async fn bodies_are_written_as_asked(world: &World) {
    let service = echo().await;
    let url = service.url("/");
    let fields = json!({ "a": "x y", "n": 1 });
    for (body_type, body) in [
        ("json", &fields),
        ("form", &fields),
        ("multipart", &fields),
        ("raw", &json!("<x/>")),
    ] {
        let params = json!({ "method": "POST", "url": url, "body": body, "bodyType": body_type });
        let _ = output(world, params).await;
    }
    let own = json!({ "method": "PUT", "url": url, "body": 1, "headers": { "content-type": "application/vnd.x+json" } });
    let _ = output(world, own).await;
    let asked = service.asked();
    let of = |place: usize| {
        (
            asked[place].header("content-type"),
            String::from_utf8_lossy(&asked[place].body),
        )
    };
    assert_eq!(of(0), ("application/json", r#"{"a":"x y","n":1}"#.into()));
    assert_eq!(of(1), ("application/x-www-form-urlencoded", "a=x+y&n=1".into()));
    assert!(
        of(2).0.starts_with("multipart/form-data; boundary=")
            && of(2).1.contains("name=\"a\"\r\n\r\nx y\r\n")
    );
    assert_eq!(of(3), ("text/plain; charset=utf-8", "<x/>".into()));
    assert_eq!(of(4), ("application/vnd.x+json", "1".into()));
}

async fn a_credential_is_sent_and_never_shown(world: &World) {
    let service = echo().await;
    let secret = "do-not-show-41c9";
    let id = bearer(world, secret).await;
    let report = run(
        world,
        "http_request",
        json!({ "url": service.url("/"), "credentialId": id }),
    )
    .await;
    assert_eq!(
        service.asked()[0].header("authorization"),
        format!("Bearer {secret}")
    );
    assert_eq!(
        report["nodes"][1]["output"]["body"]["headers"]["authorization"],
        "***"
    );
    assert!(!report.to_string().contains(secret));
    let angry =
        Target::start(|asked: &Asked| answer(418, &format!("no {}", asked.header("authorization")))).await;
    let (code, message) = failure(world, json!({ "url": angry.url("/"), "credentialId": id })).await;
    assert_eq!(code, "HTTP_ERROR");
    assert!(
        message.contains("418") && message.contains("***") && !message.contains(secret),
        "{message}"
    );
    assert!(!world.server.log().contains(secret));
}

async fn secrets_do_not_follow_redirects(world: &World) {
    let elsewhere = echo().await;
    let away = elsewhere.url("/away");
    let home = Target::start(move |asked: &Asked| match asked.uri.path() {
        "/away" => redirect(307, &away),
        "/near" => redirect(302, "/end"),
        _ => answer(200, "{}"),
    })
    .await;
    let id = bearer(world, "stay-at-home").await;
    let params = json!({ "method": "POST", "url": home.url("/away"), "credentialId": id, "body": { "a": 1 },
        "headers": { "cookie": "c=1", "x-plain": "1" } });
    let _ = output(world, params).await;
    let asked = &elsewhere.asked()[0];
    assert_eq!(
        (
            asked.header("authorization"),
            asked.header("cookie"),
            asked.header("x-plain")
        ),
        ("", "", "1")
    );
    assert_eq!((asked.method.as_str(), asked.json()), ("POST", json!({ "a": 1 })));
    let params = json!({ "method": "POST", "url": home.url("/near"), "credentialId": id, "body": 1 });
    let _ = output(world, params).await;
    let end = home.asked().last().unwrap().clone();
    assert_eq!(
        (end.method.as_str(), end.uri.path(), end.header("authorization")),
        ("GET", "/end", "Bearer stay-at-home")
    );
    assert!(end.body.is_empty() && end.header("content-type").is_empty());
    let params = json!({ "url": home.url("/near"), "followRedirects": false });
    assert_eq!(output(world, params).await["status"], 302);
}

async fn a_status_fails_the_node_or_not(world: &World) {
    let service = Target::start(|_: &Asked| answer(404, r#"{"why":"gone"}"#)).await;
    let (code, message) = failure(world, json!({ "url": service.url("/") })).await;
    assert_eq!(code, "HTTP_ERROR");
    assert!(message.contains("404") && message.contains("gone"), "{message}");
    let output = output(world, json!({ "url": service.url("/"), "failOn": "never" })).await;
    assert_eq!(
        (&output["status"], &output["body"]["why"]),
        (&json!(404), &json!("gone"))
    );
}

async fn a_retry_waits_as_long_as_it_is_asked_to(world: &World) {
    let busy = std::sync::atomic::AtomicBool::new(true);
    let service = Target::start(move |_: &Asked| {
        if !busy.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return answer(200, "{}");
        }
        let response = Response::builder().status(429).header("retry-after", "1");
        response.body(Bytes::new()).unwrap()
    })
    .await;
    let operations = json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "http_request", "after": "a", "params": { "url": service.url("/") },
          "config": { "retry": { "maxAttempts": 2, "delayMs": 1 } } },
    ]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let node = &report["nodes"][1];
    assert_eq!(
        (&report["status"], &node["attempt"]),
        (&json!("succeeded"), &json!(2)),
        "{report}"
    );
    assert!(node["durationMs"].as_i64().unwrap() >= 1_000, "{node}");
    let keys: Vec<String> = service
        .asked()
        .iter()
        .map(|asked| asked.header("idempotency-key").to_owned())
        .collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]), "the key stays");
}

async fn bytes_come_as_base64_up_to_a_limit(world: &World) {
    const LIMIT: usize = 10 << 20;
    let service = Target::start(|asked: &Asked| {
        let (content_type, body) = match asked.uri.path() {
            "/image" => ("image/png", b"\x89PNG\r\n\x1a\n".to_vec()),
            "/file" => ("application/octet-stream", b"plain".to_vec()),
            "/text" => ("text/plain", b"plain".to_vec()),
            _ => ("application/octet-stream", vec![0; LIMIT + 1]),
        };
        let response = Response::builder().header("content-type", content_type);
        response.body(body.into()).unwrap()
    })
    .await;
    let body = async |path: &str, response_type: &str| {
        let params = json!({ "url": service.url(path), "responseType": response_type });
        output(world, params).await["body"].clone()
    };
    assert_eq!(body("/image", "auto").await, "iVBORw0KGgo=");
    assert_eq!(body("/file", "auto").await, "cGxhaW4=");
    assert_eq!(body("/text", "base64").await, "cGxhaW4=");
    assert_eq!(body("/file", "text").await, "plain");
    let (code, message) = failure(world, json!({ "url": service.url("/large") })).await;
    assert_eq!(code, "HTTP_ERROR");
    assert!(
        message.contains("10 MiB") || message.contains(&LIMIT.to_string()),
        "{message}"
    );
}

async fn private_addresses_and_dead_ends_have_their_codes(world: &World) {
    let inward = Target::start(|_: &Asked| redirect(302, "http://127.0.0.2:9/")).await;
    let away = Target::start(|_: &Asked| redirect(302, "ftp://example.com/")).await;
    let endless = Target::start(|_: &Asked| redirect(302, "/again")).await;
    for (url, expected) in [
        ("http://127.0.0.2/".to_owned(), "HTTP_BLOCKED"),
        ("http://[::ffff:7f00:2]/".to_owned(), "HTTP_BLOCKED"),
        (
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "HTTP_BLOCKED",
        ),
        ("http://0/".to_owned(), "HTTP_BLOCKED"),
        (inward.url("/"), "HTTP_BLOCKED"),
        ("http://no-such-host.invalid/".to_owned(), "HTTP_UNREACHABLE"),
        (away.url("/"), "HTTP_ERROR"),
        (endless.url("/"), "HTTP_ERROR"),
        ("file:///etc/passwd".to_owned(), "HTTP_ERROR"),
        ("http://user:word@example.com/".to_owned(), "HTTP_ERROR"),
        ("not a url".to_owned(), "EXPRESSION_ERROR"),
    ] {
        let (code, message) = failure(world, json!({ "url": url })).await;
        assert_eq!(code, expected, "{url}: {message}");
        assert!(!message.is_empty());
    }
    assert_eq!(endless.asked().len(), 6, "the request and five redirects");
}

async fn pages_are_gathered(world: &World) {
    let service = Target::start(|asked: &Asked| {
        let page: u32 = asked
            .uri
            .query()
            .and_then(|query| query.strip_prefix("page=")?.parse().ok())
            .unwrap_or(0);
        let rows: Vec<u32> = if page < 3 {
            vec![page * 2, page * 2 + 1]
        } else {
            vec![]
        };
        answer(200, &json!({ "data": { "rows": rows } }).to_string())
    })
    .await;
    let pagination = json!({ "type": "page", "parameter": "page", "start": 0, "items": "data.rows" });
    let gathered = output(
        world,
        json!({ "url": service.url("/"), "pagination": pagination }),
    )
    .await;
    assert_eq!(gathered["body"], json!([0, 1, 2, 3, 4, 5]));
    assert_eq!(
        (&gathered["pages"], &gathered["hasMore"]),
        (&json!(4), &json!(false))
    );
    let keys: std::collections::HashSet<String> = service
        .asked()
        .iter()
        .map(|asked| asked.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys.len(), 4, "each page has a key of its own");
    let elsewhere = echo().await;
    let next = elsewhere.url("/next");
    let service =
        Target::start(move |_: &Asked| answer(200, &json!({ "rows": [1], "next": next }).to_string())).await;
    let id = bearer(world, "stay-at-home").await;
    let pagination = json!({ "type": "next_url", "next": "next", "items": "rows" });
    let params = json!({ "url": service.url("/"), "pagination": pagination, "credentialId": id });
    let (code, _) = failure(world, params).await;
    assert_eq!(code, "HTTP_ERROR", "the other service has no rows");
    assert_eq!(service.asked()[0].header("authorization"), "Bearer stay-at-home");
    assert_eq!(elsewhere.asked()[0].header("authorization"), "");
}

/// Whoever makes the link to the next page copies the key into it.
async fn the_next_page_is_asked_with_the_key(world: &World) {
    const KEY: &str = "k ey&7\"\\é";
    let elsewhere = Target::start(|_: &Asked| answer(200, "[]")).await;
    let there = elsewhere.url("/rows");
    let service = Target::start(move |asked: &Asked| {
        let query = asked.uri.query().unwrap_or_default();
        let link = match query.contains("page=2") {
            false => format!("</rows?{query}&page=2>; rel=\"next\""),
            true => format!("<{there}?{query}>; rel=\"next\""),
        };
        let mut page = answer(200, &json!([{ "query": query }]).to_string());
        page.headers_mut().insert("link", link.parse().unwrap());
        page
    })
    .await;
    let data = json!({ "name": "key", "value": KEY, "in": "query" });
    let made = json!({ "appId": "http", "connectionId": "api_key", "name": "Mine", "data": data });
    let made = world.api.post("/credentials", made).await.data(200);
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "rows", "appId": "http", "moduleSlug": "list", "after": "start",
          "params": { "url": service.url("/rows") }, "credentialId": made["credentialId"] },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "rows",
          "params": { "fields": { "query": "{{2.query}}" } } },
    ]);
    let workflow = world.api.workflow_with("Rows", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let keys = |asked: &Asked| {
        let query = asked.uri.query().unwrap_or_default().to_owned();
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        let keys = pairs.filter(|(name, _)| name == "key");
        keys.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let asked: Vec<_> = service.asked().iter().map(keys).collect();
    assert_eq!(asked, [[KEY], [KEY]], "{report}");
    // Another service gets none of it.
    let asked: Vec<_> = elsewhere.asked().iter().map(keys).collect();
    assert_eq!(asked, [["***"]], "{report}");
    let rows = world.api.all_pages(&format!("/runs/{run}/nodes")).await;
    let told = json!(rows).to_string();
    assert!(told.contains("***") && !told.contains("k+ey"), "{told}");
}

async fn a_credential_that_cannot_be_used_fails_the_node(world: &World) {
    let service = echo().await;
    let stranger = world.stranger().await;
    let body = json!({ "appId": "http", "connectionId": "bearer", "name": "x", "data": { "token": "t" } });
    let foreign = text(&stranger.post("/credentials", body).await.data(200)["credentialId"]);
    // Known only when the node runs, because a template gives it.
    for id in ["cred_none", &foreign] {
        let params = json!({ "url": service.url("/"), "credentialId": format!("{{{{\"{id}\"}}}}") });
        assert_eq!(failure(world, params).await.0, "CREDENTIAL_INVALID");
    }
    assert!(service.asked().is_empty());
}

async fn the_module_of_the_app_does_the_same(world: &World) {
    let service = echo().await;
    let id = bearer(world, "module-token").await;
    let operations = json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "appId": "http", "moduleSlug": "request", "after": "a", "credentialId": id,
          "params": { "url": service.url("/{{6 * 7}}"), "method": "POST", "body": { "n": "{{1 + 1}}" } } },
    ]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let node = &report["nodes"][1];
    assert_eq!(
        (&node["appId"], &node["moduleSlug"]),
        (&json!("http"), &json!("request"))
    );
    assert_eq!(node["output"]["body"]["headers"]["authorization"], "***");
    let asked = &service.asked()[0];
    assert_eq!((asked.uri.path(), asked.json()), ("/42", json!({ "n": 2 })));
    assert_eq!(asked.header("authorization"), "Bearer module-token");
    assert!(asked.header("idempotency-key").ends_with("-1-2"));
}

async fn a_cancelled_run_hangs_up(world: &World) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("http_request", json!({ "url": url })),
    ]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    let mut bytes = Vec::new();
    let closed = until(async || {
        use tokio::io::AsyncReadExt as _;
        matches!(stream.read_buf(&mut bytes).await, Ok(0) | Err(_)).then_some(())
    });
    assert!(closed.await.is_some(), "the connection stays open");
    assert_eq!(world.api.ended(&run).await["status"], "cancelled");
}

async fn a_request_ends_with_its_node(world: &World) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let operations = json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "http_request", "after": "a", "params": { "url": url },
          "config": { "timeoutMs": 200 } },
    ]);
    let workflow = world.api.workflow_with("x", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["nodes"][1]["error"]["code"], "NODE_TIMEOUT", "{report}");
}

async fn parameters_are_checked(world: &World) {
    let workflow = world.api.workflow("x").await;
    for (node, says) in [
        (
            json!({ "kind": "http_request", "params": { "method": "FETCH" } }),
            "method",
        ),
        (
            json!({ "kind": "http_request", "params": { "bodyType": "yaml" } }),
            "bodyType",
        ),
        (
            json!({ "kind": "http_request", "params": { "pagination": { "type": "page" } } }),
            "pagination.parameter",
        ),
        (
            json!({ "kind": "http_request", "params": { "pagination": { "type": "guess" } } }),
            "pagination",
        ),
        (json!({ "kind": "http_request", "params": { "uri": "x" } }), "uri"),
        (
            json!({ "appId": "http", "moduleSlug": "request", "params": { "bodyType": "{{1}}" } }),
            "bodyType",
        ),
        (
            json!({ "appId": "http", "moduleSlug": "request", "params": { "followRedirects": 1 } }),
            "followRedirects",
        ),
        (
            json!({ "appId": "http", "moduleSlug": "fetch" }),
            "no module fetch",
        ),
        (json!({ "appId": "ftp", "moduleSlug": "request" }), "no app ftp"),
    ] {
        let mut op = json!({ "op": "add_node", "tempId": "n" });
        op.as_object_mut()
            .unwrap()
            .extend(node.as_object().unwrap().clone());
        let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
        let body = json!({ "ops": [op], "expectedUpdatedAt": draft["updatedAt"] });
        let result = world
            .api
            .post(format!("/workflows/{workflow}/ops"), body)
            .await
            .data(200);
        assert!(text(&result["errors"][0]).contains(says), "{says}: {result}");
    }
}

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    let proxy = Target::start(|_: &Asked| answer(200, r#"{"proxied":true}"#)).await;
    let service = echo().await;
    let names = [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ];
    let options = ServerOptions {
        environment: names.map(|name| (name.to_owned(), proxy.url("/"))).into(),
        flags: ["--outbound-allow", "127.0.0.1"].map(str::to_owned).into(),
        ..ServerOptions::default()
    };
    let server = Server::start(options).await;
    let api = server.first_api();
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("http_request", json!({ "url": service.url("/direct") })),
    ]);
    let workflow = api.workflow_with("direct", flow).await;
    let run = api.start(&workflow, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(report["nodes"][1]["output"]["body"]["uri"], "/direct", "{report}");
    assert_eq!((service.asked().len(), proxy.asked().len()), (1, 0));
}
