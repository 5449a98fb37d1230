//! What becomes of a request before the core sees it.

use std::collections::HashMap;
use std::net::SocketAddr;

use axum::body::Body;
use contract::v1::{
    CreateWorkflowRequest, CreateWorkflowResponse, ListWorkflowsRequest, ListWorkflowsResponse,
    RespondRunNodeRequest, RespondRunNodeResponse, SetWorkflowTagsRequest, SetWorkflowTagsResponse,
    StartRunRequest, StartRunResponse, UpdateWorkflowRequest, UpdateWorkflowResponse, WorkflowSortBy,
};
use http::{HeaderValue, Request};
use rest_facade::FacadeConfig;
use server::PeerAddress;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::fake::{Answer, Fake, Seen, json, request, send};

#[tokio::test]
async fn path_query_and_body_become_one_message() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    fake.send(request(
        "GET",
        "/api/v1/workflows?limit=7&q=a%20b+c%2B&sortBy=createdAt&tagIds=x,y",
    ))
    .await;
    let seen = fake.only();
    assert_eq!(seen.path, "/switchyard.v1.WorkflowService/ListWorkflows");
    let message: ListWorkflowsRequest = seen.message();
    assert_eq!(
        (message.limit, message.q.as_str(), message.tag_ids.as_str()),
        (Some(7), "a b c+", "x,y")
    );
    assert_eq!(message.sort_by(), WorkflowSortBy::CreatedAt);

    let fake = Fake::answering(&RespondRunNodeResponse::default());
    fake.send(json(
        "POST",
        "/api/v1/runs/run%2F1/nodes/7/respond",
        r#"{"response": {"a": 1.0}}"#,
    ))
    .await;
    let message: RespondRunNodeRequest = fake.only().message();
    assert_eq!((message.id.as_str(), message.node_id.as_str()), ("run/1", "7"));
    assert_eq!(message.response.unwrap().json, r#"{"a": 1.0}"#);
}

#[tokio::test]
async fn a_patch_says_which_keys_it_named() {
    let fake = Fake::answering(&UpdateWorkflowResponse::default());
    fake.send(json(
        "PATCH",
        "/api/v1/workflows/w",
        r#"{"folderId": null, "active": true}"#,
    ))
    .await;
    let message: UpdateWorkflowRequest = fake.only().message();
    assert_eq!(message.update_mask.unwrap().paths, ["folder_id", "active"]);

    let fake = Fake::answering(&SetWorkflowTagsResponse::default());
    fake.send(json("PUT", "/api/v1/workflows/w/tags", "{}")).await;
    assert!(
        fake.only()
            .message::<SetWorkflowTagsRequest>()
            .update_mask
            .unwrap()
            .paths
            .is_empty()
    );
}

#[tokio::test]
async fn a_header_of_the_contract_fills_its_field_once() {
    let fake = Fake::answering(&StartRunResponse::default());
    let with_keys = |keys: &[&str]| {
        let mut request = request("POST", "/api/v1/workflows/w/runs");
        for key in keys {
            request
                .headers_mut()
                .append("Idempotency-Key", key.parse().unwrap());
        }
        request
    };
    assert_eq!(fake.send(with_keys(&["k1"])).await.status, 201);
    assert_eq!(
        fake.only()
            .message::<StartRunRequest>()
            .idempotency_key
            .as_deref(),
        Some("k1")
    );
    let reply = fake.send(with_keys(&["k1", "k2"])).await;
    assert_eq!(
        (reply.error().0, reply.wrong_paths()),
        (400, vec!["idempotency-key".to_owned()])
    );
}

