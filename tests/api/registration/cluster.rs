//! Servers that die while a service is told of a trigger, and several that share a database.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Response};
use serde_json::json;
use test_support::{Asked, Server, ServerOptions, ShowLog, Target, postgres_or_skip, text, until};

use super::office::{called, credential, deliver_to, flow, given_by, manifest, path};
use crate::catalog::add;

fn options() -> ServerOptions {
    ServerOptions {
        flags: vec!["--outbound-allow".to_owned(), "127.0.0.1".to_owned()],
        ..ServerOptions::default()
    }
}

/// An office that does not answer the first so many times.
async fn office(silences: usize) -> Target {
    let asked = AtomicUsize::new(0);
    Target::start_slow(move |_: &Asked| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        async move {
            if number < silences {
                std::future::pending::<()>().await;
            }
            let answer = Response::builder().header("content-type", "application/json");
            let body = json!({ "id": format!("call-{number}") });
            answer.body(Bytes::from(body.to_string())).unwrap()
        }
    })
    .await
}

/// A live workflow that the office calls with stamped letters.
async fn letters(server: &Server, office: &Target) -> String {
    let api = server.first_api();
    let added = add(&server.admin().await, None, &manifest(&office.url(""))).await;
    assert_eq!(added.unwrap().version, 1);
    let trigger = flow(
        &credential(&api).await,
        "new_letter",
        json!({ "kind": "stamped" }),
    );
    let workflow = api.workflow_with("Letters", trigger).await;
    api.go_live(&workflow).await;
    workflow
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_it_tells_a_service_tells_it_again() {
    let office = office(1).await;
    let mut server = Server::start(options()).await;
    let api = server.first_api();
    let workflow = letters(&server, &office).await;
    let first = called(&office, 1).await;
    server.restart().await;
    let _log = ShowLog(&server);
    // The claim of the one that died has to run out.
    let again = until(async || office.asked().into_iter().nth(1));
    let second = match again.await {
        Some(second) => second,
        None => called(&office, 2).await,
    };
    assert_eq!(first.json(), second.json(), "the URL and the secret are the same");
    let key = |asked: &Asked| asked.header("idempotency-key").to_owned();
    assert_eq!(key(&first), key(&second), "it is the same request");
    let told = second.json();
    let secret = text(&told["secret"]);
    let letter = json!({ "kind": "stamped", "letter": 7 }).to_string();
    let headers = [("x-secret", secret.as_str())];
    let answer = deliver_to(&api, &path(&told), &headers, letter).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(given_by(&api, &workflow, 1).await[0]["letter"], 7);
    let undeployed = api
        .post(format!("/workflows/{workflow}/undeploy"), json!({}))
        .await;
    let _ = undeployed.data(200);
    assert_eq!(called(&office, 3).await.uri.path(), "/calls/call-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_server_takes_deliveries_and_one_tells_the_service() {
    let Some(database) = postgres_or_skip("triggers that services call, on two servers").await else {
        return;
    };
    let office = office(0).await;
    let one = Server::start(ServerOptions {
        database_url: Some(database.url.clone()),
        ..options()
    })
    .await;
    let mut other = Server::start(ServerOptions {
        database_url: Some(database.url.clone()),
        master_key_file: Some(one.data_dir().join("master-key")),
        ..options()
    })
    .await;
    let api = one.first_api();
    let workflow = letters(&one, &office).await;
    let told = called(&office, 1).await.json();
    let (path, secret) = (path(&told), text(&told["secret"]));
    let deliver = async |server: &Server, letter: i64| {
        let letter = json!({ "kind": "stamped", "letter": letter }).to_string();
        let headers = [("x-secret", secret.as_str())];
        let answer = deliver_to(&server.api(None), &path, &headers, letter).await;
        answer.status
    };
    for letter in [1, 2, 1] {
        for server in [&one, &other] {
            assert_eq!(deliver(server, letter).await, 200);
        }
    }
    assert_eq!(given_by(&api, &workflow, 2).await.len(), 2, "a letter is one run");
    let there = other.api(Some(api.key()));
    let undeployed = there
        .post(format!("/workflows/{workflow}/undeploy"), json!({}))
        .await;
    let _ = undeployed.data(200);
    let over = called(&office, 2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::DELETE, "/calls/call-0")
    );
    // What was looked up there before is believed for half a second.
    let gone = until(async || (deliver(&one, 3).await == 404).then_some(()));
    assert!(gone.await.is_some(), "the URL still leads somewhere");
    assert_eq!(office.asked().len(), 2, "the service is told once");
    let _ = other.terminate().await;
    drop(one);
    database.drop_now().await.unwrap();
}
