//! The workload that crashes and load are measured with: a webhook, three expressions, a condition, and a last node.

use serde_json::{Value, json};

/// Operations that build webhook (1) -> set (2) -> condition (3) -> set (4).
#[must_use]
pub fn graph() -> Value {
    let computed = json!({
        "id": "{{1.body.id}}",
        "total": "{{1.body.qty * 1.body.price}}",
        "name": "{{upper(1.body.name)}}",
    });
    json!([
        { "op": "add_node", "tempId": "hook", "kind": "webhook_trigger" },
        { "op": "add_node", "tempId": "order", "kind": "set", "after": "hook", "params": { "fields": computed } },
        { "op": "add_node", "tempId": "large", "kind": "condition", "after": "order" },
        { "op": "add_node", "tempId": "big", "kind": "set", "params": { "fields": { "status": "big" } } },
        { "op": "connect", "from": "large", "to": "big", "filter": "{{2.total > 100}}" },
    ])
}

/// The same with a wait (5) of so many seconds and a node after it (6): runs that a crash finds under way.
#[must_use]
pub fn graph_with_wait(seconds: f64) -> Value {
    let mut operations = graph();
    let wait = json!({ "amount": seconds, "unit": "seconds" });
    let further = [
        json!({ "op": "add_node", "tempId": "pause", "kind": "wait", "after": "big", "params": wait }),
        json!({ "op": "add_node", "tempId": "ship", "kind": "set", "after": "pause",
            "params": { "fields": { "status": "shipped" } } }),
    ];
    if let Some(operations) = operations.as_array_mut() {
        operations.extend(further);
    }
    operations
}

/// The body of a call: 200 bytes of JSON.
#[must_use]
pub fn body() -> String {
    let start = r#"{"id":"ord-000001","name":"widget","qty":12,"price":19.5,"a":1,"note":""#;
    format!("{start}{}\"}}", "x".repeat(200 - start.len() - 2))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_body_has_200_bytes_of_json() {
        let body = super::body();
        assert_eq!(body.len(), 200);
        assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok());
    }
}
