//! `filter`: keeps the items of a list that satisfy a condition.

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions, Gather};
use crate::failure::NodeError;
use crate::filter::CompiledFilter;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::{ItemScope, NodeScope};

use super::support::{compile_field, items_output, list};

pub(crate) struct Filter;

impl Kind for Filter {
    fn spec(&self) -> NodeSpec {
        let description = "Keeps the items of a list that satisfy a condition. Output: items, count.";
        NodeSpec::step("filter", "Filter items", description)
            .with_shape([
                FieldSpec::required("items", FieldType::Array, "The list."),
                FieldSpec::required(
                    "condition",
                    FieldType::Filter,
                    "A filter as edges have; it sees $item and $index.",
                ),
            ])
            .with_example(json!({ "items": "{{1.body.orders}}", "condition": "{{$item.total > 100}}" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let items = compile_field(node, "items", functions)?;
        let condition = node.params.get("condition").unwrap_or(&Value::Null);
        let located = |found: Vec<ParamProblem>| {
            found
                .into_iter()
                .map(|p| p.under("condition"))
                .collect::<Vec<_>>()
        };
        let condition = CompiledFilter::compile(condition, functions).map_err(located)?;
        Ok(Behaviour::Pure(Box::new(Kept { items, condition })))
    }
}

struct Kept {
    items: CompiledValue,
    condition: CompiledFilter,
}

impl Pure for Kept {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let mut kept = Vec::new();
        let mut gather = Gather::default();
        for (index, item) in list(&self.items, "items", scope)?.into_iter().enumerate() {
            if gather.pass(self.condition.matches(&ItemScope::new(scope, &item, index)))? == Some(true) {
                kept.push(item);
            }
        }
        gather.end()?;
        Ok(items_output(kept))
    }
}
