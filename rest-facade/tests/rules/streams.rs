//! Streams as Server-Sent Events.

use bytes::Bytes;
use contract::v1::watch_run_response::Change;
use contract::v1::{RunNode, RunSummary, WatchRunRequest, WatchRunResponse};
use prost::Message;
use tonic::Status;

use crate::fake::{Answer, Fake, request};

fn event(id: &str, change: Option<Change>) -> Bytes {
    let event = WatchRunResponse {
        event_id: id.to_owned(),
        change,
    };
    event.encode_to_vec().into()
}

#[tokio::test]
async fn changes_are_events_with_ids_until_the_stream_ends() {
    let fake = Fake::new(|_| {
        let run = RunSummary {
            id: "run_1".into(),
            ..RunSummary::default()
        };
        let messages = vec![
            event("1", Some(Change::Run(run))),
            event("2", None),
            event("3\nevent: forged", Some(Change::Node(RunNode::default()))),
        ];
        Ok(Answer {
            messages,
            ..Answer::default()
        })
    });
    let mut request = request("GET", "/api/v1/runs/run_1/events");
    request
        .headers_mut()
        .insert("last-event-id", "0".parse().unwrap());
    let reply = fake.send(request).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let events: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(events.len(), 2, "{text}");
    assert!(
        events[0].contains("id: 1\n") || events[0].starts_with("id: 1"),
        "{text}"
    );
    assert!(
        events[0].contains("event: run") && events[0].contains(r#""id":"run_1""#),
        "{text}"
    );
    assert!(events[1].lines().any(|line| line == "event: node"), "{text}");
    assert!(!text.lines().any(|line| line == "event: forged"), "{text}");
    let message: WatchRunRequest = fake.only().message();
    assert_eq!(
        (message.id.as_str(), message.last_event_id.as_deref()),
        ("run_1", Some("0"))
    );
}

#[tokio::test]
async fn a_stream_that_is_refused_is_an_error_like_any_other() {
    let fake = Fake::refusing(Status::not_found(""));
    let reply = fake.send(request("GET", "/api/v1/runs/run_1/events")).await;
    assert_eq!(reply.error(), (404, "NOT_FOUND".to_owned()));
}
