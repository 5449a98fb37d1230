//! What runs reach outside their own state: variables, custom functions, and the secrets to be masked.
//!
//! The seam to whoever keeps them. It is asked once when a run is taken up, so an implementation caches.

use std::sync::Arc;

use engine::expression::{CustomFunctions, EvaluationError, NoCustomFunctions};
use engine::graph::FrozenFunction;
use serde_json::Value;

use super::calls::{FunctionAnswer, FunctionCall};
use crate::nodes::BoxFuture;
use crate::secret::SecretError;
use crate::store::StoreError;

/// What the runs of one workflow reach. See [`engine::scope::Environment`].
pub trait Surroundings: Send + Sync {
    /// `$vars.NAME`, secrets included.
    fn variable(&self, name: &str) -> Option<&Value>;
    /// Calls custom functions that do not depend on each other. Gives an answer for each, in order.
    fn call_all(&self, calls: Vec<FunctionCall>) -> BoxFuture<'_, Vec<FunctionAnswer>>;
    /// Replaces secret values inside an output before it is recorded.
    fn mask(&self, output: &mut Value);
    /// Replaces secret values inside a message before it is recorded.
    fn mask_text(&self, message: &mut String);
}

/// Where surroundings come from.
pub trait SurroundingsSource: Send + Sync {
    /// The surroundings of a workflow's runs; `functions` are the custom functions its graph froze, `reads_variables`
    /// whether its templates may ask for any variable.
    fn load<'a>(
        &'a self,
        organization_id: &'a str,
        workflow_id: &'a str,
        functions: &'a Arc<[FrozenFunction]>,
        reads_variables: bool,
    ) -> BoxFuture<'a, Result<Arc<dyn Surroundings>, SurroundingsError>>;

    /// The custom functions that the graph's templates may call, asked while it is compiled.
    fn functions(&self, frozen: &[FrozenFunction]) -> Box<dyn CustomFunctions>;
}

/// Surroundings that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SurroundingsError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A secret.
    #[error(transparent)]
    Secret(#[from] Arc<SecretError>),
}

impl SurroundingsError {
    /// Whether the same call may succeed later. A master key that is missing may be brought.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => error.is_temporary(),
            Self::Secret(error) => match &**error {
                SecretError::Store(error) => error.is_temporary(),
                error => !matches!(error, SecretError::Damaged),
            },
        }
    }
}

/// Neither variables nor custom functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn variable(&self, _name: &str) -> Option<&Value> {
        None
    }

    fn call_all(&self, calls: Vec<FunctionCall>) -> BoxFuture<'_, Vec<FunctionAnswer>> {
        let answer = |call: FunctionCall| {
            let message = format!("there is no function {}", call.name);
            Err(EvaluationError::new(message))
        };
        Box::pin(std::future::ready(calls.into_iter().map(answer).collect()))
    }

    fn mask(&self, _output: &mut Value) {}

    fn mask_text(&self, _message: &mut String) {}
}

impl SurroundingsSource for NoSurroundings {
    fn load<'a>(
        &'a self,
        _organization_id: &'a str,
        _workflow_id: &'a str,
        _functions: &'a Arc<[FrozenFunction]>,
        _reads_variables: bool,
    ) -> BoxFuture<'a, Result<Arc<dyn Surroundings>, SurroundingsError>> {
        Box::pin(async { Ok(Arc::new(Self) as Arc<dyn Surroundings>) })
    }

    fn functions(&self, _frozen: &[FrozenFunction]) -> Box<dyn CustomFunctions> {
        Box::new(NoCustomFunctions)
    }
}
