//! What is said between this process and its workers.
//!
//! Values cross as JSON text: `V` is a value on the side that has it, and raw text on the side that passes it on.

use engine::event::LogLine;
use serde::{Deserialize, Serialize};

/// Most bytes of a request: code and everything it sees, as JSON.
pub const MAX_REQUEST: usize = 8 << 20;
/// Most bytes of a result, as JSON.
pub const MAX_RESULT: usize = 5 << 20;
/// Most bytes that are said of a call: a result, and console output with every character escaped.
pub(super) const MAX_SAID: usize = MAX_RESULT + (1 << 20);

/// A worker's first word: what of its confinement this kernel does not give.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) missing: Vec<String>,
}

/// Calls to be made one after the other. Of each is told what it writes, and last how it ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<C> {
    pub(super) calls: Vec<C>,
}

/// A call of code.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call<V = serde_json::Value> {
    /// JavaScript.
    pub code: String,
    /// What the code is.
    pub form: Form,
    /// What the arguments are called.
    pub parameters: Vec<String>,
    /// The arguments, in the order of the parameters. One that is left out is undefined.
    pub arguments: Vec<V>,
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// What code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// The body of an async function.
    AsyncBody,
    /// The body of a function, or a whole function expression.
    Function,
}

/// What a worker says of the call that it runs. Lines are said as they are written: a worker that is killed has said them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Said<V> {
    Wrote(LogLine),
    Ended(Answer<V>),
}

/// What came of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer<V> {
    pub(super) end: End<V>,
    /// Runs no further call: its memory was exhausted.
    pub(super) is_last: bool,
}

/// How a call ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum End<V> {
    Returned(V),
    Failed(Failure),
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// One sentence for people, with the place in the code where it is known.
    pub message: String,
}

/// What kind of failure a call ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// An exception, or a result that is no JSON.
    Error,
    /// It took longer than it may.
    Timeout,
    /// It needed more memory than it may.
    Memory,
}

impl FailureKind {
    /// The code of the contract's table.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Error => "CODE_ERROR",
            Self::Timeout => "CODE_TIMEOUT",
            Self::Memory => "CODE_MEMORY",
        }
    }
}

impl Failure {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Error,
            message: message.into(),
        }
    }

    pub(super) fn timeout(limit_ms: u64) -> Self {
        Self {
            kind: FailureKind::Timeout,
            message: format!("the code did not finish within {limit_ms} ms"),
        }
    }

    pub(super) fn memory() -> Self {
        Self {
            kind: FailureKind::Memory,
            message: "the code needed more memory than it may have (64 MiB)".to_owned(),
        }
    }

    /// Only whoever runs the machine kills a worker, or the machine itself when it has no memory left.
    pub(super) fn killed() -> Self {
        Self {
            kind: FailureKind::Memory,
            message: "the process that ran the code was killed from outside, as happens when the machine has no memory \
                      left"
                .to_owned(),
        }
    }

    pub(super) fn crashed() -> Self {
        Self::error("the code made the JavaScript engine fail")
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What it returned.
    pub result: Result<serde_json::Value, Failure>,
    /// The process that ran it; nothing when none did.
    pub process_id: Option<u32>,
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            process_id: None,
        }
    }
}
