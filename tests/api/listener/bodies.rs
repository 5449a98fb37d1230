//! Bodies of requests that come slowly, or are too much.

use bytes::Bytes;
use http::Method;
use tonic::Code;

use super::{Line, assert_well, server, soon};
use crate::grpc;

const LIST: &str = "/switchyard.v1.WorkflowService/ListWorkflows";
const RECEIVE: &str = "/switchyard.v1.WebhookIngressService/ReceiveWebhook";

#[tokio::test]
async fn slow_bodies_are_not_waited_for() {
    let server = server(&["--body-timeout-ms", "500"]).await;
    let key = server.first_api().key().to_owned();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: 30\r\n\r\n{{\"na"
        )
    };
    for path in ["/api/v1/workflows", "/hooks/none"] {
        let mut line = Line::open(server.rest_address()).await;
        line.say(&head(path)).await;
        let (status, _, text) = line.hear().await;
        assert_eq!(status, 408, "{text}");
        assert!(text.contains("REQUEST_TIMEOUT"), "{text}");
    }
    let never = soon(grpc::call_with(
        server.channel().await,
        LIST,
        &key,
        tokio_stream::pending(),
    ))
    .await;
    let status = never.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert_well(&server).await;
}

#[tokio::test]
async fn bodies_have_so_much_memory_and_no_more() {
    let server = server(&["--body-memory-mib", "1"]).await;
    let api = server.first_api();
    let call = async |size: usize| {
        let body = Bytes::from(vec![b' '; size]);
        let headers = [("content-type", "application/json")];
        api.send(Method::POST, "/hooks/none", &headers, body).await
    };
    let refused = call(3 << 20).await;
    let error = refused.error(503, "UNAVAILABLE");
    assert_eq!(
        error["retry_after_s"].to_string(),
        refused.header("retry-after"),
        "{error}"
    );
    // What others have taken is given back.
    for _ in 0..5 {
        let _ = call(700 << 10).await.error(404, "NOT_FOUND");
    }
    let over_grpc = async |size: usize| {
        let message = vec![0; size];
        let outcome = grpc::call(server.channel().await, RECEIVE, api.key(), message);
        soon(outcome).await.unwrap_err().code()
    };
    assert_eq!(over_grpc(3 << 20).await, Code::Unavailable);
    for _ in 0..5 {
        assert_eq!(over_grpc(700 << 10).await, Code::Internal, "zeros are no message");
    }
    assert_well(&server).await;
}

#[tokio::test]
async fn a_body_that_is_refused_gives_its_memory_back_while_it_still_comes() {
    let server = server(&["--body-memory-mib", "1"]).await;
    let mut slow = Line::open(server.rest_address()).await;
    let beginning = "x".repeat(900 << 10);
    slow.say(
        "POST /hooks/none HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 2000000\r\n\r\n",
    )
    .await;
    assert_eq!(slow.hear().await.0, 100, "somebody reads");
    slow.say(&beginning).await;
    slow.say(&beginning).await;
    assert_eq!(slow.hear().await.0, 503);
    let api = server.api(None);
    let body = Bytes::from(vec![b' '; 700 << 10]);
    let other = api.send(Method::POST, "/hooks/none", &[], body).await;
    let _ = other.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn messages_are_limited_both_ways() {
    let server = server(&["--message-limit", "65536", "--answer-limit", "1000"]).await;
    let api = server.first_api();
    let call = async |path: &str, message: Vec<u8>| {
        let outcome = grpc::call(server.channel().await, path, api.key(), message);
        soon(outcome).await.map_err(|status| status.code())
    };
    assert_eq!(call(LIST, vec![0; 70_000]).await, Err(Code::OutOfRange));
    assert!(call(LIST, Vec::new()).await.is_ok());
    for _ in 0..5 {
        let _ = api.workflow(&"x".repeat(200)).await;
    }
    assert_eq!(call(LIST, Vec::new()).await, Err(Code::OutOfRange));
    assert_well(&server).await;
}
