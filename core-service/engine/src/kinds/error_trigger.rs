//! `error_trigger`: starts a run when a run of another workflow has failed.

use serde_json::{Map, Value, json};

use crate::expression::CustomFunctions;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem};

pub(crate) struct ErrorTrigger;

impl Kind for ErrorTrigger {
    fn spec(&self) -> NodeSpec {
        let workflow_ids = "The workflows whose failed runs it reacts to; an empty list is all but its own.";
        NodeSpec::trigger(
            "error_trigger",
            "On error",
            "Starts a run when a run of one of the workflows has failed. Output: runId, workflowId, nodeId, error.",
        )
        .with_shape([FieldSpec::required("workflowIds", FieldType::Array, workflow_ids)])
        .with_example(json!({ "workflowIds": ["wf_01j8zt5m2ve4rbq3w5dxkh9n7c"] }))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let ids = params
            .get("workflowIds")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let not_text = ids.iter().enumerate().filter(|(_, id)| !id.is_string());
        not_text
            .map(|(at, _)| ParamProblem::new(format!("workflowIds[{at}]"), "must be a workflow id"))
            .collect()
    }

    fn compile(
        &self,
        _node: &Node,
        _functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::Trigger)
    }
}
