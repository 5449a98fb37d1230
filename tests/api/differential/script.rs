//! What is done: random calls of every noun's methods, most of them good, some of them not.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use test_support::graphs;

use super::operation::Operation;
use super::{graph, noun, table, workflow};

/// The most steps after the beginning.
const LONGEST: usize = 40;

/// One thing that is done on every side.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A call of a method.
    Call(Operation),
    /// Rows for a table, as runs make them.
    InsertRows {
        table: String,
        rows: Vec<Map<String, Value>>,
    },
}

/// What every script begins with, so that random references find something.
pub(crate) fn beginning() -> Vec<Step> {
    let call = |method, parameters: &[(&'static str, &str)], body| {
        let parameters = parameters
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Step::Call(Operation::new(method, parameters.collect(), body))
    };
    let columns = json!([
        { "name": "sku", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "indexed": true },
        { "name": "sold", "type": "boolean" },
        { "name": "since", "type": "date" },
        { "name": "more", "type": "json" },
    ]);
    vec![
        call("ListTeams", &[], Value::Null),
        call("CreateFolder", &[], json!({ "name": "Shop" })),
        call("CreateTag", &[], json!({ "name": "daily", "color": "#12abEF" })),
        call(
            "CreateWorkflow",
            &[],
            json!({ "name": "Orders", "folderId": "folder#0" }),
        ),
        call(
            "ApplyGraphOps",
            &[("id", "wf#0")],
            json!({ "ops": graphs::order_flow(), "expectedUpdatedAt": "wf#0@0" }),
        ),
        call("CreateWorkflow", &[], json!({ "name": "answers" })),
        call(
            "ApplyGraphOps",
            &[("id", "wf#1")],
            json!({ "ops": graphs::small_flow(), "expectedUpdatedAt": "wf#1@0" }),
        ),
        call(
            "CreateDatabase",
            &[],
            json!({ "name": "Products", "columns": columns }),
        ),
        call("SetVariable", &[("id", "RATE")], json!({ "value": "1.5" })),
        call("MintWebhook", &[("workflowId", "wf#0")], json!({ "nodeId": "1" })),
        call("StartRun", &[("workflowId", "wf#1")], json!({})),
        call("CreateStructure", &[], json!({ "name": "Order" })),
        call(
            "CreateFunction",
            &[],
            json!({ "name": "half", "code": "return 1 / 2" }),
        ),
        call(
            "CreateInvitation",
            &[],
            json!({ "email": "eve@example.com", "role": "member" }),
        ),
    ]
}

/// Random steps.
pub(crate) fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => workflow::workflows(),
        5 => graph::edits(),
        4 => workflow::deployments(),
        5 => workflow::runs(),
        3 => noun::variables(),
        2 => noun::folders(),
        2 => noun::tags(),
        3 => workflow::webhooks(),
        4 => table::databases(),
        2 => noun::structures(),
        2 => noun::functions(),
        2 => noun::invitations(),
    ];
    vec(step, 1..LONGEST)
}
