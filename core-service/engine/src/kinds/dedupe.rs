//! `dedupe`: keeps the first of the items of a list that are alike.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::canonical;
use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{compile_field, items_output, keyed};

pub(crate) struct Dedupe;

impl Kind for Dedupe {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "dedupe",
            "Remove duplicates",
            "Keeps the first of the items of a list that are alike. Output: items, count.",
        )
        .with_shape([
            FieldSpec::required("items", FieldType::Array, "The list."),
            FieldSpec::optional(
                "by",
                FieldType::ItemTemplate,
                "What makes items alike; it sees $item and $index. The item itself by default.",
            ),
        ])
        .with_example(json!({ "items": "{{1.body.orders}}", "by": "{{$item.customerId}}" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let items = compile_field(node, "items", functions)?;
        let by = compile_field(node, "by", functions)?;
        Ok(Behaviour::Pure(Box::new(Distinct { items, by })))
    }
}

struct Distinct {
    items: CompiledValue,
    by: CompiledValue,
}

impl Pure for Distinct {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let mut seen = HashSet::new();
        let mut items = keyed(&self.items, &self.by, scope)?;
        items.retain(|(key, _)| seen.insert(canonical::to_string(&one_number_type(key.clone()))));
        Ok(items_output(items.into_iter().map(|(_, item)| item).collect()))
    }
}

/// Whole decimals as integers: the two are one type.
fn one_number_type(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(decimal) if number.is_f64() && decimal.fract() == 0.0 && decimal.abs() < 9.0e15 => {
                Value::from(decimal as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(one_number_type).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, field)| (name, one_number_type(field)))
                .collect(),
        ),
        other => other,
    }
}
