//! Graphs that tests build, as batches of operations.

use serde_json::{Value, json};

/// Adds one node after another one of the same batch, named by its kind and place.
fn node(temp_id: &str, kind: &str, params: &Value, after: Option<&str>) -> Value {
    let mut op = json!({ "op": "add_node", "tempId": temp_id, "kind": kind, "params": params });
    if let Some(after) = after {
        op["after"] = json!(after);
    }
    op
}

/// A chain of nodes, each after the one before; they get the ids 1, 2, 3 …
#[must_use]
pub fn chain(nodes: &[(&str, Value)]) -> Value {
    let names: Vec<String> = (1..=nodes.len()).map(|number| format!("n{number}")).collect();
    let operations = nodes.iter().enumerate().map(|(at, (kind, params))| {
        let after = at.checked_sub(1).map(|before| names[before].as_str());
        node(&names[at], kind, params, after)
    });
    operations.collect()
}

/// The graph of everyday use: a webhook (1), three computed fields (2), a condition (3) with the filter "the total is
/// above 100" to one end (4) and its fallback to another (5).
#[must_use]
pub fn order_flow() -> Value {
    let priced = json!({ "fields": {
        "total": "{{1.body.price * 2}}",
        "customer": "{{upper(1.body.customer)}}",
        "label": "Order {{1.body.id}} of {{1.body.customer}}",
    } });
    json!([
        node("hook", "webhook_trigger", &json!({}), None),
        node("price", "set", &priced, Some("hook")),
        node("large", "condition", &json!({ "mode": "first" }), Some("price")),
        node("ship", "set", &json!({ "fields": { "shipped": "{{2.label}}" } }), None),
        node("hold", "set", &json!({ "fields": { "held": true } }), None),
        { "op": "connect", "from": "large", "to": "ship", "filter": "{{2.total > 100}}" },
        { "op": "connect", "from": "large", "to": "hold", "type": "fallback" },
    ])
}

/// A trigger for runs by hand (1) and a node that makes an output (2).
#[must_use]
pub fn small_flow() -> Value {
    chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "answer": "{{6 * 7}}" } })),
    ])
}

/// A trigger (1), a wait of an hour (2) and a node after it (3).
#[must_use]
pub fn long_wait() -> Value {
    chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 1, "unit": "hours" })),
        ("set", json!({ "fields": { "done": true } })),
    ])
}