#[tokio::test]
async fn identity_travels_as_metadata_and_nothing_else_does() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let mut request = request("GET", "/api/v1/workflows");
    for (name, value) in [
        ("authorization", "Bearer k"),
        ("x-request-id", "mine"),
        ("x-forwarded-for", "9.9.9.9"),
        ("cookie", "c"),
        ("x-switchyard-authorize-only", "1"),
        ("x-client-ip", "8.8.8.8"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
        .extensions_mut()
        .insert(PeerAddress(SocketAddr::from(([10, 0, 0, 1], 5))));
    let reply = fake.send(request).await;
    let seen = fake.only();
    assert_eq!(
        (&seen.metadata["authorization"], &seen.metadata["x-request-id"]),
        (&"Bearer k".parse().unwrap(), &"mine".parse().unwrap())
    );
    assert_eq!(seen.metadata["x-client-ip"], "10.0.0.1");
    assert!(seen.metadata.contains_key("grpc-timeout"));
    assert!(!seen.metadata.contains_key("cookie") && !seen.authorizes_only());
    assert_eq!(reply.header("x-request-id"), Some("mine"));
}

#[tokio::test]
async fn a_trusted_proxy_tells_the_clients_address() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let config = FacadeConfig {
        trust_forwarded_for: true,
        ..FacadeConfig::default()
    };
    let mut request = request("GET", "/api/v1/workflows");
    request
        .headers_mut()
        .insert("x-forwarded-for", "6.6.6.6, 2001:db8::1".parse().unwrap());
    request
        .extensions_mut()
        .insert(PeerAddress(SocketAddr::from(([10, 0, 0, 1], 5))));
    send(rest_facade::router(fake.core(), config), request).await;
    assert_eq!(fake.only().metadata["x-client-ip"], "2001:db8::1");
}

