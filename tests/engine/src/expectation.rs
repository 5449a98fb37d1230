//! What a scenario expects, compared with what a runner saw.
//!
//! Both are documents of one form: `status`, `error`, `credits`, `attempt`, `tookMs`, `taken`, `order`, `response` (of a
//! webhook: `status` and `body`) and `nodes`, which by place holds `status`, `output`, `body` (of the output), `error`,
//! `attempt`, `credits` and `size` (of the output as JSON). Nodes must be the same ones; of all else what is expected
//! counts, as far as the runner can see it; of a node's error the fields that are given. A node may be its status alone.

use serde_json::{Map, Value, json};

use crate::scenario::Scenario;

/// Everything that was seen otherwise than expected.
#[must_use]
pub fn differences(expected: &Value, seen: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let fields = expected.as_object().expect("expect holds fields");
    for (name, expected) in fields.iter().filter(|(name, _)| *name != "nodes") {
        if let Some(seen) = seen.get(name) {
            compare(name, expected, seen, &mut found);
        }
    }
    if fields.get("status").is_some_and(|status| status != "failed") && !fields.contains_key("error") {
        compare("error", &Value::Null, &seen["error"], &mut found);
    }
    nodes(&expected["nodes"], &seen["nodes"], &mut found);
    found
}

/// Everything that the product's own nodes and triggers brought otherwise than the engine was told.
#[must_use]
pub fn brought_otherwise(scenario: &Scenario, seen: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (place, seen) in &object(&seen["nodes"]) {
        let (node, iteration) = place.split_once('/').unwrap_or((place, ""));
        let node: i64 = node.parse().expect("a node's id");
        let has_answers = scenario
            .answers
            .keys()
            .any(|told| told == place || *told == node.to_string());
        let has_ended = ["completed", "failed"]
            .iter()
            .any(|status| seen["status"] == *status);
        if has_answers && has_ended {
            let attempt = seen["attempt"]
                .as_u64()
                .and_then(|attempt| attempt.try_into().ok());
            let told = scenario.outside(node, iteration, attempt.unwrap_or(1));
            match (&told.output, &told.error) {
                (Some(output), _) => compare(&format!("{place} brings"), output, &seen["output"], &mut found),
                (None, Some(error)) => {
                    let (code, message) = (json!(error.code), json!(error.message));
                    compare(
                        &format!("{place} fails with"),
                        &code,
                        &seen["error"]["code"],
                        &mut found,
                    );
                    compare(
                        &format!("{place} says"),
                        &message,
                        &seen["error"]["message"],
                        &mut found,
                    );
                }
                (None, None) => panic!("{}: give either output or error", scenario.name),
            }
        }
        let is_begun_by_itself = scenario.start.webhook.is_some() || scenario.start.failure_of.is_some();
        if let (true, Some(output)) = (is_begun_by_itself, scenario.start.outputs.get(&node)) {
            compare(
                &format!("trigger {place} brings"),
                output,
                &seen["output"],
                &mut found,
            );
        }
    }
    found
}

fn nodes(expected: &Value, seen: &Value, found: &mut Vec<String>) {
    let (expected, seen) = (object(expected), object(seen));
    for (place, expected) in &expected {
        let Some(seen) = seen.get(place) else {
            found.push(format!("node {place} was not reached"));
            continue;
        };
        let short = json!({ "status": expected });
        let expected = if expected.is_string() { &short } else { expected };
        for (name, expected) in &object(expected) {
            let seen = seen.get(name).unwrap_or(&Value::Null);
            let name = format!("node {place}: {name}");
            match expected.as_object().filter(|_| name.ends_with("error")) {
                Some(fields) => {
                    for (field, expected) in fields {
                        let seen = seen.get(field).unwrap_or(&Value::Null);
                        compare(&format!("{name}.{field}"), expected, seen, found);
                    }
                }
                None => compare(&name, expected, seen, found),
            }
        }
    }
    for place in seen.keys().filter(|place| !expected.contains_key(*place)) {
        found.push(format!("node {place} was reached: {}", seen[place]));
    }
}

fn compare(name: &str, expected: &Value, seen: &Value, found: &mut Vec<String>) {
    if !is_same(expected, seen) {
        found.push(format!("{name} is {seen}, not {expected}"));
    }
}

/// Stands for any value but null.
pub const ANY: &str = "$any";

fn is_same(expected: &Value, seen: &Value) -> bool {
    match (expected, seen) {
        (Value::String(text), seen) if text == ANY => !seen.is_null(),
        (Value::Number(expected), Value::Number(seen)) => match (expected.as_f64(), seen.as_f64()) {
            (Some(expected), Some(seen)) => (expected - seen).abs() < f64::EPSILON,
            _ => expected == seen,
        },
        (Value::Array(expected), Value::Array(seen)) => {
            let mut both = expected.iter().zip(seen);
            expected.len() == seen.len() && both.all(|(expected, seen)| is_same(expected, seen))
        }
        (Value::Object(expected), Value::Object(seen)) => {
            let same = |(name, expected): (&String, &Value)| {
                seen.get(name).is_some_and(|seen| is_same(expected, seen))
            };
            expected.len() == seen.len() && expected.iter().all(same)
        }
        _ => expected == seen,
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The expectation with one thing changed: each of its values in turn, and a node more or less.
#[must_use]
pub fn mutants(expected: &Value) -> Vec<Value> {
    let mut mutants = Vec::new();
    let mut change = |path: &[&str], value: Option<Value>| {
        let mut mutant = expected.clone();
        let (last, above) = path.split_last().expect("a path");
        let holder = above.iter().fold(&mut mutant, |at, name| &mut at[*name]);
        let fields = holder.as_object_mut().expect("an object");
        match value {
            Some(value) => _ = fields.insert((*last).to_owned(), value),
            None => _ = fields.remove(*last),
        }
        mutants.push(mutant);
    };
    for (name, value) in object(expected).iter().filter(|(name, _)| *name != "nodes") {
        change(&[name], Some(other(value)));
    }
    change(&["nodes", "999"], Some(json!("completed")));
    for (place, node) in &object(&expected["nodes"]) {
        change(&["nodes", place], None);
        match node {
            Value::Object(fields) => {
                for (name, value) in fields {
                    change(&["nodes", place, name], Some(other(value)));
                }
            }
            status => change(&["nodes", place], Some(other(status))),
        }
    }
    mutants
}

/// Another value of the same type.
fn other(value: &Value) -> Value {
    match value {
        Value::Null => json!("something"),
        Value::Bool(given) => json!(!given),
        Value::Number(given) => json!(given.as_f64().unwrap_or_default() + 1.0),
        Value::String(given) => json!(format!("{given}!")),
        Value::Array(items) => items.iter().cloned().chain([json!("more")]).collect(),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("more".to_owned(), json!(true));
            Value::Object(fields)
        }
    }
}
