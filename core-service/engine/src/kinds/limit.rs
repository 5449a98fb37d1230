//! `limit`: keeps the first items of a list.

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{compile_field, items_output, list, type_name};

pub(crate) struct Limit;

impl Kind for Limit {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "limit",
            "Limit items",
            "Keeps the first items of a list. Output: items, count.",
        )
        .with_shape([
            FieldSpec::required("items", FieldType::Array, "The list."),
            FieldSpec::required("count", FieldType::Integer, "How many, from zero."),
        ])
        .with_example(json!({ "items": "{{1.body.orders}}", "count": 10 }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let items = compile_field(node, "items", functions)?;
        let count = compile_field(node, "count", functions)?;
        Ok(Behaviour::Pure(Box::new(First { items, count })))
    }
}

struct First {
    items: CompiledValue,
    count: CompiledValue,
}

impl Pure for First {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let mut items = list(&self.items, "items", scope)?;
        let count = self.count.evaluate(scope)?;
        match count.as_u64().map(usize::try_from) {
            Some(count) => items.truncate(count.unwrap_or(usize::MAX)),
            None => {
                let what = type_name(&count);
                return Err(NodeError::expression(format!(
                    "count must be a whole number from zero, not {what}"
                )));
            }
        }
        Ok(items_output(items))
    }
}
