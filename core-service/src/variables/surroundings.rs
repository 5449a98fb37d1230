//! The surroundings of runs, with variables.

use std::sync::Arc;

use engine::expression::CustomFunctions;
use engine::graph::FrozenFunction;
use serde_json::Value;

use super::{VariableSet, Variables};
use crate::nodes::BoxFuture;
use crate::runtime::{FunctionAnswer, FunctionCall, Surroundings, SurroundingsError, SurroundingsSource};

/// Adds variables to the surroundings of another source. Runs whose plan reads none get the other's as they are.
pub struct WithVariables {
    variables: Variables,
    others: Arc<dyn SurroundingsSource>,
}

impl WithVariables {
    /// These variables, and all the rest from `others`.
    pub fn new(variables: Variables, others: Arc<dyn SurroundingsSource>) -> Self {
        Self { variables, others }
    }
}

impl SurroundingsSource for WithVariables {
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
        if !reads_variables {
            return others;
        }
        Box::pin(async move {
            let variables = self.variables.of_workflow(organization_id, workflow_id).await?;
            let others = others.await?;
            Ok(Arc::new(Reach { variables, others }) as Arc<dyn Surroundings>)
        })
    }

    fn functions(&self, frozen: &[FrozenFunction]) -> Box<dyn CustomFunctions> {
        self.others.functions(frozen)
    }
}

struct Reach {
    variables: Arc<VariableSet>,
    others: Arc<dyn Surroundings>,
}

impl Surroundings for Reach {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn call_all(&self, calls: Vec<FunctionCall>) -> BoxFuture<'_, Vec<FunctionAnswer>> {
        self.others.call_all(calls)
    }

    fn mask(&self, output: &mut Value) {
        self.variables.mask(output);
        self.others.mask(output);
    }

    fn mask_text(&self, message: &mut String) {
        self.variables.mask_text(message);
        self.others.mask_text(message);
    }
}
