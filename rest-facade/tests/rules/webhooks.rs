//! Calls to webhook URLs.

use axum::body::Body;
use contract::v1::{HttpHeader, ReceiveWebhookRequest, ReceiveWebhookResponse};
use http::Request;
use rest_facade::FacadeConfig;

use crate::fake::{Fake, json, request, send};

fn header(name: &str, value: &str) -> HttpHeader {
    HttpHeader {
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    }
}

#[tokio::test]
async fn a_call_is_forwarded_as_it_is_but_for_its_connection() {
    let fake = Fake::answering(&ReceiveWebhookResponse {
        status: 202,
        ..ReceiveWebhookResponse::default()
    });
    let call = Request::builder()
        .method("PURGE")
        .uri("/hooks/wh_1?a=%20b&a=c")
        .header("X-Signature", "s")
        .header("X-Twice", "1")
        .header("X-Twice", "2")
        .header("Connection", "close, X-Hop")
        .header("X-Hop", "h")
        .header("Transfer-Encoding", "chunked")
        .body(Body::from(&b"\x00\xff"[..]))
        .unwrap();
    assert_eq!(fake.send(call).await.status, 202);
    let seen = fake.only();
    assert_eq!(seen.path, "/switchyard.v1.WebhookIngressService/ReceiveWebhook");
    let call: ReceiveWebhookRequest = seen.message();
    assert_eq!(
        (
            call.webhook_id.as_str(),
            call.method.as_str(),
            call.query.as_str()
        ),
        ("wh_1", "PURGE", "a=%20b&a=c")
    );
    assert_eq!(call.body, b"\x00\xff");
    assert_eq!(
        call.headers,
        [
            header("x-signature", "s"),
            header("x-twice", "1"),
            header("x-twice", "2")
        ]
    );
}

#[tokio::test]
async fn the_cores_answer_is_the_response() {
    let answer = ReceiveWebhookResponse {
        status: 418,
        headers: vec![
            header("Content-Type", "text/plain"),
            header("set-cookie", "a"),
            header("set-cookie", "b"),
            header("connection", "close"),
            header("content-length", "999"),
            header("bad name", "x"),
            header("x-bad", "a\nb"),
        ],
        body: b"short".to_vec(),
    };
    let reply = Fake::answering(&answer).send(request("GET", "/hooks/wh_1")).await;
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (418, &b"short"[..]));
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(reply.headers.get_all("set-cookie").iter().count(), 2);
    for absent in ["connection", "bad name", "x-bad"] {
        assert_eq!(reply.header(absent), None);
    }
    assert_ne!(reply.header("content-length"), Some("999"));
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test]
async fn an_answer_that_http_cannot_carry_is_an_error() {
    for status in [0, 101, 1000, -1] {
        let answer = ReceiveWebhookResponse {
            status,
            ..ReceiveWebhookResponse::default()
        };
        let reply = Fake::answering(&answer)
            .send(request("POST", "/hooks/wh_1"))
            .await;
        assert_eq!(reply.error(), (500, "INTERNAL".to_owned()));
    }
}

#[tokio::test]
async fn a_call_has_a_limit_of_its_own() {
    let fake = Fake::answering(&ReceiveWebhookResponse {
        status: 202,
        ..ReceiveWebhookResponse::default()
    });
    let config = FacadeConfig {
        body_limit: 1,
        webhook_body_limit: 4,
        ..FacadeConfig::default()
    };
    let router = rest_facade::router(fake.core(), config);
    assert_eq!(
        send(router.clone(), json("POST", "/hooks/wh_1", "1234"))
            .await
            .status,
        202
    );
    assert_eq!(
        send(router, json("POST", "/hooks/wh_1", "12345")).await.error(),
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
}
