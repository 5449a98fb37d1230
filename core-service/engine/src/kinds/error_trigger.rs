//! `error_trigger`: starts a run when a run of another workflow has failed.

use serde_json::{Map, Value, json};

use crate::expression::{CustomFunctions, NoCustomFunctions, Template};
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem, Resource};

pub(crate) struct ErrorTrigger;

impl Kind for ErrorTrigger {
    fn spec(&self) -> NodeSpec {
        let workflow_ids = "The workflows whose failed runs it reacts to; an empty list is all but its own.";
        NodeSpec::trigger(
            "error_trigger",
            "On error",
            "Starts a run when a run of one of the workflows has failed. Output: runId, workflowId, nodeId, error.",
        )
        .with_shape([
            FieldSpec::required("workflowIds", FieldType::Array, workflow_ids).naming(Resource::Workflow)
        ])
        .with_example(json!({ "workflowIds": ["wf_01j8zt5m2ve4rbq3w5dxkh9n7c"] }))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        // Nothing has run yet that a template could see.
        let is_id = |given: &Value| {
            given
                .as_str()
                .and_then(|text| Template::parse(text, &NoCustomFunctions).ok())
                .is_some_and(|text| text.is_literal())
        };
        match params.get("workflowIds") {
            Some(Value::Array(given)) => {
                let wrong = given.iter().enumerate().filter(|(_, given)| !is_id(given));
                wrong
                    .map(|(at, _)| ParamProblem::new(format!("workflowIds[{at}]"), "must be a workflow id"))
                    .collect()
            }
            Some(Value::String(_)) => {
                vec![ParamProblem::new("workflowIds", "must be a list of workflow ids")]
            }
            _ => Vec::new(),
        }
    }

    fn compile(
        &self,
        _node: &Node,
        _functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::Trigger)
    }
}
