//! The server and the client, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use contract::v1::ListWorkflowsResponse;
use rest_facade::{CoreService, CoreTls, FacadeConfig};
use server::{Limits, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::fake::{Fake, request, send};

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

async fn start(router: Router, options: Options) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        rest_facade::serve(listener, router, options, async { drop(stopped.await) }).await;
    });
    Running {
        address,
        stop,
        server,
    }
}

/// A gRPC server over the fake core.
fn grpc(fake: &Fake) -> Router {
    let fake = fake.clone();
    Router::new().fallback(move |request: axum::extract::Request| {
        let fake = fake.clone();
        async move {
            let Ok(response) = fake.answer(request.map(tonic::body::Body::new)).await;
            response
        }
    })
}

/// An address where nobody listens.
async fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn exchange(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that refuses what is still being sent may reset the connection behind its answer.
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_core_that_is_down_is_503_and_another_takes_over() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let core = start(grpc(&fake), Options::default()).await;
    let (down, up) = (nowhere().await, format!("http://{}", core.address));

    let alone = CoreService::connect([down.as_str()], &CoreTls::default()).unwrap();
    let reply = send(
        rest_facade::router(alone.clone(), FacadeConfig::default()),
        request("GET", "/api/v1/workflows"),
    )
    .await;
    assert_eq!(reply.error(), (503, "UNAVAILABLE".to_owned()));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(
        send(rest_facade::readiness(alone), request("GET", "/readyz"))
            .await
            .status,
        503
    );

    let both = CoreService::connect([down.as_str(), up.as_str()], &CoreTls::default()).unwrap();
    let router = rest_facade::router(both, FacadeConfig::default());
    for _ in 0..4 {
        assert_eq!(
            send(router.clone(), request("GET", "/api/v1/workflows"))
                .await
                .status,
            200
        );
    }
    assert_eq!(fake.seen().len(), 4);
}

/// A certificate for `localhost` that signs itself, and its key; neither is used anywhere else.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

#[tokio::test]
async fn both_ends_speak_tls() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let tls = Some(server::tls_from_pem(CERTIFICATE, KEY).unwrap());
    let core = start(
        grpc(&fake),
        Options {
            tls,
            ..Options::default()
        },
    )
    .await;
    let address = format!("https://{}", core.address);
    let ask = async |trust: CoreTls| {
        let core = CoreService::connect([address.as_str()], &trust).unwrap();
        send(
            rest_facade::router(core, FacadeConfig::default()),
            request("GET", "/api/v1/workflows"),
        )
        .await
    };
    let trust = CoreTls {
        authority: Some(CERTIFICATE.to_vec()),
        domain: Some("localhost".to_owned()),
    };
    assert_eq!(ask(trust.clone()).await.status, 200);
    let other_name = CoreTls {
        domain: Some("elsewhere".to_owned()),
        ..trust
    };
    assert_eq!(ask(other_name).await.status, 503);
}

#[test]
fn tls_files_are_checked() {
    assert!(server::tls_from_pem(b"", KEY).is_err());
    assert!(server::tls_from_pem(CERTIFICATE, CERTIFICATE).is_err());
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    assert!(CoreService::connect([], &CoreTls::default()).is_err());
    assert!(CoreService::connect(["not an address"], &CoreTls::default()).is_err());
}

#[tokio::test]
async fn a_request_in_flight_finishes_while_the_server_drains() {
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, wait) = (arrived.clone(), go.clone());
    let slow = axum::routing::get(async move || {
        told.notify_one();
        wait.notified().await;
        "finished"
    });
    let server = start(Router::new().route("/", slow), Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let client =
        tokio::spawn(async move { exchange(&mut stream, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await });
    arrived.notified().await;
    server.stop.send(()).unwrap();
    // The listener is closed once the drain has begun.
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    assert!(client.await.unwrap().ends_with("finished"));
    server.server.await.unwrap();
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_dropped() {
    let stuck = axum::routing::get(std::future::pending::<()>);
    let options = Options {
        drain_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let server = start(Router::new().route("/", stuck), options).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    server.stop.send(()).unwrap();
    server.server.await.unwrap();
}

#[tokio::test]
async fn silent_and_slow_clients_are_let_go() {
    let options = Options::new(Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    });
    let server = start(Router::new(), options).await;
    for beginning in ["", "P", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Ends only because the server closes the connection.
        exchange(&mut stream, beginning).await;
    }
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let server = start(
        Router::new(),
        Options::new(Limits {
            max_header_bytes: 8 * 1024,
            ..Limits::default()
        }),
    )
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n",
        "x".repeat(9 * 1024)
    );
    assert!(exchange(&mut stream, &head).await.starts_with("HTTP/1.1 431"));
}
