//! The product in several processes, and over TLS.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use test_support::{
    Answer, Api, Certificate, Facade, Server, ServerOptions, ShowLog, TemporaryDirectory, graphs, text,
    together, until,
};

/// A sample of calls whose answers do not depend on when they are made: reads, refusals, probes.
async fn sample(api: &Api, workflow: &str, run: &str) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    let json = [("content-type", "application/json"), ("x-request-id", "same")];
    let ops = format!("/api/v1/workflows/{workflow}/ops");
    for (method, path, body) in [
        (Method::GET, format!("/api/v1/workflows/{workflow}"), ""),
        (Method::GET, "/api/v1/workflows?limit=1".to_owned(), ""),
        (Method::GET, "/api/v1/workflows?limit=x&colour=red".to_owned(), ""),
        (Method::GET, format!("/api/v1/runs/{run}"), ""),
        (Method::GET, format!("/api/v1/runs/{run}/nodes?limit=1"), ""),
        (Method::GET, "/api/v1/workflows/wf_unknown".to_owned(), ""),
        (Method::POST, ops.clone(), "{\"ops\":[{\"op\":\"x\"}]}"),
        (
            Method::POST,
            ops.clone(),
            "{\"ops\":[{\"op\":\"remove_node\",\"nodeId\":1}],\"expectedUpdatedAt\":1}",
        ),
        (
            Method::POST,
            format!("/api/v1/workflows/{workflow}/validate"),
            "{}",
        ),
        (Method::POST, format!("/api/v1/runs/{run}/cancel"), ""),
        (Method::PUT, "/api/v1/workflows".to_owned(), "{}"),
        (Method::GET, "/api/v1/nothing".to_owned(), ""),
        (Method::GET, "/nothing".to_owned(), ""),
        (Method::GET, "/invite/unknown".to_owned(), ""),
        (Method::GET, "/api/v1/openapi.json".to_owned(), ""),
        (Method::GET, "/api/v1/variables".to_owned(), ""),
        (Method::POST, "/hooks/wh_unknown".to_owned(), "{}"),
        (Method::GET, "/healthz".to_owned(), ""),
    ] {
        let answer = api.send(method.clone(), &path, &json, Bytes::from(body)).await;
        answers.push((format!("{method} {path}"), answer));
    }
    answers
}

