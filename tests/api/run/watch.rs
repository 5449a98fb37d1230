//! Watching runs: Server-Sent Events, and the stream that they are made of.

use bytes::Bytes;
use contract::json::Words as _;
use contract::v1::run_service_client::RunServiceClient;
use contract::v1::watch_run_response::Change;
use contract::v1::{RevokeApiKeyRequest, RunStatus, WatchRunRequest, WatchRunResponse};
use http::Method;
use serde_json::{Value, json};
use test_support::{graphs, text};
use tonic::{Code, Request, Streaming};

use crate::world::World;

on_both_databases!(
    a_late_reader_sees_every_change_in_order,
    a_reader_of_a_run_under_way_is_told_until_its_end,
    a_reader_that_comes_back_goes_on_after_its_last_event,
    a_rerun_is_told_after_what_came_before,
    nobody_watches_what_is_not_theirs,
    a_cancel_and_a_retry_are_told_to_all_who_watch,
    a_revoked_key_sees_nothing_more,
);

/// One event: its id, its name, its data.
type Event = (String, String, Value);

/// The whole stream of a run, up to the end that the server makes.
async fn events(world: &World, run: &str, last_event_id: Option<&str>) -> Vec<Event> {
    let headers: Vec<_> = last_event_id
        .map(|id| ("last-event-id", id))
        .into_iter()
        .collect();
    let path = format!("/api/v1/runs/{run}/events");
    let answer = world.api.send(Method::GET, &path, &headers, Bytes::new()).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/event-stream")
    );
    let text = answer.text();
    text.split("\n\n")
        .filter(|block| block.contains("event:"))
        .map(event)
        .collect()
}

fn event(block: &str) -> Event {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {block:?}"))
            .trim()
            .to_owned()
    };
    (
        field("id:"),
        field("event:"),
        serde_json::from_str(&field("data:")).unwrap(),
    )
}

/// What happened, shortly: `run succeeded`, `node 2 completed`.
fn told(events: &[Event]) -> Vec<String> {
    let line = |(_, name, data): &Event| match name.as_str() {
        "node" => format!("node {} {}", data["nodeId"], data["status"].as_str().unwrap()),
        name => format!("{name} {}", data["status"].as_str().unwrap()),
    };
    events.iter().map(line).collect()
}

async fn a_late_reader_sees_every_change_in_order(world: &World) {
    let workflow = world.api.workflow_with("Ended", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let events = events(world, &run, None).await;
    let told = told(&events);
    assert_eq!(
        (told.first(), told.last()),
        (Some(&"run running".to_owned()), Some(&"run succeeded".to_owned()))
    );
    let nodes: Vec<Value> = events
        .iter()
        .filter(|(_, name, _)| name == "node")
        .map(|(_, _, data)| data.clone())
        .collect();
    assert_eq!(
        json!(nodes),
        report["nodes"],
        "each node of a pure run changes once"
    );
    let last = &events.last().unwrap().2;
    assert_eq!(
        (&last["id"], &last["finishedAt"]),
        (&json!(run), &report["finishedAt"])
    );
    let mut ids: Vec<&String> = events.iter().map(|(id, _, _)| id).collect();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "every event has an id of its own");
}

async fn a_reader_of_a_run_under_way_is_told_until_its_end(world: &World) {
    let operations = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 0.3, "unit": "seconds" })),
        ("set", json!({ "fields": { "a": 1 } })),
    ]);
    let workflow = world.api.workflow_with("Waits", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let told = told(&events(world, &run, None).await);
    assert_eq!(
        told,
        [
            "run running",
            "node 1 completed",
            "node 2 waiting",
            "run waiting",
            "node 2 completed",
            "run running",
            "node 3 completed",
            "run succeeded",
        ]
    );
}

