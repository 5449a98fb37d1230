//! What becomes of the core's answers and errors.

use std::collections::HashMap;
use std::time::Duration;

use contract::v1::{
    CreateWorkflowResponse, DeleteWebhookResponse, ErrorReason, ListWorkflowsResponse, SetVariableResponse,
    SetVariableResult, StartRunResponse, WorkflowCreateResult, WorkflowSummary,
};
use rest_facade::{CoreService, FacadeConfig, MatchedRoute};
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::ServiceExt;

use crate::fake::{Answer, Fake, json as with_json, request, send};

#[tokio::test]
async fn the_message_is_the_envelope() {
    let list = ListWorkflowsResponse {
        data: vec![WorkflowSummary {
            id: "wf_1".into(),
            updated_at: 5,
            ..WorkflowSummary::default()
        }],
        next_cursor: None,
    };
    let reply = Fake::answering(&list)
        .send(request("GET", "/api/v1/workflows"))
        .await;
    let body = reply.json();
    assert_eq!(
        (reply.status.as_u16(), reply.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(body["next_cursor"], json!(null));
    assert_eq!(
        (&body["data"][0]["updatedAt"], &body["data"][0]["folderId"]),
        (&json!(5), &json!(null))
    );
}

#[tokio::test]
async fn successes_have_their_status() {
    let created = CreateWorkflowResponse {
        data: Some(WorkflowCreateResult::default()),
    };
    let reply = Fake::answering(&created)
        .send(with_json("POST", "/api/v1/workflows", r#"{"name": "a"}"#))
        .await;
    assert_eq!(reply.status, 201);

    let reply = Fake::answering(&DeleteWebhookResponse {})
        .send(request("DELETE", "/api/v1/webhooks/wh_1"))
        .await;
    assert_eq!(
        (
            reply.status.as_u16(),
            reply.body.len(),
            reply.header("content-type")
        ),
        (204, 0, None)
    );

    for (created, status) in [(true, 201), (false, 200)] {
        let set = SetVariableResponse {
            data: Some(SetVariableResult {
                created,
                ..SetVariableResult::default()
            }),
        };
        let reply = Fake::answering(&set)
            .send(with_json("PUT", "/api/v1/variables/A", r#"{"value": "x"}"#))
            .await;
        assert_eq!(reply.status, status);
    }
}

#[tokio::test]
async fn only_listed_metadata_becomes_headers() {
    let fake = Fake::new(|_| {
        let mut answer = Answer::of(&StartRunResponse::default());
        for (name, value) in [
            ("idempotent-replayed", "true"),
            ("ratelimit", "r"),
            ("ratelimit-policy", "p"),
            ("x-secret", "s"),
        ] {
            answer.metadata.insert(name, value.parse().unwrap());
        }
        Ok(answer)
    });
    let reply = fake.send(request("POST", "/api/v1/workflows/w/runs")).await;
    assert_eq!(reply.header("idempotent-replayed"), Some("true"));
    assert_eq!(
        (reply.header("ratelimit"), reply.header("ratelimit-policy")),
        (Some("r"), Some("p"))
    );
    assert_eq!(
        (reply.header("x-secret"), reply.header("grpc-status")),
        (None, None)
    );
}

#[tokio::test]
async fn every_reason_has_the_status_and_code_of_its_row() {
    for reason in (1..).map_while(|number| ErrorReason::try_from(number).ok()) {
        let row = reason.row();
        let details = ErrorDetails::with_error_info(row.name, "switchyard", HashMap::new());
        let status = Status::with_error_details(Code::from_i32(row.grpc_status), "Because.", details);
        let reply = Fake::refusing(status)
            .send(request("GET", "/api/v1/workflows"))
            .await;
        assert_eq!(reply.error(), (row.http_status, row.code.to_owned()));
        let message = reply.json()["error"]["message"].clone();
        assert_eq!(
            message == "Because.",
            reason != ErrorReason::Internal,
            "{message}"
        );
    }
}

#[tokio::test]
async fn details_of_an_error_are_given_on() {
    let mut details = ErrorDetails::with_error_info(
        "RATE_LIMITED",
        "switchyard",
        HashMap::from([("base_url".to_owned(), "https://eu1.example.com".to_owned())]),
    );
    details.set_retry_info(Some(Duration::from_millis(2_100)));
    details.add_bad_request_violation("ops[2].nodeId", "must be given");
    let status = Status::with_error_details(Code::ResourceExhausted, "Slow down.", details);
    let reply = Fake::refusing(status)
        .send(request("GET", "/api/v1/workflows"))
        .await;
    let error = reply.json()["error"].clone();
    assert_eq!(
        (&error["retry_after_s"], reply.header("retry-after")),
        (&json!(3), Some("3"))
    );
    assert_eq!(error["base_url"], "https://eu1.example.com");
    assert_eq!(
        error["details"],
        json!([{"path": "ops[2].nodeId", "message": "must be given"}])
    );
}

#[tokio::test]
async fn what_broke_inside_is_not_told() {
    let unexplained = [
        (Status::internal("secret"), 500, "INTERNAL"),
        (Status::unknown("secret"), 500, "INTERNAL"),
        (Status::invalid_argument("secret"), 400, "VALIDATION_ERROR"),
        (Status::unimplemented("secret"), 501, "UNIMPLEMENTED"),
        (Status::unavailable("secret"), 503, "UNAVAILABLE"),
        (Status::deadline_exceeded("secret"), 504, "DEADLINE_EXCEEDED"),
        (Status::cancelled("secret"), 499, "CANCELLED"),
        (Status::unauthenticated("secret"), 401, "UNAUTHENTICATED"),
    ];
    for (status, http_status, code) in unexplained {
        let reply = Fake::refusing(status)
            .send(request("GET", "/api/v1/workflows"))
            .await;
        assert_eq!(reply.error(), (http_status, code.to_owned()));
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
        assert_eq!(reply.header("retry-after").is_some(), http_status == 503);
    }
    let unreadable = Fake::new(|_| {
        Ok(Answer {
            messages: vec![b"\xff\xff"[..].into()],
            ..Answer::default()
        })
    });
    let reply = unreadable.send(request("GET", "/api/v1/workflows")).await;
    assert_eq!(reply.error(), (500, "INTERNAL".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_core_that_does_not_answer_is_waited_for_as_long_as_configured() {
    let silent = CoreService::in_process(tower::service_fn(|_| std::future::pending()));
    let reply = send(
        rest_facade::router(silent, FacadeConfig::default()),
        request("GET", "/api/v1/workflows"),
    )
    .await;
    assert_eq!(reply.error(), (504, "DEADLINE_EXCEEDED".to_owned()));
}

#[tokio::test]
async fn a_response_tells_its_route_to_who_measures() {
    let fake = Fake::answering(&ListWorkflowsResponse::default());
    let response = fake
        .router()
        .oneshot(request("GET", "/api/v1/workflows"))
        .await
        .unwrap();
    let route = response.extensions().get::<MatchedRoute>().unwrap().0;
    assert_eq!((route.verb, route.path), ("GET", "/api/v1/workflows"));
}

#[tokio::test]
async fn the_document_is_public_and_cached_by_its_tag() {
    let fake = Fake::refusing(Status::unauthenticated(""));
    let reply = fake.send(request("GET", "/api/v1/openapi.json")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()["openapi"].as_str()),
        (200, Some("3.1.0"))
    );
    assert_eq!(
        reply.header("content-length"),
        Some(reply.body.len().to_string().as_str())
    );
    let mut again = request("GET", "/api/v1/openapi.json");
    again
        .headers_mut()
        .insert("if-none-match", reply.headers["etag"].clone());
    let again = fake.send(again).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(fake.send(request("GET", "/healthz")).await.status, 200);
}
