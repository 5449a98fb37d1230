//! One string of parameters, compiled.

use super::{CustomFunctions, EvaluationError, ParseError, Scope};
use serde_json::Value;

/// One string: a literal, a single `{{ … }}` (which gives a JSON value) or text mixed with some.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
}

impl Template {
    /// Compiles a string of parameters, filters or config.
    pub fn parse(text: &str, _functions: &dyn CustomFunctions) -> Result<Self, ParseError> {
        Ok(Self {
            text: text.to_owned(),
        })
    }

    /// Compiles the bare form that resolve-expression takes (`1`, `1.body`), or a `{{ … }}` template.
    pub fn parse_reference(text: &str, functions: &dyn CustomFunctions) -> Result<Self, ParseError> {
        Self::parse(text, functions)
    }

    /// Whether the string holds no expression, so that its value is always the same.
    pub fn is_literal(&self) -> bool {
        true
    }

    /// The ids of the nodes it reads, ascending, each once.
    pub fn node_references(&self) -> impl Iterator<Item = i64> {
        std::iter::empty()
    }

    /// The names of the `$vars` it reads, each once.
    pub fn variable_references(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    /// The names of the custom functions it calls, each once.
    pub fn custom_functions(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    /// The value: any JSON value of a single expression, else text.
    pub fn evaluate(&self, _scope: &dyn Scope) -> Result<Value, EvaluationError> {
        Ok(Value::String(self.text.clone()))
    }
}
