//! What the language says of JSON values: their names in messages, their text, truth, equality and order.

use super::EvaluationError;
use super::limits::Budget;
use super::numbers::{Numeric, number_text};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// What messages call a value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value within text: null is empty, arrays and objects are compact JSON.
pub(super) fn text<'v>(value: &'v Value, budget: &Budget) -> Result<Cow<'v, str>, EvaluationError> {
    Ok(match value {
        Value::Null => Cow::Borrowed(""),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        Value::Number(number) => Cow::Owned(number_text(number)),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(_) | Value::Object(_) => {
            budget.spend_copy(value)?;
            Cow::Owned(value.to_string())
        }
    })
}

/// The start of a text, for messages.
pub(super) fn shown(text: &str) -> &str {
    const SHOWN: usize = 40;
    text.char_indices()
        .nth(SHOWN)
        .and_then(|(end, _)| text.get(..end))
        .unwrap_or(text)
}

/// Whether a condition holds: false, null, 0 and "" do not, everything else does.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Whether there is nothing in it: null, "", an array or object without elements.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Equality without coercion; the order of an object's fields does not matter.
pub(super) fn equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool, EvaluationError> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => {
            Numeric::of(left).compare(Numeric::of(right)) == Ordering::Equal
        }
        (Value::String(left), Value::String(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            budget.spend_bytes(left.len())?;
            left == right
        }
        (Value::Array(left), Value::Array(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right) {
                budget.spend(1)?;
                if !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(left), Value::Object(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (name, left) in left {
                budget.spend(1)?;
                match right.get(name) {
                    Some(right) if equal(left, right, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => false,
    })
}

/// The order of two numbers or two texts (by code point); `None` for anything else.
pub(super) fn order(
    left: &Value,
    right: &Value,
    budget: &Budget,
) -> Result<Option<Ordering>, EvaluationError> {
    Ok(match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(Numeric::of(left).compare(Numeric::of(right))),
        (Value::String(left), Value::String(right)) => {
            budget.spend_bytes(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        _ => None,
    })
}

/// A text that is the same for equal values and differs for others.
pub(super) fn identity(value: &Value, budget: &Budget) -> Result<String, EvaluationError> {
    budget.spend_copy(value)?;
    let mut text = String::new();
    write_identity(value, &mut text);
    Ok(text)
}

fn write_identity(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_identity(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, field) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_identity(field, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}
