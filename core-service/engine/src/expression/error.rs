//! What can be wrong with a template: its text ([`ParseError`]) or its evaluation ([`EvaluationError`]).

use std::borrow::Cow;

/// A template that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {position})")]
pub struct ParseError {
    /// Where, in characters from the start of the whole string (not of the expression).
    pub position: usize,
    /// What is wrong and what would help.
    pub message: String,
}

/// An evaluation that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvaluationError {
    /// The code of the node's failure: `EXPRESSION_ERROR` unless a custom function says otherwise.
    pub code: Cow<'static, str>,
    /// What is wrong and what would help; inside a [`super::CompiledValue`] it starts with the path.
    pub message: String,
}

impl EvaluationError {
    /// The code of every failure that the language itself reports.
    pub const CODE: &'static str = "EXPRESSION_ERROR";
    /// Never recorded.
    const UNANSWERED: &'static str = "UNANSWERED";

    /// A failure of the expression itself.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(Self::CODE),
            message: message.into(),
        }
    }

    /// A failure with a code of its own, such as a custom function's `CODE_TIMEOUT`.
    pub fn with_code(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }

    /// A custom function was called whose answer is not there yet: the whole evaluation has to be repeated.
    pub fn unanswered() -> Self {
        Self::with_code(Self::UNANSWERED, "a custom function has not answered yet")
    }

    /// Whether it is [`EvaluationError::unanswered`].
    pub fn is_unanswered(&self) -> bool {
        self.code == Self::UNANSWERED
    }

    /// Says where in a larger value the failing expression stands.
    pub(super) fn at(mut self, path: &str) -> Self {
        if !path.is_empty() {
            self.message = format!("{path}: {}", self.message);
        }
        self
    }
}
