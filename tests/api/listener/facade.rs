//! A `rest-facade` of its own has the limits of the listener in the core's process.

use bytes::Bytes;
use http::Method;
use test_support::{Facade, Server, ServerOptions};

use super::{Line, get, soon};

/// A core, and a facade with these limits before it.
async fn facade(flags: &[&str]) -> (Server, Facade) {
    let server = Server::start(ServerOptions::default()).await;
    let facade = Facade::start_with(&[&server], flags).await;
    (server, facade)
}

#[tokio::test]
async fn slow_requests_are_not_waited_for() {
    let flags = ["--header-timeout-ms", "500", "--body-timeout-ms", "500"];
    let (_server, facade) = facade(&flags).await;
    for beginning in ["", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        let mut line = Line::open(facade.address()).await;
        line.say(beginning).await;
        line.end().await;
    }
    let mut line = Line::open(facade.address()).await;
    line.say("POST /hooks/none HTTP/1.1\r\nhost: test\r\ncontent-length: 30\r\n\r\n{\"na")
        .await;
    let (status, _, text) = line.hear().await;
    assert_eq!(status, 408, "{text}");
    assert!(text.contains("REQUEST_TIMEOUT"), "{text}");
}

#[tokio::test]
async fn further_connections_wait_until_others_leave() {
    let (_server, facade) = facade(&["--max-connections", "2"]).await;
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut line = soon(Line::open(facade.address())).await;
        line.say(&get("/healthz")).await;
        assert_eq!(line.hear().await.0, 200);
        lines.push(line);
    }
    let mut further = Line::open(facade.address()).await;
    further.say(&get("/healthz")).await;
    let waiting = tokio::spawn(async move { further.hear().await });
    lines[0].say(&get("/healthz")).await;
    assert_eq!(lines[0].hear().await.0, 200);
    assert!(!waiting.is_finished());
    lines.pop();
    assert_eq!(waiting.await.unwrap().0, 200);
}

#[tokio::test]
async fn large_requests_are_refused() {
    let flags = ["--body-memory-mib", "1", "--max-header-bytes", "8192"];
    let (_server, facade) = facade(&flags).await;
    let body = Bytes::from(vec![b' '; 3 << 20]);
    let headers = [("content-type", "application/json")];
    let api = facade.api(None);
    let refused = api.send(Method::POST, "/hooks/none", &headers, body);
    refused.await.error(503, "UNAVAILABLE");
    let mut line = Line::open(facade.address()).await;
    let large = "x".repeat(20_000);
    line.say(&format!("GET /healthz HTTP/1.1\r\nx-large: {large}\r\n\r\n"))
        .await;
    assert_eq!(line.hear().await.0, 431);
    // What was refused has given its place back.
    let small = api.send(Method::POST, "/hooks/none", &headers, Bytes::from_static(b"{}"));
    small.await.error(404, "NOT_FOUND");
}
