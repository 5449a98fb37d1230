//! The templates of manifests: those of workflows, with other names to reach.

use std::borrow::Cow;

use engine::expression::{CompiledValue, CustomFunctions, EvaluationError, Root, Scope};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::clock;

/// What the templates of manifests may name. What each of them means stands at [`Reach`].
const NAMES: [&str; 5] = ["parameters", "connection", "response", "webhook", "request"];

/// A value of a manifest whose strings may hold `{{ … }}`.
pub struct Template {
    compiled: CompiledValue,
    /// As it is written: what it builds itself, and what it only passes on.
    written: Value,
}

/// A template that gives nothing usable.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

/// The names that templates use without `$vars.`.
struct Names;

impl CustomFunctions for Names {
    fn parameter_count(&self, _name: &str) -> Option<(usize, usize)> {
        None
    }

    fn is_variable(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }
}

impl TemplateError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::compile(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Template {
    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Any value; its strings may hold {{ expressions }}." })
    }
}

impl Template {
    /// Compiles a value.
    ///
    /// # Errors
    /// With a sentence about the first template that cannot be read.
    pub(super) fn compile(written: Value) -> Result<Self, String> {
        let compiled = CompiledValue::compile(&written, &Names).map_err(|problems| {
            let first = problems.into_iter().next();
            first.map_or_else(
                || "a template cannot be read".to_owned(),
                |(path, error)| match path.is_empty() {
                    true => error.to_string(),
                    false => format!("{path}: {error}"),
                },
            )
        })?;
        if let Some(unknown) = compiled.variable_references().find(|name| !NAMES.contains(name)) {
            let known = NAMES.join(", ");
            return Err(format!("{unknown} is nothing in a manifest; there are {known}"));
        }
        Ok(Self { compiled, written })
    }

    /// Its value.
    pub(super) fn evaluate(&self, reach: &Reach<'_>) -> Result<Value, TemplateError> {
        let value = self.compiled.evaluate(reach);
        value.map_err(|error| TemplateError(error.message))
    }

    /// Its value without what the manifest writes and nobody gave: members and elements that are null, and objects that
    /// are empty because of that. What a template passes on as a whole stays as it is.
    pub(super) fn evaluate_given(&self, reach: &Reach<'_>) -> Result<Value, TemplateError> {
        let mut value = self.evaluate(reach)?;
        prune(&self.written, &mut value);
        Ok(value)
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

    /// Whether it holds: true, and nothing else.
    pub(super) fn holds(&self, reach: &Reach<'_>) -> Result<bool, TemplateError> {
        Ok(self.evaluate(reach)? == Value::Bool(true))
    }

    /// As the manifest writes it.
    pub(super) fn written(&self) -> &Value {
        &self.written
    }

    /// The text that the manifest writes, expressions included.
    pub(super) fn written_text(&self) -> Option<&str> {
        self.written.as_str()
    }

    /// Whether it holds no expression.
    pub(super) fn is_literal(&self) -> bool {
        self.compiled.as_literal().is_some()
    }

    /// The text, when it holds no expression.
    pub(super) fn literal(&self) -> Option<&str> {
        self.compiled.as_literal().and_then(Value::as_str)
    }

    /// The whole number, when it is one and no expression.
    pub(super) fn literal_number(&self) -> Option<i64> {
        self.compiled.as_literal().and_then(Value::as_i64)
    }

    /// The names it reaches for.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.compiled.variable_references()
    }

    /// The fields it reaches for, each after the name it is a field of.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.compiled.variable_fields()
    }
}

fn prune(written: &Value, value: &mut Value) {
    match (written, value) {
        (Value::Object(written), Value::Object(value)) => {
            for (name, part) in written {
                let Some(found) = value.get_mut(name) else {
                    continue;
                };
                prune(part, found);
                if is_void(part, found) {
                    value.shift_remove(name);
                }
            }
        }
        (Value::Array(written), Value::Array(value)) if written.len() == value.len() => {
            let mut parts = written.iter();
            value.retain_mut(|found| {
                parts.next().is_none_or(|part| {
                    prune(part, found);
                    !is_void(part, found)
                })
            });
        }
        _ => {}
    }
}

fn is_void(written: &Value, value: &Value) -> bool {
    match (written, value) {
        (_, Value::Null) => true,
        (Value::Object(written), Value::Object(value)) => !written.is_empty() && value.is_empty(),
        _ => false,
    }
}

/// What a manifest's templates reach.
#[derive(Clone, Copy)]
pub(super) struct Reach<'a> {
    /// The values of the module's fields.
    pub(super) parameters: Option<&'a Value>,
    /// The values of the connection's fields; secret ones only where the connection itself applies them.
    pub(super) connection: Option<&'a Value>,
    /// What the service answered: `status`, `headers` by lower-case name, `body`.
    pub(super) response: Option<&'a Value>,
    /// Of a webhook trigger: `url`, `secret`, and what `keep` kept.
    pub(super) webhook: Option<&'a Value>,
    /// What the service delivered: `method`, `query`, `headers`, `body`, and `text`, the body as it came.
    pub(super) request: Option<&'a Value>,
    /// One of a list.
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
            webhook: None,
            request: None,
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
            "webhook" => self.webhook,
            "request" => self.request,
            _ => None,
        }
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(format!("there is no function {name}")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_gave_is_left_out() {
        let parameters = json!({ "title": "T", "labels": null, "fields": { "a": null }, "city": null });
        let mut reach = Reach::new();
        reach.parameters = Some(&parameters);
        let template = Template::compile(json!({
            "title": "{{parameters.title}}",
            "labels": "{{parameters.labels}}",
            "fields": "{{parameters.fields}}",
            "address": { "city": "{{parameters.city}}" },
            "parts": ["{{parameters.city}}", { "x": "{{parameters.title}}" }],
            "empty": {}
        }));
        assert_eq!(
            template.unwrap().evaluate_given(&reach).unwrap(),
            json!({ "title": "T", "fields": { "a": null }, "parts": [{ "x": "T" }], "empty": {} })
        );
    }

    #[test]
    fn unknown_names_are_refused() {
        let refused = |text: &str| Template::compile(json!({ "a": text })).err().unwrap();
        assert!(refused("{{secrets.x}}").contains("secrets"));
        assert!(refused("{{$vars.secrets.x}}").contains("secrets"));
        assert!(refused("{{1 +}}").starts_with("a: "));
    }
}
