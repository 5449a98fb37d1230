//! Random edits of graphs.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_support::graphs;

use super::script::Step;
use super::values::{Values, call, id, mostly, object, one_of};

/// Batches of operations: whole graphs of some use, and small edits that fit or do not.
pub(super) fn edits() -> BoxedStrategy<Step> {
    let ops = prop_oneof![1 => one_of(&wholes()), 3 => vec(small(), 0..4).prop_map(Value::from)].boxed();
    let flag = || one_of(&[true, false, false, false]);
    // The latest writes only, else little would be written.
    (0..4, prop_oneof![6 => Just(0), 1 => Just(1)], id("wf"))
        .prop_flat_map(move |(number, back, other)| {
            let workflow = if back == 0 { format!("wf#{number}") } else { other };
            let body = object([("ops*", ops.clone()), ("dryRun", flag()), ("atomic", flag())]);
            let expected = format!("wf#{number}@{back}");
            let body = body.prop_map(move |mut body| {
                body["expectedUpdatedAt"] = json!(expected);
                body
            });
            call("ApplyGraphOps", [("id", Just(workflow).boxed())], body)
        })
        .boxed()
}

fn wholes() -> Vec<Value> {
    let failing = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "stop",
            json!({ "status": "failed", "message": "enough {{1 + 1}}" }),
        ),
    ]);
    let wrong = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "set",
            json!({ "fields": { "rate": "{{$vars.RATE}}", "sum": "{{1.nothing * 2}}" } }),
        ),
    ]);
    let secret = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "set",
            json!({ "fields": { "said": "{{$vars.TOKEN}}!", "rate": "{{$vars.RATE}}" } }),
        ),
    ]);
    let each = json!([
        { "op": "add_node", "tempId": "go", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "each", "kind": "splitter", "after": "go", "scaffold": true,
            "params": { "items": "{{[3, 1, 2]}}" } },
        { "op": "add_node", "tempId": "double", "kind": "set", "after": "each",
            "params": { "fields": { "doubled": "{{$item * 2}}" } } },
    ]);
    vec![
        graphs::small_flow(),
        graphs::order_flow(),
        graphs::long_wait(),
        failing,
        wrong,
        secret,
        each,
    ]
}

/// One operation on the first few nodes.
fn small() -> BoxedStrategy<Value> {
    let node = || (1..5_i64).prop_map(Value::from).boxed();
    let edge_type = || one_of(&["normal", "fallback", "error"]);
    let filter = || {
        one_of(&[
            json!("{{2.total > 100}}"),
            json!("{{2.total >}}"),
            Value::Null,
            json!({ "any": [{ "all": [{ "left": "{{1.x}}", "operator": "eq", "right": 1 }] }] }),
        ])
    };
    let kinds = [
        "set",
        "stop",
        "condition",
        "wait",
        "nonsense",
        "webhook_trigger",
        "limit",
    ];
    let operation = |op: &'static str, fields: BoxedStrategy<Value>| {
        fields.prop_map(move |mut fields| {
            fields["op"] = json!(op);
            fields
        })
    };
    prop_oneof![
        operation(
            "add_node",
            object([
                ("tempId*", one_of(&["a", "b"])),
                ("kind*", one_of(&kinds)),
                ("name", mostly(&["Next", " Übung "], &[""])),
                ("after", node()),
                ("x", one_of(&[json!(1.5), json!(-3), json!(1e300)])),
            ])
        ),
        operation(
            "update_params",
            object([
                ("nodeId*", node()),
                (
                    "params",
                    one_of(&[
                        json!({ "fields": { "b": 1, "a": "{{1.x}}" } }),
                        json!({ "fields": null }),
                        json!({})
                    ])
                ),
                ("mode", one_of(&["merge", "replace"])),
            ])
        ),
        operation(
            "update_config",
            object([
                ("nodeId*", node()),
                (
                    "config",
                    one_of(&[
                        json!({ "onError": "continue" }),
                        json!({ "timeoutMs": -1 }),
                        json!({ "notes": "ä" })
                    ])
                ),
            ])
        ),
        operation(
            "connect",
            object([
                ("from*", node()),
                ("to*", node()),
                ("type", edge_type()),
                ("order", one_of(&[0, 3, -1])),
                ("filter", filter()),
            ])
        ),
        operation(
            "disconnect",
            object([("from*", node()), ("to*", node()), ("type", edge_type())])
        ),
        operation(
            "remove_node",
            object([("nodeId*", node()), ("heal", one_of(&[true, false]))])
        ),
        operation(
            "rename_node",
            object([("nodeId*", node()), ("name*", mostly(&["Ship", " it "], &[""]))])
        ),
        operation(
            "set_edge_filter",
            with_filter(object([("from*", node()), ("to*", node())]), filter())
        ),
    ]
    .boxed()
}

/// That the filter is there is a matter of the JSON: as a message, an operation without one clears it.
fn with_filter(edge: Values, filter: Values) -> Values {
    let member = |(mut edge, filter): (Value, Value)| {
        edge["filter"] = filter;
        edge
    };
    (edge, filter).prop_map(member).boxed()
}
