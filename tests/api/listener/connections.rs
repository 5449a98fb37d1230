//! How many connections there may be, and how long they may be quiet.

use test_support::frames::{Frame, FrameConnection, kind};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{Door, Line, assert_well, get, server, soon};

#[tokio::test]
async fn further_connections_wait_until_others_leave() {
    let server = server(&["--max-connections", "3"]).await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        let mut line = Line::open(server.rest_address()).await;
        line.say(&get("/healthz")).await;
        assert_eq!(line.hear().await.0, 200);
        lines.push(line);
    }
    let mut further = Line::open(server.rest_address()).await;
    further.say(&get("/healthz")).await;
    let waiting = tokio::spawn(async move { further.hear().await });
    lines[1].say(&get("/healthz")).await;
    assert_eq!(lines[1].hear().await.0, 200);
    assert!(!waiting.is_finished());
    lines.pop();
    assert_eq!(waiting.await.unwrap().0, 200);
}

#[tokio::test]
async fn further_grpc_connections_wait_until_others_leave() {
    let server = server(&["--max-connections", "3"]).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = HealthClient::new(server.channel().await);
        client.check(HealthCheckRequest::default()).await.unwrap();
        clients.push(client);
    }
    let mut further = HealthClient::new(server.channel().await);
    let waiting = tokio::spawn(async move { further.check(HealthCheckRequest::default()).await });
    clients[1].check(HealthCheckRequest::default()).await.unwrap();
    assert!(!waiting.is_finished());
    clients.pop();
    soon(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crowd_finds_room_to_wait() {
    const CROWD: usize = 600;
    let server = server(&["--max-connections", "1"]).await;
    let first = Line::open(server.rest_address()).await;
    let mut crowd = Vec::new();
    // The one place is taken, so all of them stay where the operating system has room for them.
    for _ in 0..CROWD {
        crowd.push(soon(Line::open(server.rest_address())).await);
    }
    drop(first);
    let mut last = crowd.pop().unwrap();
    drop(crowd);
    last.say(&get("/healthz")).await;
    assert_eq!(last.hear().await.0, 200);
}

#[tokio::test]
async fn a_server_that_stops_says_so_with_its_last_answer() {
    let server = server(&[]).await;
    let mut line = Line::open(server.rest_address()).await;
    server.interrupt();
    let mut head = String::new();
    while !head.contains("connection: close") {
        line.say(&get("/healthz")).await;
        (_, head, _) = line.hear().await;
    }
    line.end().await;
}

#[tokio::test]
async fn quiet_connections_are_ended() {
    let server = server(&["--idle-timeout-ms", "500", "--write-timeout-ms", "500"]).await;
    let mut line = Line::open(server.rest_address()).await;
    line.say(&get("/healthz")).await;
    assert_eq!(line.hear().await.0, 200);
    line.end().await;
    for door in Door::BOTH {
        let mut quiet = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        assert!(soon(quiet.receive_kind(kind::GOAWAY)).await.is_some(), "{door:?}");
        // A head that never ends is no request.
        let mut unfinished = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        let head = door.head(1);
        let first = Frame::of(kind::HEADERS, 0, 1, head.payload);
        unfinished.send(&[first]).await.unwrap();
        while soon(unfinished.receive()).await.is_some() {}
    }
    assert_well(&server).await;
}

#[tokio::test]
async fn clients_that_do_not_answer_pings_are_gone() {
    let server = server(&[
        "--http2-ping-interval-ms",
        "200",
        "--http2-ping-timeout-ms",
        "200",
    ])
    .await;
    for door in Door::BOTH {
        let mut dead = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        dead.send(&[door.head(1)]).await.unwrap();
        assert!(soon(dead.receive_kind(kind::PING)).await.is_some(), "{door:?}");
        while soon(dead.receive()).await.is_some() {}
    }
    assert_well(&server).await;
}
