//! Rates that apps say of themselves.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;
use serde_json::json;
use test_support::{Asked, Target};

use super::bring;
use crate::world::World;

on_both_databases!(an_app_is_called_no_faster_than_it_says);

const MANIFEST: &str = r#"
manifest: 1
id: slow_shop
name: Slow shop
baseUrl: BASE_URL
rateLimit: { requests: 1, seconds: 2 }
connections: []
modules:
  - id: get
    label: Get
    type: action
    description: Gets something.
    connection: optional
    request: { path: /thing }
"#;

async fn an_app_is_called_no_faster_than_it_says(world: &World) {
    let instants = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&instants);
    let service = Target::start(move |_: &Asked| {
        noted.lock().unwrap().push(Instant::now());
        Response::new(Bytes::new())
    })
    .await;
    bring(world, &MANIFEST.replace("BASE_URL", &service.url(""))).await;
    let call = |id: &str, after: &str| json!({ "op": "add_node", "tempId": id, "appId": "slow_shop", "moduleSlug": "get", "after": after });
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        call("first", "start"),
        call("second", "first"),
    ]);
    let workflow = world.api.workflow_with("Slow", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let instants = instants.lock().unwrap().clone();
    assert_eq!(instants.len(), 2);
    // The calls leave two seconds apart; how long each is on its way is left to the machine.
    let between = instants[1] - instants[0];
    assert!(between >= Duration::from_secs(1), "{between:?}");
}
