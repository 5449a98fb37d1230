//! `run_workflow`: starts a run of another workflow, and may wait for its end.
//!
//! What it means to start it is not known here: see `triggers/call.rs`.

use engine::expression::{CompiledValue, CustomFunctions};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External, Kind, NodeSpec};
use engine::params::{FieldSpec, FieldType, ParamProblem, Resource};
use engine::scope::NodeScope;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The kind.
pub struct RunWorkflow;

impl RunWorkflow {
    /// Its name.
    pub const KIND: &'static str = "run_workflow";
}

/// What a node asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCall {
    /// The workflow to run.
    pub workflow_id: String,
    /// The output of its trigger.
    #[serde(default)]
    pub input: Value,
    /// Whether the node waits for the run's end.
    #[serde(default)]
    pub mode: CallMode,
    /// What of the workflow runs.
    #[serde(default)]
    pub version: CalledVersion,
    /// How long the node waits, in milliseconds; as long as it takes when absent.
    #[serde(default)]
    pub patience_ms: Option<u64>,
}

/// Whether a node waits for the end of the run it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// It does; its output is what came of the run.
    #[default]
    Wait,
    /// It goes on at once.
    Fire,
}

/// What of a workflow runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalledVersion {
    /// The deployed version; the workflow has to be active.
    #[default]
    Deployed,
    /// The draft as it is, active or not.
    Draft,
}

impl Kind for RunWorkflow {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            Self::KIND,
            "Run a workflow",
            "Starts a run of another workflow, whose workflow trigger outputs input, and waits for its end unless mode \
             is fire. Output: runId, status, and output, which is that of the run's last node. A run that fails or is \
             cancelled fails the node with CHILD_FAILED.",
        )
        .with_shape([
            FieldSpec::required("workflowId", FieldType::String, "The workflow to run.")
                .naming(Resource::Workflow),
            FieldSpec::optional("input", FieldType::Any, "What its trigger outputs; {} by default."),
            FieldSpec::optional(
                "mode",
                FieldType::choice(&["wait", "fire"]),
                "Wait for the run's end (the default), or go on at once.",
            ),
            FieldSpec::optional(
                "version",
                FieldType::choice(&["deployed", "draft"]),
                "Run the deployed version of an active workflow (the default), or the draft.",
            ),
        ])
        .with_example(json!({
            "workflowId": "wf_01j8zt5m2ve4rbq3w5dxkh9n7c", "input": { "orderId": "{{1.body.id}}" }, "mode": "wait"
        }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let given = node.params.iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        let params = CompiledValue::compile(&Value::Object(given), functions).map_err(|found| {
            let problem = |(path, error): (String, engine::expression::ParseError)| {
                ParamProblem::new(path, error.to_string())
            };
            found.into_iter().map(problem).collect::<Vec<_>>()
        })?;
        Ok(Behaviour::External(Box::new(Request {
            params,
            patience_ms: node.config.timeout_ms,
        })))
    }
}

struct Request {
    params: CompiledValue,
    /// The node's own time-out; the default for all kinds is too short for a run.
    patience_ms: Option<u64>,
}

impl External for Request {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let mut request = self.params.evaluate(scope)?;
        request["patienceMs"] = json!(self.patience_ms);
        Ok(request)
    }
}
