//! `condition`: goes on along the edges whose filters hold.

use serde_json::{Value, json};

use crate::expression::CustomFunctions;
use crate::graph::Node;
use crate::kind::{Behaviour, ConditionMode, Kind, NodeSpec};
use crate::params::{FieldSpec, FieldType, ParamProblem};

pub(crate) struct Condition;

impl Kind for Condition {
    fn spec(&self) -> NodeSpec {
        let mode =
            "first takes the first edge, in order, whose filter holds; all (the default) takes every one.";
        let mut spec = NodeSpec::flow(
            "condition",
            "Condition",
            "Goes on along the edges whose filters hold. Output: matched, the ids of the edges taken.",
        )
        .with_shape([FieldSpec::optional(
            "mode",
            FieldType::choice(&["first", "all"]),
            mode,
        )])
        .with_example(json!({ "mode": "first" }));
        spec.edge_model = String::from(
            "The filters of the normal edges decide, lower order first; the fallback edge is the else. Error edges \
             are taken when a filter cannot be evaluated.",
        );
        spec
    }

    fn compile(&self, node: &Node, _functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        match node.params.get("mode").unwrap_or(&Value::Null) {
            Value::Null => Ok(Behaviour::Condition(ConditionMode::All)),
            Value::String(mode) if mode == "all" => Ok(Behaviour::Condition(ConditionMode::All)),
            Value::String(mode) if mode == "first" => Ok(Behaviour::Condition(ConditionMode::First)),
            _ => Err(vec![ParamProblem::new(
                "mode",
                "must be first or all, not a template",
            )]),
        }
    }
}
