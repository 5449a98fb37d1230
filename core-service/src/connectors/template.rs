//! The templates of manifests: those of workflows, with other things to reach.

use engine::expression::{CompiledValue, CustomFunctions, EvaluationError, NoCustomFunctions, Root, Scope};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::clock;

/// What `$vars.NAME` may be in a manifest.
const NAMES: [&str; 3] = ["parameters", "connection", "response"];

/// A value of a manifest whose strings may hold `{{ … }}`.
pub(super) struct Template(CompiledValue);

/// A template that gives nothing usable.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl TemplateError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let compiled = CompiledValue::compile(&value, &NoCustomFunctions as &dyn CustomFunctions);
        let compiled = compiled.map_err(|problems| match problems.first() {
            Some((path, error)) => D::Error::custom(format!("{path} {error}")),
            None => D::Error::custom("a template cannot be read"),
        })?;
        if let Some(unknown) = compiled.variable_references().find(|name| !NAMES.contains(name)) {
            return Err(D::Error::custom(format!(
                "$vars.{unknown} is nothing in a manifest; there are $vars.{}",
                NAMES.join(", $vars.")
            )));
        }
        Ok(Self(compiled))
    }
}

impl Template {
    /// Its value.
    pub(super) fn evaluate(&self, reach: &Reach<'_>) -> Result<Value, TemplateError> {
        self.0
            .evaluate(reach)
            .map_err(|error| TemplateError(error.message))
    }

    /// Its value, which must be text; empty for null.
    pub(super) fn text(&self, reach: &Reach<'_>) -> Result<String, TemplateError> {
        match self.evaluate(reach)? {
            Value::String(text) => Ok(text),
            Value::Null => Ok(String::new()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Array(_) | Value::Object(_) => Err(TemplateError::new("a text is an object or a list")),
        }
    }
}

/// What a manifest's templates reach.
pub(super) struct Reach<'a> {
    pub(super) parameters: Option<&'a Value>,
    pub(super) connection: Option<&'a Value>,
    pub(super) response: Option<&'a Value>,
    pub(super) item: Option<&'a Value>,
    now: i64,
}

impl Reach<'_> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            parameters: None,
            connection: None,
            response: None,
            item: None,
            now: clock::now_ms(),
        }
    }
}

impl Scope for Reach<'_> {
    fn node(&self, _id: i64) -> Option<&Value> {
        None
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Item => self.item,
            Root::Run | Root::Workflow | Root::Error => None,
        }
    }

    fn index(&self) -> Option<i64> {
        None
    }

    fn now(&self) -> i64 {
        self.now
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        match name {
            "parameters" => self.parameters,
            "connection" => self.connection,
            "response" => self.response,
            _ => None,
        }
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(format!("there is no function {name}")))
    }
}
