//! The workflows that webhook calls run. The body of each call is that of `test_support::workload`.

use serde_json::{Value, json};
use test_support::{graphs, workload};

/// A workflow and what is known of its runs.
pub(crate) struct Workload {
    /// As `--workload` calls it.
    pub(crate) name: &'static str,
    /// The operations that build it.
    pub(crate) operations: fn() -> Value,
    /// The status that a call is answered with.
    pub(crate) success: u16,
    /// The output of the last node.
    pub(crate) output: fn() -> Value,
}

pub(crate) const WORKLOADS: [Workload; 5] = [
    // webhook -> set (three expressions) -> condition -> set, answered when the run is durable.
    Workload {
        name: "w1",
        operations: workload::graph,
        success: 202,
        output: || json!({ "status": "big" }),
    },
    // The same, answered with what the last node says.
    Workload {
        name: "w2",
        operations: || answered_by_last_node(workload::graph()),
        success: 200,
        output: || json!({ "status": "big" }),
    },
    // webhook -> 20 x set, each of which adds one to what the one before it says.
    Workload {
        name: "c20",
        operations: || counting("set", 20),
        success: 202,
        output: || json!({ "a": 21 }),
    },
    // webhook -> set -> 10 x js_code, likewise.
    Workload {
        name: "js10",
        operations: || counting("js_code", 10),
        success: 202,
        output: || json!({ "a": 11 }),
    },
    // The same, answered with what the last node says: no more runs are under way than there are connections.
    Workload {
        name: "js10-answered",
        operations: || answered_by_last_node(counting("js_code", 10)),
        success: 200,
        output: || json!({ "a": 11 }),
    },
];

fn answered_by_last_node(mut operations: Value) -> Value {
    operations[0]["params"] = json!({ "responseMode": "last_node" });
    operations
}

/// A webhook and nodes that count on from the `a` of the body.
fn counting(kind: &str, nodes: usize) -> Value {
    let mut chain = vec![("webhook_trigger", json!({}))];
    if kind == "js_code" {
        chain.push(("set", json!({ "fields": { "a": "{{1.body.a}}" } })));
        chain.extend((0..nodes).map(|_| (kind, json!({ "code": "return { a: input.a + 1 }" }))));
    } else {
        let before = |node: usize| match node {
            1 => "1.body".to_owned(),
            node => node.to_string(),
        };
        let add = |node| json!({ "fields": { "a": format!("{{{{{}.a + 1}}}}", before(node)) } });
        chain.extend((1..=nodes).map(|node| (kind, add(node))));
    }
    graphs::chain(&chain)
}
