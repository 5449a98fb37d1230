//! Nodes that keep data: rows of databases, variables, and values that are checked against structures.

mod references;
mod rows;
mod values;

use serde_json::{Value, json};
use test_support::{Api, graphs, text};

use crate::database::schema::create;
use crate::world::World;

/// The report of a run of these nodes, one after the other, behind a trigger (1).
pub(super) async fn run(api: &Api, nodes: &[(&str, Value)], input: Value) -> Value {
    let mut chain = vec![("manual_trigger", json!({}))];
    chain.extend_from_slice(nodes);
    let workflow = api.workflow_with("Data", graphs::chain(&chain)).await;
    let run = api
        .start(&workflow, json!({ "upstreamOutputs": { "1": input } }))
        .await;
    api.ended(&run).await
}

/// The outputs of the nodes of such a run by id, which must succeed.
pub(super) async fn outputs(api: &Api, nodes: &[(&str, Value)], input: Value) -> Vec<Value> {
    let report = run(api, nodes, input).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let shown = report["nodes"].as_array().unwrap();
    std::iter::once(&Value::Null)
        .chain(shown.iter().map(|node| &node["output"]))
        .cloned()
        .collect()
}

/// The code and the message of the failure of one node behind a trigger.
pub(super) async fn failure(api: &Api, kind: &str, params: Value, input: Value) -> (String, String) {
    let report = run(api, &[(kind, params)], input).await;
    assert_eq!(report["status"], "failed", "{report}");
    let error = &report["nodes"][1]["error"];
    (text(&error["code"]), text(&error["message"]))
}

/// A database of products; its id and schema.
pub(super) async fn products(world: &World) -> (String, Value) {
    let columns = json!([
        { "name": "sku", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "required": true },
        { "name": "since", "type": "date", "indexed": true },
        { "name": "größe", "type": "text" },
    ]);
    let table = create(world, columns).await;
    (text(&table["id"]), table)
}
