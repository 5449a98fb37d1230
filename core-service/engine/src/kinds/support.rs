//! What several kinds need to read their parameters.

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions, Gather, Scope};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::params::ParamProblem;
use crate::scope::{ItemScope, NodeScope};

/// A parameter compiled; null when it is absent.
pub(super) fn compile_field(
    node: &Node,
    name: &str,
    functions: &dyn CustomFunctions,
) -> Result<CompiledValue, Vec<ParamProblem>> {
    let value = node.params.get(name).unwrap_or(&Value::Null);
    CompiledValue::compile(value, functions).map_err(|found| {
        let locate = |(path, error): (String, crate::expression::ParseError)| {
            ParamProblem::new(path, error.to_string()).under(name)
        };
        found.into_iter().map(locate).collect()
    })
}

/// A parameter that must give a list.
pub(super) fn list(value: &CompiledValue, name: &str, scope: &dyn Scope) -> Result<Vec<Value>, NodeError> {
    match value.evaluate(scope)? {
        Value::Array(items) => Ok(items),
        other => Err(NodeError::expression(format!(
            "{name} must be a list, not {}",
            type_name(&other)
        ))),
    }
}

/// The items of a list, each with what `by` gives for it; the item itself when there is none.
pub(super) fn keyed(
    items: &CompiledValue,
    by: &CompiledValue,
    scope: &dyn NodeScope,
) -> Result<Vec<(Value, Value)>, NodeError> {
    let items = list(items, "items", scope)?;
    let by_item = by.as_literal().is_some_and(Value::is_null);
    let mut keyed = Vec::with_capacity(items.len());
    let mut gather = Gather::default();
    for (index, item) in items.into_iter().enumerate() {
        let key = match by_item {
            true => Some(item.clone()),
            false => gather.pass(by.evaluate(&ItemScope::new(scope, &item, index)))?,
        };
        keyed.extend(key.map(|key| (key, item)));
    }
    gather.end()?;
    Ok(keyed)
}

/// A parameter that must give true or false, when it is there.
pub(super) fn boolean(
    value: &CompiledValue,
    name: &str,
    scope: &dyn Scope,
) -> Result<Option<bool>, NodeError> {
    match value.evaluate(scope)? {
        Value::Null => Ok(None),
        Value::Bool(given) => Ok(Some(given)),
        other => Err(NodeError::expression(format!(
            "{name} must be true or false, not {}",
            type_name(&other)
        ))),
    }
}

/// A parameter that must give text, when it is there.
pub(super) fn text(
    value: &CompiledValue,
    name: &str,
    scope: &dyn Scope,
) -> Result<Option<String>, NodeError> {
    match value.evaluate(scope)? {
        Value::Null => Ok(None),
        Value::String(given) => Ok(Some(given)),
        other => Err(NodeError::expression(format!(
            "{name} must be text, not {}",
            type_name(&other)
        ))),
    }
}

/// The output of kinds that give a list.
pub(super) fn items_output(items: Vec<Value>) -> Value {
    let count = items.len();
    json!({ "items": items, "count": count })
}

/// What a value is, for people.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