fn headers(answer: &Answer) -> Vec<(String, String)> {
    let shown = answer
        .headers
        .iter()
        .filter(|(name, _)| *name != "date" && *name != "connection");
    let mut shown: Vec<_> = shown
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn a_facade_over_the_network_answers_as_the_one_in_the_process() {
    let server = Server::start(ServerOptions::default()).await;
    let _log = ShowLog(&server);
    let api = server.first_api();
    let workflow = api.workflow_with("x", graphs::small_flow()).await;
    let run = api.start(&workflow, json!({})).await;
    let _ = api.ended(&run).await;
    let facade = Facade::start(&[&server]).await;
    let remote = facade.api(Some(api.key()));
    let near = sample(&api, &workflow, &run).await;
    let far = sample(&remote, &workflow, &run).await;
    for ((call, near), (_, far)) in near.into_iter().zip(far) {
        assert_eq!((near.status, near.text()), (far.status, far.text()), "{call}");
        assert_eq!(headers(&near), headers(&far), "{call}");
    }
    let written = remote
        .workflow_with("through the facade", graphs::order_flow())
        .await;
    remote.go_live(&written).await;
    let webhook = remote.mint(&written, 1).await;
    let order = json!({ "id": 1, "price": 60, "customer": "Ada" });
    let run = text(&remote.call_hook(&webhook, &[], order).await.data(202)["runId"]);
    assert_eq!(remote.ended(&run).await["status"], "succeeded");
}

#[tokio::test]
async fn a_facade_of_its_own_reads_its_file_and_serves_pages() {
    let server = Server::start(ServerOptions {
        no_rest: true,
        ..ServerOptions::default()
    })
    .await;
    let _log = ShowLog(&server);
    let facade = Facade::start_from_file(&[&server]).await;
    let log = facade.log();
    assert!(
        log.lines().all(|line| line.starts_with('{')),
        "its form is the file's: {log}"
    );
    let key = std::fs::read_to_string(server.data_dir().join("initial-api-key")).unwrap();
    let api = facade.api(Some(key.trim()));
    let body = json!({ "email": "new@users.test", "role": "member" });
    let invitation = api.post("/invitations", body).await.data(201);
    let url = text(&invitation["invite_url"]);
    let path = &url[url.find("/invite/").unwrap()..];
    let browser = facade.api(None);
    let form = browser.send(Method::GET, path, &[], Bytes::new()).await;
    assert_eq!(form.status, 200, "{}", form.text());
    assert!(form.text().contains("new@users.test"));
    assert!(form.header("content-type").starts_with("text/html"));
    assert_eq!(form.header("cache-control"), "no-store");
    let head = browser.send(Method::HEAD, path, &[], Bytes::new()).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let put = browser.send(Method::PUT, path, &[], Bytes::new()).await;
    put.error(405, "METHOD_NOT_ALLOWED");
    assert!(put.header("allow").contains("POST"), "{:?}", put.headers);
    let joined = browser.send(Method::POST, path, &[], "name=Ada".into()).await;
    assert_eq!(joined.status, 200, "{}", joined.text());
    let (members, _) = api.get("/members").await.page();
    assert_eq!(members[0]["name"], "Ada");
    for unknown in [
        "/",
        "/invite",
        "/invite/a/b",
        "/metrics",
        "/favicon.ico",
        "/%ff?x=%zz",
    ] {
        let answer = browser.send(Method::GET, unknown, &[], Bytes::new()).await;
        answer.error(404, "NOT_FOUND");
    }
    let large = Bytes::from(vec![b' '; (1 << 20) + 1]);
    let refused = browser.send(Method::POST, path, &[], large).await;
    refused.error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn two_cores_share_a_database_behind_one_facade() {
    let Some(database) = test_support::postgres_or_skip("two_cores_share_a_database_behind_one_facade").await
    else {
        return;
    };
    let options = ServerOptions {
        database_url: Some(database.url.clone()),
        no_rest: true,
        flags: vec!["--lease-ms".to_owned(), "1000".to_owned()],
        ..ServerOptions::default()
    };
    let mut first = Server::start(options.clone()).await;
    let shared = ServerOptions {
        master_key_file: Some(first.data_dir().join("master-key")),
        ..options
    };
    let second = Server::start(shared).await;
    let _log = ShowLog(&second);
    let facade = Facade::start(&[&first, &second]).await;
    let key = std::fs::read_to_string(first.data_dir().join("initial-api-key")).unwrap();
    let api = facade.api(Some(key.trim()));
    let workflow = api.workflow_with("x", graphs::small_flow()).await;
    // One key starts one run, whichever core is asked.
    let path = format!("/workflows/{workflow}/runs");
    let mut runs = Vec::new();
    for _ in 0..10 {
        let answer = api
            .post_with(&path, &[("idempotency-key", "once")], json!({}))
            .await;
        runs.push(text(&answer.data(201)["runId"]));
    }
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    // Runs are seen and cancelled from either core, and go on when the core that drove them is gone.
    let waiting = api.workflow_with("y", graphs::long_wait()).await;
    for _ in 0..4 {
        let run = api.start(&waiting, json!({})).await;
        let _ = api.reached(&run, &["waiting"]).await;
        assert_eq!(
            api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200),
            json!({ "ok": true })
        );
        assert_eq!(
            api.get(format!("/runs/{run}")).await.data(200)["status"],
            "cancelled"
        );
    }
    let short = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 1, "unit": "seconds" })),
        ("set", json!({ "fields": { "done": true } })),
    ]);
    let short = api.workflow_with("z", short).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(api.start(&short, json!({})).await);
    }
    first.kill_hard();
    for run in runs {
        // A call that was under way to the lost core may fail once; the run must not.
        let ended = until(async || {
            let answer = api.get(format!("/runs/{run}")).await;
            let report = (answer.status == 200).then(|| answer.data(200))?;
            (report["finishedAt"] != Value::Null).then_some(report)
        });
        assert_eq!(ended.await.unwrap()["status"], "succeeded");
    }
}

