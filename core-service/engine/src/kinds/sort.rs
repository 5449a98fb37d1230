//! `sort`: puts the items of a list in order.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions, compare_numbers};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{compile_field, items_output, keyed, text};

pub(crate) struct Sort;

impl Kind for Sort {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "sort",
            "Sort items",
            "Puts the items of a list in order. Output: items, count.",
        )
        .with_shape([
            FieldSpec::required("items", FieldType::Array, "The list."),
            FieldSpec::optional(
                "by",
                FieldType::ItemTemplate,
                "What is compared; it sees $item and $index. The item itself by default.",
            ),
            FieldSpec::optional(
                "direction",
                FieldType::choice(&["asc", "desc"]),
                "asc by default.",
            ),
        ])
        .with_example(json!({ "items": "{{1.body.orders}}", "by": "{{$item.total}}", "direction": "desc" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let items = compile_field(node, "items", functions)?;
        let by = compile_field(node, "by", functions)?;
        let direction = compile_field(node, "direction", functions)?;
        Ok(Behaviour::Pure(Box::new(Sorted { items, by, direction })))
    }
}

struct Sorted {
    items: CompiledValue,
    by: CompiledValue,
    direction: CompiledValue,
}

impl Pure for Sorted {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let mut items = keyed(&self.items, &self.by, scope)?;
        // Stable both ways: what compares equal keeps its order.
        match text(&self.direction, "direction", scope)?.as_deref() {
            None | Some("asc") => items.sort_by(|(a, _), (b, _)| compare(a, b)),
            Some("desc") => items.sort_by(|(a, _), (b, _)| compare(b, a)),
            Some(other) => {
                return Err(NodeError::expression(format!(
                    "direction must be asc or desc, not {other:?}"
                )));
            }
        }
        Ok(items_output(items.into_iter().map(|(_, item)| item).collect()))
    }
}

/// A total order: null, then false and true, numbers, text, and everything else as equal.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    }
}
