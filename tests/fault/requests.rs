//! Kills the server while a node waits for the answer of another service: the request is sent again, and says by its key
//! that it is the same one.

use serde_json::json;
use test_support::{Server, ServerOptions, ShowLog, graphs, postgres_or_skip, text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"paid\":true}";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_sends_an_interrupted_request_with_its_key_again() {
    an_interrupted_request_keeps_its_key(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_sends_an_interrupted_request_with_its_key_again() {
    let Some(database) = postgres_or_skip("an interrupted request").await else {
        return;
    };
    an_interrupted_request_keeps_its_key(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

async fn an_interrupted_request_keeps_its_key(database_url: Option<String>) {
    let flags = ["--lease-ms", "2000", "--outbound-allow", "127.0.0.1"];
    let options = ServerOptions {
        database_url,
        flags: flags.map(str::to_owned).into(),
        ..ServerOptions::default()
    };
    let mut server = Server::start(options).await;
    let api = server.first_api();
    let service = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/pay", service.local_addr().unwrap());
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "http_request",
            json!({ "method": "POST", "url": url, "body": { "amount": 7 } }),
        ),
    ]);
    let workflow = api.workflow_with("Pays", flow).await;
    let run = api.start(&workflow, json!({})).await;
    let mut keys = Vec::new();
    for _crash in 0..2 {
        let (mut stream, _) = service.accept().await.unwrap();
        keys.push(key(&mut stream).await);
        server.kill_hard();
        server.restart().await;
    }
    let _log = ShowLog(&server);
    let (mut stream, _) = service.accept().await.unwrap();
    keys.push(key(&mut stream).await);
    stream.write_all(ANSWER.as_bytes()).await.unwrap();
    let report = api.ended(&run).await;
    assert_eq!(
        report["nodes"][1]["output"]["body"],
        json!({ "paid": true }),
        "{report}"
    );
    assert_eq!(
        report["nodes"][1]["attempt"], 1,
        "a crash is no attempt of the node"
    );
    keys.dedup();
    assert_eq!(keys, [format!("{}-1-2", text(&report["id"]))]);
}

/// The `Idempotency-Key` of a request that is read up to its body.
async fn key(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(
            stream.read_buf(&mut head).await.unwrap(),
            0,
            "the request breaks off"
        );
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("idempotency-key:"));
    line.unwrap_or_else(|| panic!("no key: {head}")).trim().to_owned()
}
