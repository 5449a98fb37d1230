//! `variable_set`: sets a variable by its name.

use std::sync::Arc;

use contract::v1::{self, ErrorReason};
use contract::validation::Validate as _;
use engine::expression::CustomFunctions;
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, Kind, NodeSpec};
use engine::params::{FieldSpec, FieldType, ParamProblem};
use serde_json::{Value, json};

use super::parameters;
use super::patient::Patient;
use super::request::{Request, failure, store_failure};
use super::{BoxFuture, Executed, Execution, Executor, Registry};
use crate::secret::SecretError;
use crate::store::{Actor, Effect};
use crate::variables::{Owner, SetVariableError, Setting, Variables};

pub(super) fn register(registry: &mut Registry, variables: &Variables) {
    let variables = variables.clone();
    registry.add_executed(VariableSet, Arc::new(Patient(Setter { variables })));
}

struct VariableSet;

impl Kind for VariableSet {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "variable_set",
            "Set variable",
            "Sets the variable that $vars.NAME gives. A secret stays one. One that does not exist is made, without being \
             secret: of the workflow's team, of the organization when that is the default team. Runs that go on know the \
             new value once they have waited, others from their start on. Output: name, updatedAt. Fails with \
             VALIDATION_ERROR when the name or the value cannot be a variable's.",
        )
        .with_shape([
            FieldSpec::required(
                "name",
                FieldType::String,
                "Letters, digits and underscores, not a digit first.",
            ),
            FieldSpec::required(
                "value",
                FieldType::Any,
                "The value: text as it is, anything else as JSON. It must not be blank.",
            ),
        ])
        .with_example(json!({ "name": "LAST_ORDER", "value": "{{1.body.id}}" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        parameters::compile(node, functions)
    }
}

struct Setter {
    variables: Variables,
}

impl Executor for Setter {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let request = Request::of(&execution)?;
            let (name, value) = checked(request)?;
            let setting = Setting {
                organization_id: &execution.organization_id,
                owner: Owner::Workflow(&execution.workflow_id),
                name: &name,
                value: Some(&value),
                is_secret: false,
            };
            let effect = Effect {
                key: &execution.idempotency_key(),
                run_id: &execution.run_id,
                started_at: execution.started_at_ms,
                // The value may be a secret. To set it again does no harm when a person lets the node run again.
                request_hash: None,
            };
            let set = self
                .variables
                .set(&Actor::default(), setting, Some(&effect))
                .await
                .map_err(refused)?;
            Ok(Executed::Output(
                json!({ "name": name, "updatedAt": set.updated_at }),
            ))
        })
    }
}

/// Name and value by the rules that the API has for them.
fn checked(request: Request<'_>) -> Result<(String, String), NodeError> {
    let name = request.text("name")?.to_owned();
    let value = match request.required("value")? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let message = v1::SetVariableRequest {
        id: name,
        value: Some(value),
        ..v1::SetVariableRequest::default()
    };
    let field = |path: &str| if path == "id" { "name" } else { "value" };
    let mut problems: Vec<String> = message
        .violations()
        .iter()
        .map(|violation| format!("{} {}", field(&violation.path), violation.message))
        .collect();
    let value = message.value.unwrap_or_default();
    if value.trim().is_empty() {
        problems.push("value must not be blank".to_owned());
    }
    match problems.as_slice() {
        [] => Ok((message.id, value)),
        problems => Err(failure(ErrorReason::ValidationError, problems.join("; "))),
    }
}

fn refused(error: SetVariableError) -> NodeError {
    match error {
        SetVariableError::MissingValue | SetVariableError::ShortSecret => {
            failure(ErrorReason::ValidationError, format!("value {error}"))
        }
        SetVariableError::Contended => failure(ErrorReason::Conflict, error.to_string()),
        SetVariableError::Store(error) | SetVariableError::Secret(SecretError::Store(error)) => {
            store_failure(error)
        }
        SetVariableError::Secret(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a variable could not be sealed"
            );
            NodeError::new("ENGINE_ERROR", "the service could not seal the value")
        }
    }
}
