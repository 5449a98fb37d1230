//! Server-Sent Events of a run.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    each_change_comes_once_and_the_stream_ends_with_the_run,
    a_late_reader_goes_on_where_it_was,
);

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

/// The events of a run until its stream ends.
async fn events(world: &World, run: &str, after: Option<&str>) -> Vec<Event> {
    let headers: Vec<(&str, &str)> = after.map(|id| ("last-event-id", id)).into_iter().collect();
    let path = format!("/api/v1/runs/{run}/events");
    let answer = world.api.send(Method::GET, &path, &headers, Bytes::new()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let text = answer.text();
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    let field = |block: &str, name: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name}: {block}"))
            .trim_start()
            .to_owned()
    };
    blocks
        .map(|block| Event {
            id: field(block, "id"),
            name: field(block, "event"),
            data: serde_json::from_str(&field(block, "data")).unwrap(),
        })
        .collect()
}

async fn each_change_comes_once_and_the_stream_ends_with_the_run(world: &World) {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 0.2, "unit": "seconds" })),
        ("set", json!({ "fields": { "done": true } })),
    ]);
    let workflow = world.api.workflow_with("x", flow).await;
    let run = world.api.start(&workflow, json!({})).await;
    let seen = events(world, &run, None).await;
    let last = seen.last().unwrap();
    assert_eq!(
        (last.name.as_str(), &last.data["status"]),
        ("run", &json!("succeeded")),
        "{seen:#?}"
    );
    let ended: Vec<_> = seen
        .iter()
        .filter(|event| event.name == "node" && event.data["status"] == "completed")
        .map(|event| &event.data["nodeId"])
        .collect();
    assert_eq!(ended, [1, 2, 3]);
    let mut ids: Vec<_> = seen.iter().map(|event| &event.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), seen.len());
    // However late the reader comes, it is told the same.
    assert_eq!(events(world, &run, None).await, seen);
}

async fn a_late_reader_goes_on_where_it_was(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let all = events(world, &run, None).await;
    for (at, event) in all.iter().enumerate().take(all.len() - 1) {
        assert_eq!(
            events(world, &run, Some(&event.id)).await,
            all[at + 1..],
            "after {}",
            event.id
        );
    }
    world
        .api
        .get("/runs/run_unknown/events")
        .await
        .error(404, "NOT_FOUND");
}