#[tokio::test]
async fn a_request_id_that_is_not_fine_is_replaced() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let long = "x".repeat(129);
    for given in ["", "a b", "caf\u{e9}", long.as_str()] {
        let mut request = request("GET", "/api/v1/workflows");
        request.headers_mut().insert(
            "x-request-id",
            http::HeaderValue::from_bytes(given.as_bytes()).unwrap(),
        );
        let reply = fake.send(request).await;
        let id = reply.header("x-request-id").unwrap();
        assert!(
            id != given && (1..=128).contains(&id.len()),
            "{given:?} became {id:?}"
        );
    }
    let reply = fake.send(request("GET", "/api/v1/nowhere")).await;
    assert_eq!(reply.error(), (404, "NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_told_before_anything_else() {
    let fake = Fake::refusing(Status::unauthenticated(""));
    assert_eq!(
        fake.send(request("GET", "/api/v1/nothing")).await.error(),
        (404, "NOT_FOUND".to_owned())
    );
    assert_eq!(
        fake.send(request("GET", "/api/v1/workflows/")).await.error().0,
        404
    );
    let reply = fake.send(request("DELETE", "/api/v1/workflows")).await;
    assert_eq!(reply.error(), (405, "METHOD_NOT_ALLOWED".to_owned()));
    let allow = reply.header("allow").unwrap();
    assert!(
        allow.contains("GET") && allow.contains("POST") && !allow.contains("DELETE"),
        "{allow}"
    );
    assert!(fake.seen().is_empty(), "the core is not asked");
}

#[tokio::test]
async fn query_parameters_are_known_single_and_of_their_type() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    for (query, path) in [
        ("nme=x", "nme"),
        ("limit=1&limit=2", "limit"),
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("sortBy=age", "sortBy"),
        ("q=%ff", "q"),
    ] {
        let reply = fake
            .send(request("GET", &format!("/api/v1/workflows?{query}")))
            .await;
        assert_eq!(reply.error(), (400, "VALIDATION_ERROR".to_owned()), "{query}");
        assert_eq!(reply.wrong_paths(), [path], "{query}");
    }
    let reply = fake
        .send(json("POST", "/api/v1/workflows?dry=1", r#"{"name": 1}"#))
        .await;
    assert_eq!(
        reply.wrong_paths(),
        ["name", "dry"],
        "all that is wrong is told at once"
    );
    assert!(fake.seen().iter().all(Seen::authorizes_only));
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_refused() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    assert_eq!(
        fake.send(request("GET", "/api/v1/workflows/%ff")).await.error().0,
        400
    );
}

#[tokio::test]
async fn bodies_are_json_by_name_or_by_nature() {
    let fake = Fake::answering(&CreateWorkflowResponse::default());
    let with = |headers: &[(&str, &str)], body: &str| {
        let mut request = Request::new(Body::from(body.to_owned()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = "/api/v1/workflows".parse().unwrap();
        for (name, value) in headers {
            request
                .headers_mut()
                .insert(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        request
    };
    let good = r#"{"name": "a"}"#;
    for (headers, body, status) in [
        (&[][..], good, 201),
        (&[("content-type", "Application/JSON; charset=utf-8")], good, 201),
        (&[("content-type", "text/plain")], good, 415),
        (&[("content-type", "application/jsonx")], good, 415),
        (&[("content-type", "text/plain")], "", 201),
        (
            &[("content-type", "application/json"), ("content-encoding", "gzip")],
            good,
            415,
        ),
        (&[], "name=a", 400),
        (
            &[("content-type", "application/json")],
            "{\"name\": \"a\"} x",
            400,
        ),
    ] {
        assert_eq!(
            fake.send(with(headers, body)).await.status,
            status,
            "{headers:?} {body}"
        );
    }
    let first: CreateWorkflowRequest = fake.seen()[0].message();
    assert_eq!(first.name, "a");
}

#[tokio::test]
async fn bodies_are_limited_whether_or_not_they_say_their_length() {
    let fake = Fake::answering(&CreateWorkflowResponse::default());
    let config = FacadeConfig {
        body_limit: 20,
        ..FacadeConfig::default()
    };
    let router = rest_facade::router(fake.core(), config);
    let fits = r#"{"name": "abcdefghi"}"#;
    assert_eq!(fits.len(), 21);
    let fits = &fits.replace('i', "");
    assert_eq!(
        send(router.clone(), json("POST", "/api/v1/workflows", fits))
            .await
            .status,
        201
    );
    let large = json("POST", "/api/v1/workflows", r#"{"name": "abcdefghi"}"#);
    assert_eq!(
        send(router.clone(), large).await.error(),
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
    let mut lengthy = json("POST", "/api/v1/workflows", "{}");
    lengthy
        .headers_mut()
        .insert("content-length", "21".parse().unwrap());
    assert_eq!(send(router, lengthy).await.error().0, 413);
}

#[tokio::test]
async fn a_get_ignores_its_body() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    assert_eq!(
        fake.send(json("GET", "/api/v1/workflows", "not json"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_request_that_cannot_be_read_learns_how_its_caller_stands() {
    let fake = Fake::new(|seen| {
        assert!(seen.authorizes_only());
        let standing = (
            "ratelimit".parse().unwrap(),
            HeaderValue::from_static("\"write\";r=4;t=1"),
        );
        Ok(Answer {
            metadata: [standing].into_iter().collect(),
            ..Answer::default()
        })
    });
    let reply = fake.send(json("POST", "/api/v1/workflows", "not json")).await;
    assert_eq!(reply.error(), (400, "VALIDATION_ERROR".to_owned()));
    assert_eq!(reply.header("ratelimit"), Some("\"write\";r=4;t=1"));
}

#[tokio::test]
async fn who_may_not_call_does_not_learn_what_is_wrong_with_the_request() {
    let details = ErrorDetails::with_error_info("MISSING_SCOPE", "switchyard", HashMap::new());
    let refusal =
        Status::with_error_details(Code::PermissionDenied, "The key lacks workflow:write.", details);
    let fake = Fake::new(move |seen| match seen.authorizes_only() {
        true => Err(refusal.clone()),
        false => Ok(Answer::default()),
    });
    let reply = fake.send(json("POST", "/api/v1/workflows", "not json")).await;
    assert_eq!(reply.error(), (403, "MISSING_SCOPE".to_owned()));
    let seen = fake.only();
    assert_eq!(
        (seen.path.as_str(), seen.message.len()),
        ("/switchyard.v1.WorkflowService/CreateWorkflow", 0)
    );
}
