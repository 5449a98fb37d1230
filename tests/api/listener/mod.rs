//! Clients that are slow, broken or too many, at both doors: what becomes of them, and that others do not notice.
//!
//! Limits are set low by flags, so that nothing here waits for long; nothing asserts how long something took.

mod bodies;
mod connections;
mod facade;
mod heads;
mod malformed;
mod readers;
mod requests;
mod streams;

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::Method;
use test_support::frames::Frame;
use test_support::wire::{Whole, whole_answer};
use test_support::{PATIENCE, Server, ServerOptions, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// A way in.
#[derive(Debug, Clone, Copy)]
enum Door {
    Rest,
    Grpc,
}

impl Door {
    const BOTH: [Self; 2] = [Self::Rest, Self::Grpc];

    fn address(self, server: &Server) -> SocketAddr {
        match self {
            Self::Rest => server.rest_address(),
            Self::Grpc => server.grpc_address(),
        }
    }

    /// The head of a request that anybody may make and that waits for its body.
    fn head(self, stream: u32) -> Frame {
        let (path, content_type) = match self {
            Self::Rest => ("/hooks/none", "application/json"),
            Self::Grpc => ("/grpc.health.v1.Health/Check", "application/grpc"),
        };
        Frame::headers(
            stream,
            &[
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", "test"),
                (":path", path),
                ("content-type", content_type),
                ("te", "trailers"),
            ],
        )
    }
}

/// A server with these limits.
async fn server(flags: &[&str]) -> Server {
    let options = ServerOptions {
        flags: flags.iter().copied().map(str::to_owned).collect(),
        ..ServerOptions::default()
    };
    Server::start(options).await
}

/// What comes, unless it takes too long.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, what).await;
    waited.unwrap_or_else(|_| panic!("nothing happens"))
}

/// Whether the server says at both doors that it is well. A limit that is very low may be in the way for a moment.
async fn assert_well(server: &Server) {
    let well =
        until(async || (health_over_rest(server).await && health_over_grpc(server).await).then_some(()));
    soon(well)
        .await
        .unwrap_or_else(|| panic!("not well:\n{}", server.log()));
}

async fn health_over_rest(server: &Server) -> bool {
    let api = server.api(None);
    let answer = api.try_send(Method::GET, "/healthz", &[], Bytes::new());
    answer.await.is_ok_and(|answer| answer.status == 200)
}

async fn health_over_grpc(server: &Server) -> bool {
    let answer = HealthClient::new(server.channel().await)
        .check(HealthCheckRequest::default())
        .await;
    answer.is_ok_and(|answer| answer.into_inner().status() == ServingStatus::Serving)
}

/// HTTP/1.1 by the byte.
struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Line {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    async fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next answer: status, head and body.
    async fn hear(&mut self) -> (u16, String, String) {
        soon(async {
            loop {
                if let Some(Whole { status, body, .. }) = whole_answer(&self.buffer).unwrap() {
                    let text = String::from_utf8_lossy(&self.buffer[body.clone()]).into_owned();
                    let head = String::from_utf8_lossy(&self.buffer[..body.start]).to_lowercase();
                    self.buffer.drain(..body.end);
                    return (status, head, text);
                }
                let count = self.stream.read_buf(&mut self.buffer).await.unwrap();
                assert_ne!(count, 0, "the connection ended early");
            }
        })
        .await
    }

    /// Waits until the server ends the connection.
    async fn end(mut self) {
        // One that is reset has ended, too.
        drop(soon(self.stream.read_to_end(&mut self.buffer)).await);
    }
}

/// The head of a GET.
fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")
}
