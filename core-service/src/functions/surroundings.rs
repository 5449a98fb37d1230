//! The surroundings of runs, with custom functions.

use std::sync::Arc;

use engine::expression::{CustomFunctions, EvaluationError};
use engine::graph::FrozenFunction;
use serde_json::Value;

use super::known::Frozen;
use crate::nodes::BoxFuture;
use crate::runtime::{FunctionAnswer, FunctionCall, Surroundings, SurroundingsError, SurroundingsSource};
use crate::sandbox::{Call, Form, Sandbox};

/// How long a call may take, in milliseconds.
pub const LIMIT_MS: u64 = 1_000;

/// Adds custom functions to the surroundings of another source. Runs whose graph froze none get the other's as they
/// are.
pub struct WithFunctions {
    sandbox: Sandbox,
    others: Arc<dyn SurroundingsSource>,
}

impl WithFunctions {
    /// Functions run in this sandbox, and all the rest from `others`.
    pub fn new(sandbox: Sandbox, others: Arc<dyn SurroundingsSource>) -> Self {
        Self { sandbox, others }
    }
}

impl SurroundingsSource for WithFunctions {
    fn load<'a>(
        &'a self,
        organization_id: &'a str,
        workflow_id: &'a str,
        functions: &'a Arc<[FrozenFunction]>,
        reads_variables: bool,
    ) -> BoxFuture<'a, Result<Arc<dyn Surroundings>, SurroundingsError>> {
        let others = self
            .others
            .load(organization_id, workflow_id, functions, reads_variables);
        if functions.is_empty() {
            return others;
        }
        Box::pin(async move {
            Ok(Arc::new(Reach {
                sandbox: self.sandbox.clone(),
                organization_id: organization_id.to_owned(),
                functions: Arc::clone(functions),
                others: others.await?,
            }) as Arc<dyn Surroundings>)
        })
    }

    fn functions(&self, frozen: &[FrozenFunction]) -> Box<dyn CustomFunctions> {
        Box::new(Frozen(frozen.to_vec()))
    }
}

struct Reach {
    sandbox: Sandbox,
    organization_id: String,
    functions: Arc<[FrozenFunction]>,
    others: Arc<dyn Surroundings>,
}

impl Surroundings for Reach {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.others.variable(name)
    }

    fn call_all(&self, calls: Vec<FunctionCall>) -> BoxFuture<'_, Vec<FunctionAnswer>> {
        Box::pin(call_all(
            &self.sandbox,
            &self.organization_id,
            &self.functions,
            calls,
        ))
    }

    fn mask(&self, output: &mut Value) {
        self.others.mask(output);
    }

    fn mask_text(&self, message: &mut String) {
        self.others.mask_text(message);
    }
}

/// Calls functions for an organization, in one go. Gives an answer for each call, in order.
pub async fn call_all(
    sandbox: &Sandbox,
    organization_id: &str,
    functions: &[FrozenFunction],
    calls: Vec<FunctionCall>,
) -> Vec<FunctionAnswer> {
    let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
    let known = calls.into_iter().map(|call| {
        let function = functions.iter().find(|function| function.name == call.name)?;
        Some(call_of(function, call.arguments))
    });
    let Some(known) = known.collect::<Option<Vec<Call>>>() else {
        let unknown = || EvaluationError::new("a function is called that was not frozen with the graph");
        return names.iter().map(|_| Err(unknown())).collect();
    };
    match sandbox.call_all(organization_id, &known).await {
        Ok(outcomes) => {
            let named = names.iter().zip(outcomes);
            let answer = |(name, outcome): (&String, crate::sandbox::Outcome)| {
                outcome.result.map_err(|failure| {
                    EvaluationError::with_code(failure.kind.code(), format!("{name}: {}", failure.message))
                })
            };
            named.map(answer).collect()
        }
        Err(error) => {
            let failed = || EvaluationError::with_code("ENGINE_ERROR", error.to_string());
            names.iter().map(|_| Err(failed())).collect()
        }
    }
}

/// The call of a function.
pub fn call_of(function: &FrozenFunction, arguments: Vec<Value>) -> Call {
    Call {
        code: function.code.clone(),
        form: Form::Function,
        parameters: function
            .parameters
            .iter()
            .map(|parameter| parameter.name.clone())
            .collect(),
        arguments,
        limit_ms: LIMIT_MS,
    }
}
