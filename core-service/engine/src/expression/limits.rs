//! The limits of the language and the budget that one evaluation spends.
//!
//! Work and memory share one budget of steps: evaluating a part of an expression costs a step, and so does
//! reading or producing each 64 bytes. That bounds the memory an evaluation can hold to some 64 MiB in the
//! very worst case, long before which a loop runs out of steps.

use super::EvaluationError;
use serde_json::Value;
use std::cell::Cell;

/// The longest template, in characters.
pub const MAX_CHARACTERS: usize = 10_000;
/// The deepest nesting of an expression.
pub const MAX_DEPTH: usize = 64;
/// The longest regular expression, in bytes: before its size is known, reading it takes some hundred times as many.
pub const MAX_PATTERN_BYTES: usize = 4 * 1024;
/// The most work one evaluation may do.
pub const MAX_STEPS: u64 = 1_000_000;
/// The largest text on the way and the largest result of one expression, in bytes.
pub const MAX_RESULT_BYTES: usize = 5 * 1024 * 1024;
/// The largest JSON value that a whole set of parameters may give, in bytes.
pub const MAX_PARAMETERS_BYTES: usize = 16 * 1024 * 1024;
/// The deepest nesting of a value: some room above the 64 levels a request may have, and below the 128 at
/// which JSON readers give up.
pub const MAX_VALUE_DEPTH: usize = 100;

/// What one value takes in memory, apart from the text in it.
const VALUE_BYTES: usize = size_of::<Value>();
/// How many bytes cost one step.
const BYTES_PER_STEP: usize = 64;

/// The steps that are left to an evaluation.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            steps: Cell::new(MAX_STEPS),
        }
    }

    /// Spends steps on work.
    pub(super) fn spend(&self, steps: usize) -> Result<(), EvaluationError> {
        match self.steps.get().checked_sub(steps as u64) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => {
                self.steps.set(0);
                Err(EvaluationError::new(format!(
                    "the expression needs more than {MAX_STEPS} steps; work on less data at a time"
                )))
            }
        }
    }

    /// Spends steps on reading or producing this many bytes.
    pub(super) fn spend_bytes(&self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend(bytes / BYTES_PER_STEP)
    }

    /// Spends steps on producing this many values.
    pub(super) fn spend_values(&self, count: usize) -> Result<(), EvaluationError> {
        self.spend_bytes(count.saturating_mul(VALUE_BYTES))
            .and_then(|()| self.spend(count))
    }

    /// Refuses a text of this many bytes when it is too long, and pays for it otherwise.
    pub(super) fn spend_text(&self, bytes: usize) -> Result<(), EvaluationError> {
        if bytes > MAX_RESULT_BYTES {
            return Err(too_large(MAX_RESULT_BYTES));
        }
        self.spend_bytes(bytes)
    }

    /// Refuses a text that would grow too long by this many bytes, and pays for them otherwise.
    pub(super) fn spend_growth(&self, length: usize, growth: usize) -> Result<(), EvaluationError> {
        if length.saturating_add(growth) > MAX_RESULT_BYTES {
            return Err(too_large(MAX_RESULT_BYTES));
        }
        self.spend_bytes(growth)
    }

    /// Pays for a copy of a value.
    pub(super) fn spend_copy(&self, value: &Value) -> Result<(), EvaluationError> {
        let mut size = Size { bytes: 0, values: 0 };
        size.add(value, 0)?;
        self.spend_bytes(size.bytes)?;
        self.spend_bytes(size.values.saturating_mul(VALUE_BYTES))
    }
}

/// Refuses a result that is too large or too deep, and gives its size: bytes of JSON text, roughly counted.
pub(super) fn check_result(value: &Value) -> Result<usize, EvaluationError> {
    // Punctuation and short literals take about four bytes a value besides its text.
    const PUNCTUATION: usize = 4;
    let mut size = Size { bytes: 0, values: 0 };
    size.add(value, 0)?;
    let bytes = size
        .bytes
        .saturating_add((size.values - 1).saturating_mul(PUNCTUATION));
    if bytes > MAX_RESULT_BYTES {
        Err(too_large(MAX_RESULT_BYTES))
    } else {
        Ok(bytes)
    }
}

/// A result above this many bytes.
pub(super) fn too_large(limit: usize) -> EvaluationError {
    let limit = limit / 1024 / 1024;
    EvaluationError::new(format!(
        "the result is larger than {limit} MiB; keep only the parts that are needed"
    ))
}

fn too_deep() -> EvaluationError {
    EvaluationError::new(format!(
        "the value is nested deeper than {MAX_VALUE_DEPTH} levels"
    ))
}

struct Size {
    bytes: usize,
    values: usize,
}

impl Size {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), EvaluationError> {
        if depth > MAX_VALUE_DEPTH {
            return Err(too_deep());
        }
        self.values += 1;
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => {
                for item in items {
                    self.add(item, depth + 1)?;
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.bytes += name.len();
                    self.add(field, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
}