#[tokio::test]
async fn of_fifty_starts_with_one_key_on_two_nodes_one_counts() {
    let Some(database) = test_support::postgres_or_skip("starts on two nodes at once").await else {
        return;
    };
    let options = ServerOptions {
        database_url: Some(database.url.clone()),
        ..ServerOptions::default()
    };
    let first = Server::start(options.clone()).await;
    let shared = ServerOptions {
        master_key_file: Some(first.data_dir().join("master-key")),
        ..options
    };
    let second = Server::start(shared).await;
    let _log = ShowLog(&second);
    let nodes = [first.first_api(), second.api(Some(first.first_api().key()))];
    let workflow = nodes[0].workflow_with("x", graphs::small_flow()).await;
    for key in ["first", "second", "third"] {
        let starts = (0..50).map(|number| {
            let (node, path) = (nodes[number % 2].clone(), format!("/workflows/{workflow}/runs"));
            async move {
                let headers = [("idempotency-key", key)];
                let answer = node.post_with(path, &headers, json!({})).await;
                let replayed = answer.header("idempotent-replayed") == "true";
                (text(&answer.data(201)["runId"]), replayed)
            }
        });
        let answers = together(starts).await;
        assert!(answers.iter().all(|(run, _)| *run == answers[0].0), "{answers:?}");
        assert_eq!(answers.iter().filter(|(_, replayed)| !replayed).count(), 1);
    }
    let runs = nodes[1].all_pages(&format!("/runs?workflowId={workflow}")).await;
    assert_eq!(runs.len(), 3);
}

#[tokio::test]
async fn a_core_with_another_master_key_refuses_to_start() {
    let Some(database) = test_support::postgres_or_skip("a_core_with_another_master_key").await else {
        return;
    };
    let options = ServerOptions {
        database_url: Some(database.url.clone()),
        ..ServerOptions::default()
    };
    let _first = Server::start(options).await;
    let directory = TemporaryDirectory::new("stranger").unwrap();
    let data = directory.path().display().to_string();
    let output = std::process::Command::new(test_support::binary("switchyard"))
        .args(["serve", "--data-dir", &data, "--database-url", &database.url])
        .args(["--rest-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(told.contains("master key"), "{told}");
}

#[tokio::test]
async fn both_listeners_speak_tls() {
    let directory = TemporaryDirectory::new("tls").unwrap();
    let certificate = Certificate::for_localhost(directory.path());
    let options = ServerOptions {
        certificate: Some(certificate),
        ..ServerOptions::default()
    };
    let server = Server::start(options).await;
    let _log = ShowLog(&server);
    let api = server.first_api();
    let workflow = api.workflow_with("x", graphs::order_flow()).await;
    let minted = api
        .post(format!("/workflows/{workflow}/webhook"), json!({ "nodeId": "1" }))
        .await
        .data(200);
    assert!(text(&minted["url"]).starts_with("https://"), "{minted}");
    // The operator comes over gRPC, with the same certificate.
    let made = server.admin().await.organization("Over TLS", None).await;
    let _ = server.api(Some(&made.api_key)).get("/workflows").await.page();
    let plain = test_support::HttpClient::new(server.rest_address(), None);
    let plain = Api::new(plain, None)
        .try_send(Method::GET, "/healthz", &[], Bytes::new())
        .await;
    assert!(plain.is_err(), "{plain:?}");
}
