//! `aggregator`: collects what came of each item of a scope.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::compile_field;

pub(crate) struct AggregatorKind;

impl Kind for AggregatorKind {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            "aggregator",
            "Aggregator",
            "Runs once when every item of its splitter is done, in the order of the items. Output: items, count, \
             errors.",
        )
        .with_shape([
            FieldSpec::required(
                "of",
                FieldType::Integer,
                "The id of the splitter, or of the module that gives several things.",
            ),
            FieldSpec::optional(
                "collect",
                FieldType::ItemTemplate,
                "What is kept of each item; the output of the node before the aggregator by default.",
            ),
        ])
        .with_example(json!({ "of": 2, "collect": "{{3.body.id}}" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        if !node.params.get("of").is_some_and(Value::is_i64) {
            return Err(vec![ParamProblem::new(
                "of",
                "must be the id of a node that opens a scope, not a template",
            )]);
        }
        let given = node
            .params
            .get("collect")
            .is_some_and(|collect| !collect.is_null());
        let collect = given
            .then(|| compile_field(node, "collect", functions))
            .transpose()?;
        Ok(Behaviour::Aggregator(Aggregator { collect }))
    }
}

/// The parameters of an aggregator.
pub struct Aggregator {
    collect: Option<CompiledValue>,
}

impl Aggregator {
    /// What is kept of an item, as seen from inside its iteration.
    pub fn collect(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        match &self.collect {
            Some(collect) => Ok(collect.evaluate(scope)?),
            None => Ok(Arc::unwrap_or_clone(scope.input())),
        }
    }
}