async fn a_reader_that_comes_back_goes_on_after_its_last_event(world: &World) {
    let workflow = world.api.workflow_with("Resumed", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ended = world.api.ended(&run).await;
    let all = events(world, &run, None).await;
    for seen in 0..all.len() {
        let rest = events(world, &run, Some(&all[seen].0)).await;
        assert_eq!(rest, all[seen + 1..], "after {}", all[seen].0);
    }
    let path = format!("/api/v1/runs/{run}/events");
    let headers = [("last-event-id", "yesterday")];
    let refused = world.api.send(Method::GET, &path, &headers, Bytes::new()).await;
    refused.error(400, "VALIDATION_ERROR");
}

async fn a_rerun_is_told_after_what_came_before(world: &World) {
    let workflow = world.api.workflow_with("Twice", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ended = world.api.ended(&run).await;
    let first = events(world, &run, None).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    let _ended_again = world.api.ended(&run).await;
    let both = events(world, &run, None).await;
    assert_eq!(both[..first.len()], first);
    assert_eq!(told(&both[first.len()..]), told(&first));
}

async fn nobody_watches_what_is_not_theirs(world: &World) {
    let workflow = world.api.workflow_with("Mine", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let stranger = world.stranger().await;
    stranger
        .get(format!("/runs/{run}/events"))
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .get("/runs/run_00000000000000000000000000/events")
        .await
        .error(404, "NOT_FOUND");
}

/// The stream of a run over gRPC, with this key.
async fn watch(world: &World, run: &str, key: &str) -> Streaming<WatchRunResponse> {
    let message = WatchRunRequest {
        id: run.to_owned(),
        ..Default::default()
    };
    let mut request = Request::new(message);
    let authorization = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", authorization);
    let mut client = RunServiceClient::new(world.server.channel().await);
    client.watch_run(request).await.unwrap().into_inner()
}

/// What the stream tells up to this status of the run, shortly.
async fn told_until(stream: &mut Streaming<WatchRunResponse>, status: RunStatus) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        match message.change.unwrap() {
            Change::Node(node) => {
                let status = contract::v1::RunNodeStatus::to_word(node.status).unwrap();
                told.push(format!("node {} {status}", node.node_id));
            }
            Change::Run(run) => {
                told.push(format!("run {}", RunStatus::to_word(run.status).unwrap()));
                if run.status() == status {
                    break;
                }
            }
        }
    }
    told
}

async fn a_cancel_and_a_retry_are_told_to_all_who_watch(world: &World) {
    let workflow = world.api.workflow_with("Watched", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let mut one = watch(world, &run, world.api.key()).await;
    let mut other = watch(world, &run, world.api.key()).await;
    let before = ["run running", "node 1 completed", "node 2 waiting", "run waiting"];
    for stream in [&mut one, &mut other] {
        assert_eq!(told_until(stream, RunStatus::Waiting).await, before);
    }
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    for mut stream in [one, other] {
        let told = told_until(&mut stream, RunStatus::Cancelled).await;
        assert_eq!(told, ["node 2 cancelled", "run cancelled"]);
        assert!(stream.message().await.unwrap().is_none(), "it ends with the run");
    }

    let failing = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "a": "{{1.missing * 2}}" } })),
    ]);
    let workflow = world.api.workflow_with("Fails", failing).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.ended(&run).await;
    let first = events(world, &run, None).await;
    let again = json!({ "nodeId": 2 });
    let _ = world
        .api
        .post(format!("/runs/{run}/retry-node"), again)
        .await
        .data(200);
    let _ = world.api.ended(&run).await;
    let rest = events(world, &run, Some(&first.last().unwrap().0)).await;
    assert_eq!(told(&rest), ["run running", "node 2 failed", "run failed"]);
}

async fn a_revoked_key_sees_nothing_more(world: &World) {
    let workflow = world.api.workflow_with("Watched", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let key = world
        .admin
        .key(&world.organization, &world.owner, &[], None)
        .await;
    let mut stream = watch(world, &run, &key.api_key).await;
    let told = told_until(&mut stream, RunStatus::Waiting).await;
    assert_eq!(text(&json!(told.last())), "run waiting");
    let revoked = RevokeApiKeyRequest { id: key.id };
    let _ = world.admin.client.clone().revoke_api_key(revoked).await.unwrap();
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    let refused = stream.message().await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
}
