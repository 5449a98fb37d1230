//! `stop`: ends the run at once.

use serde_json::{Value, json};

use crate::event::{Failure, Outcome};
use crate::expression::{CompiledValue, CustomFunctions, Scope};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{FieldSpec, FieldType, ParamProblem};

use super::support::{compile_field, text};

pub(crate) struct StopKind;

impl Kind for StopKind {
    fn spec(&self) -> NodeSpec {
        let mut spec = NodeSpec::flow(
            "stop",
            "Stop",
            "Ends the run at once; what is in flight is cancelled. Output: status, message.",
        )
        .with_shape([
            FieldSpec::optional(
                "status",
                FieldType::choice(&["succeeded", "failed"]),
                "How the run ends; succeeded by default.",
            ),
            FieldSpec::optional(
                "message",
                FieldType::String,
                "Why; part of the run's error when it fails.",
            ),
        ])
        .with_example(json!({ "status": "failed", "message": "Order {{1.body.id}} has no items" }));
        spec.routes = Vec::new();
        spec.edge_model = String::from("No edges lead out: the run is over.");
        spec
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let status = compile_field(node, "status", functions)?;
        let message = compile_field(node, "message", functions)?;
        Ok(Behaviour::Stop(Stop { status, message }))
    }
}

/// The parameters of a stop node.
pub struct Stop {
    status: CompiledValue,
    message: CompiledValue,
}

/// How a stop node ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Succeeded or failed.
    pub outcome: Outcome,
    /// Why.
    pub message: String,
}

impl Stop {
    /// How the run is to end.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<End, NodeError> {
        let outcome = match text(&self.status, "status", scope)?.as_deref() {
            None | Some("succeeded") => Outcome::Succeeded,
            Some("failed") => Outcome::Failed,
            Some(other) => {
                return Err(NodeError::expression(format!(
                    "status must be succeeded or failed, not {other:?}"
                )));
            }
        };
        Ok(End {
            outcome,
            message: text(&self.message, "message", scope)?.unwrap_or_default(),
        })
    }
}

impl End {
    /// The node's output.
    pub(crate) fn output(&self) -> Value {
        let status = if self.outcome == Outcome::Failed {
            "failed"
        } else {
            "succeeded"
        };
        json!({ "status": status, "message": self.message })
    }

    /// The run's failure, when it ends as failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let failed = self.outcome == Outcome::Failed;
        failed.then(|| Failure {
            code: String::from("STOPPED"),
            message: self.message.clone(),
        })
    }
}
