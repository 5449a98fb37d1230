//! Pages for people: whatever is neither the API's nor a webhook's is the core's to answer.

use axum::body::Body;
use contract::v1::{HttpHeader, ServePageRequest, ServePageResponse};
use http::Request;
use tonic::Status;

use crate::fake::{Fake, request};

#[tokio::test]
async fn a_request_for_a_page_is_forwarded_and_its_answer_given_back() {
    let html = HttpHeader {
        name: "content-type".to_owned(),
        value: b"text/html".to_vec(),
    };
    let fake = Fake::answering(&ServePageResponse {
        status: 410,
        headers: vec![html],
        body: b"<p>over</p>".to_vec(),
    });
    let form = Request::builder()
        .method("POST")
        .uri("/some/p%C3%A4ge?a=b")
        .header("Connection", "close")
        .header("Cookie", "c=1")
        .body(Body::from("name=Ada"))
        .unwrap();
    let reply = fake.send(form).await;
    assert_eq!((reply.status.as_u16(), &*reply.body), (410, &b"<p>over</p>"[..]));
    assert_eq!(reply.header("content-type"), Some("text/html"));
    assert!(reply.header("x-request-id").is_some());
    let seen = fake.only();
    assert_eq!(seen.path, "/switchyard.v1.PageService/ServePage");
    let page: ServePageRequest = seen.message();
    assert_eq!(
        (page.method.as_str(), page.path.as_str(), page.query.as_str()),
        ("POST", "/some/p%C3%A4ge", "a=b")
    );
    assert_eq!(page.body, b"name=Ada");
    let names: Vec<&str> = page.headers.iter().map(|header| header.name.as_str()).collect();
    assert_eq!(names, ["cookie"]);
}

#[tokio::test]
async fn what_is_no_page_is_no_path() {
    for status in [Status::not_found(""), Status::unimplemented("")] {
        let fake = Fake::refusing(status);
        let reply = fake.send(request("GET", "/nowhere")).await;
        assert_eq!(reply.error(), (404, "NOT_FOUND".to_owned()));
        assert_eq!(fake.seen().len(), 1);
    }
    let reply = Fake::refusing(Status::unavailable(""))
        .send(request("GET", "/nowhere"))
        .await;
    assert_eq!(reply.error(), (503, "UNAVAILABLE".to_owned()));
}
