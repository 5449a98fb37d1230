//! Why a node failed, on its way to becoming a recorded [`Failure`].

use std::borrow::Cow;

use serde_json::Value;

use crate::event::Failure;
use crate::expression::EvaluationError;

/// A failed attempt at a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct NodeError {
    /// A code of the contract's table, or a connector's own.
    pub code: Cow<'static, str>,
    /// One sentence for people.
    pub message: String,
    /// Milliseconds the other side asked to wait before the next attempt.
    pub retry_after_ms: Option<u64>,
    /// Whether another attempt may succeed and does no harm: kinds that try again by themselves do so only then.
    pub temporary: bool,
}

impl NodeError {
    /// The code of an attempt that took too long.
    pub const TIMEOUT: &'static str = "NODE_TIMEOUT";

    /// A failure with a code and a sentence.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            retry_after_ms: None,
            temporary: false,
        }
    }

    /// A parameter that evaluated to something the kind cannot use.
    pub fn expression(message: impl Into<String>) -> Self {
        Self::new(EvaluationError::CODE, message)
    }

    /// The attempt took longer than the node's time-out.
    pub fn timeout(timeout_ms: u64) -> Self {
        Self::new(
            "NODE_TIMEOUT",
            format!("the node did not finish within {timeout_ms} ms"),
        )
    }

    /// The recorded form.
    pub fn into_failure(self) -> Failure {
        Failure {
            code: self.code.into_owned(),
            message: self.message,
        }
    }
}

/// A value as messages show it: the beginning of its JSON.
pub(crate) fn brief(value: &Value) -> String {
    const SHOWN: usize = 60;
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl From<EvaluationError> for NodeError {
    fn from(error: EvaluationError) -> Self {
        Self::new(error.code, error.message)
    }
}
