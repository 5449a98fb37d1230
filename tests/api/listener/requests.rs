//! How many requests there may be in flight, and how a server with some of them ends.

use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{Line, assert_well, server, soon};
use crate::grpc;
use test_support::until;

const LIST: &str = "/switchyard.v1.WorkflowService/ListWorkflows";
/// The head of a request whose body is asked for when it is in flight.
const BEGUN: &str =
    "POST /hooks/none HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";

#[tokio::test]
async fn further_requests_are_told_to_come_again() {
    let server = server(&["--max-requests", "1"]).await;
    let api = server.first_api();
    let mut line = Line::open(server.rest_address()).await;
    line.say(BEGUN).await;
    assert_eq!(line.hear().await.0, 100);
    let refused = api.get("/workflows").await;
    let error = refused.error(503, "UNAVAILABLE");
    assert_eq!(error["retry_after_s"].to_string(), refused.header("retry-after"));
    // Both listeners count together; whoever asks how the process is gets an answer.
    let over_grpc = async || grpc::call(server.channel().await, LIST, api.key(), Vec::new()).await;
    assert_eq!(over_grpc().await.unwrap_err().code(), Code::Unavailable);
    assert_well(&server).await;
    line.say("{}").await;
    assert_eq!(line.hear().await.0, 404);
    let admitted = until(async || (api.get("/workflows").await.status == 200).then_some(()));
    assert!(admitted.await.is_some());

    let mut client = HealthClient::new(server.channel().await);
    let watching = client.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watching = watching.into_inner();
    assert!(watching.next().await.unwrap().is_ok());
    assert_eq!(over_grpc().await.unwrap_err().code(), Code::Unavailable);
    drop(watching);
    let admitted = until(async || over_grpc().await.ok());
    assert!(admitted.await.is_some());
}

#[tokio::test]
async fn who_never_ends_does_not_keep_a_server_from_ending() {
    let mut server = server(&[]).await;
    let mut client = HealthClient::new(server.channel().await);
    let watching = client.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watching = watching.into_inner();
    assert!(watching.next().await.unwrap().is_ok());
    let mut line = Line::open(server.rest_address()).await;
    line.say(BEGUN).await;
    assert_eq!(line.hear().await.0, 100);
    let status = soon(server.terminate()).await;
    assert_eq!(status.code(), Some(0), "{}", server.log());
}

#[tokio::test]
async fn a_request_in_flight_is_answered_while_the_server_ends() {
    let mut server = server(&[]).await;
    let mut line = Line::open(server.rest_address()).await;
    line.say(BEGUN).await;
    assert_eq!(line.hear().await.0, 100);
    server.interrupt();
    // Once the listener is closed, the end has begun.
    let address = server.rest_address();
    let closed = until(async || {
        tokio::net::TcpStream::connect(address)
            .await
            .is_err()
            .then_some(())
    });
    assert!(closed.await.is_some());
    line.say("{}").await;
    assert_eq!(line.hear().await.0, 404);
    line.end().await;
    assert_eq!(soon(server.terminate()).await.code(), Some(0), "{}", server.log());
}
