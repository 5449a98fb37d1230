//! Requests of native kinds: how executors read a node's evaluated parameters, and how they fail.

use contract::v1::ErrorReason;
use engine::failure::NodeError;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Execution;
use super::patient::unreachable;
use crate::store::StoreError;

/// A request by its parameters. A null counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Request<'a>(&'a Map<String, Value>);

impl<'a> Request<'a> {
    pub(super) fn of(execution: &'a Execution) -> Result<Self, NodeError> {
        let params = execution.request.as_object();
        params
            .map(Self)
            .ok_or_else(|| NodeError::expression("the parameters must be an object"))
    }

    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn required(self, name: &str) -> Result<&'a Value, NodeError> {
        self.get(name).ok_or_else(|| misfit(name, "given"))
    }

    pub(super) fn text(self, name: &str) -> Result<&'a str, NodeError> {
        let text = self.get(name).and_then(Value::as_str);
        text.ok_or_else(|| misfit(name, "text"))
    }

    pub(super) fn object(self, name: &str) -> Result<&'a Map<String, Value>, NodeError> {
        let object = self.get(name).and_then(Value::as_object);
        object.ok_or_else(|| misfit(name, "an object"))
    }
}

/// A parameter that evaluated to something that its kind cannot use.
pub(super) fn misfit(name: &str, expected: &str) -> NodeError {
    NodeError::expression(format!("{name} must be {expected}"))
}

/// A failure under a code that the API uses for the same.
pub(super) fn failure(reason: ErrorReason, message: impl Into<String>) -> NodeError {
    NodeError::new(reason.row().name, message)
}

/// What the store cannot do for a node, whose executor must be [`super::patient::Patient`]. The cause is logged.
pub(super) fn store_failure(error: StoreError) -> NodeError {
    match error {
        StoreError::NotFound(noun) => failure(
            ErrorReason::NotFound,
            format!("there is no such {noun} in the organization"),
        ),
        error if error.is_temporary() => {
            tracing::warn!(%error, "a node waits for the database");
            unreachable()
        }
        error => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a node could not use the database"
            );
            NodeError::new(
                "ENGINE_ERROR",
                "the service's own database did not do what was asked",
            )
        }
    }
}

/// Tells whether two requests are the same.
pub(super) fn request_hash(request: &Value) -> [u8; 32] {
    Sha256::digest(engine::canonical::to_string(request)).into()
}
