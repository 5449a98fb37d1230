//! Clients that do not read, and those that have nothing to read for long.

use std::net::SocketAddr;

use contract::v1::WatchRunRequest;
use contract::v1::run_service_client::RunServiceClient;
use http::Method;
use serde_json::json;
use test_support::frames::{ACK, END_STREAM, Frame, FrameConnection, INITIAL_WINDOW_SIZE, kind};
use test_support::graphs;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use super::{Door, Line, get, health_over_rest, server, soon};

/// A large document that anybody may read.
const LARGE: &str = "/api/v1/openapi.json";

/// A connection that can hold little that is not read.
async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(address).await.unwrap()
}

#[tokio::test]
async fn a_client_that_never_reads_is_left() {
    // There is room for one connection, so the next one shows that the first is gone.
    let server = server(&["--write-timeout-ms", "500", "--max-connections", "1"]).await;
    let mut deaf = narrow(server.rest_address()).await;
    let many = get(LARGE).repeat(200);
    deaf.write_all(many.as_bytes()).await.unwrap();
    assert!(soon(health_over_rest(&server)).await, "{}", server.log());
}

#[tokio::test]
async fn a_stream_that_is_never_read_is_reset() {
    let server = server(&["--write-timeout-ms", "500"]).await;
    for door in Door::BOTH {
        let closed = [(INITIAL_WINDOW_SIZE, 0)];
        let mut connection = FrameConnection::open(door.address(&server), &closed)
            .await
            .unwrap();
        let request = match door {
            Door::Rest => vec![
                Frame::headers(
                    1,
                    &[
                        (":method", "GET"),
                        (":scheme", "http"),
                        (":authority", "test"),
                        (":path", LARGE),
                    ],
                )
                .with(END_STREAM),
            ],
            Door::Grpc => vec![door.head(1), Frame::data(1, &[0; 5]).with(END_STREAM)],
        };
        connection.send(&request).await.unwrap();
        let reset = soon(connection.receive_kind(kind::RST_STREAM)).await.unwrap();
        assert_eq!(reset.stream, 1, "{door:?}");
        // The connection itself is well.
        connection.send(&[Frame::ping()]).await.unwrap();
        let echo = soon(connection.receive_kind(kind::PING)).await.unwrap();
        assert_eq!(echo.flags, ACK, "{door:?}");
    }
}

#[tokio::test]
async fn streams_that_are_well_live_on() {
    let mut flags = Vec::new();
    for flag in [
        "--header-timeout-ms",
        "--body-timeout-ms",
        "--write-timeout-ms",
        "--idle-timeout-ms",
    ] {
        flags.extend([flag, "1000"]);
    }
    let server = server(&flags).await;
    let api = server.first_api();
    let operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 3, "unit": "seconds" })),
        ("set", json!({ "fields": { "a": 1 } })),
    ]);
    let workflow = api.workflow_with("Waits", operations).await;
    let (questions, asked) = mpsc::channel(1);
    let mut reflection = ServerReflectionClient::new(server.channel().await);
    let ask = async || {
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let question = ServerReflectionRequest {
            host: String::new(),
            message_request,
        };
        questions.send(question).await.unwrap();
    };
    ask().await;
    let answers = reflection
        .server_reflection_info(ReceiverStream::new(asked))
        .await;
    let mut answers = answers.unwrap().into_inner();
    assert!(answers.next().await.unwrap().is_ok());

    let run = api.start(&workflow, json!({})).await;
    let mut request = Request::new(WatchRunRequest {
        id: run.clone(),
        ..WatchRunRequest::default()
    });
    let bearer = format!("Bearer {}", api.key()).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let changes = RunServiceClient::new(server.channel().await)
        .watch_run(request)
        .await;
    let changes = changes.unwrap().into_inner();
    let path = format!("/api/v1/runs/{run}/events");
    let (events, changes) = tokio::join!(
        api.send(Method::GET, &path, &[], bytes::Bytes::new()),
        changes.collect::<Vec<_>>(),
    );
    assert!(events.text().contains("succeeded"), "{}", events.text());
    assert!(changes.iter().all(Result::is_ok), "{changes:?}");
    // The run has waited for longer than any limit; so has who asks again.
    ask().await;
    assert!(answers.next().await.unwrap().is_ok());
}

#[tokio::test]
async fn an_answer_is_waited_for_however_long_it_takes() {
    let flags = [
        "--write-timeout-ms",
        "1000",
        "--idle-timeout-ms",
        "1000",
        "--header-timeout-ms",
        "1000",
    ];
    let server = server(&flags).await;
    let api = server.first_api();
    let operations = graphs::chain(&[
        (
            "webhook_trigger",
            json!({ "method": "POST", "responseMode": "last_node" }),
        ),
        ("wait", json!({ "amount": 3, "unit": "seconds" })),
        ("set", json!({ "fields": { "a": 1 } })),
    ]);
    let workflow = api.workflow_with("Answers late", operations).await;
    api.go_live(&workflow).await;
    let webhook = api.mint(&workflow, 1).await;
    let answer = api.call_hook(&webhook, &[], json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    // And a connection that was used so long can be used again.
    let mut line = Line::open(server.rest_address()).await;
    line.say(&get("/healthz")).await;
    assert_eq!(line.hear().await.0, 200);
}
