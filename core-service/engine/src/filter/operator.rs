//! The operators of conditions.

use std::cmp::Ordering;

use serde_json::Value;

use crate::expression::compare_numbers;

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Equal, without coercion.
    Eq,
    /// Not equal.
    Neq,
    /// Greater: two numbers or two strings.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// A string contains a string, or an array an element.
    Contains,
    /// Neither.
    NotContains,
    /// A string starts with a string.
    StartsWith,
    /// A string ends with a string.
    EndsWith,
    /// A string matches a regular expression somewhere.
    Matches,
    /// An element of the array on the right.
    In,
    /// No element of it.
    NotIn,
    /// Null or missing.
    IsNull,
    /// Neither null nor missing.
    IsNotNull,
    /// Null, an empty string, an empty array or an empty object.
    IsEmpty,
    /// Anything else.
    IsNotEmpty,
    /// True.
    IsTrue,
    /// False.
    IsFalse,
}

impl Operator {
    /// All operators with the contract's words.
    pub const ALL: [(&'static str, Self); 19] = [
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("contains", Self::Contains),
        ("not_contains", Self::NotContains),
        ("starts_with", Self::StartsWith),
        ("ends_with", Self::EndsWith),
        ("matches", Self::Matches),
        ("in", Self::In),
        ("not_in", Self::NotIn),
        ("is_null", Self::IsNull),
        ("is_not_null", Self::IsNotNull),
        ("is_empty", Self::IsEmpty),
        ("is_not_empty", Self::IsNotEmpty),
        ("is_true", Self::IsTrue),
        ("is_false", Self::IsFalse),
    ];

    /// The operator of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, operator)| operator)
    }

    /// Whether it looks at the left operand only.
    pub fn is_unary(self) -> bool {
        matches!(
            self,
            Self::IsNull | Self::IsNotNull | Self::IsEmpty | Self::IsNotEmpty | Self::IsTrue | Self::IsFalse
        )
    }

    /// Whether the operands satisfy it. An ordering of operands that have none does not hold, and `matches` is the
    /// caller's, who has the pattern.
    pub(super) fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Eq => equal(left, right),
            Self::Neq => !equal(left, right),
            Self::Gt => order(left, right) == Some(Ordering::Greater),
            Self::Gte => order(left, right).is_some_and(Ordering::is_ge),
            Self::Lt => order(left, right) == Some(Ordering::Less),
            Self::Lte => order(left, right).is_some_and(Ordering::is_le),
            Self::Contains => contains(left, right),
            Self::NotContains => !contains(left, right),
            Self::StartsWith => {
                both_strings(left, right).is_some_and(|(text, start)| text.starts_with(start))
            }
            Self::EndsWith => both_strings(left, right).is_some_and(|(text, end)| text.ends_with(end)),
            Self::In => right.is_array() && contains(right, left),
            Self::NotIn => !(right.is_array() && contains(right, left)),
            Self::IsNull => left.is_null(),
            Self::IsNotNull => !left.is_null(),
            Self::IsEmpty => is_empty(left),
            Self::IsNotEmpty => !is_empty(left),
            Self::IsTrue => *left == Value::Bool(true),
            Self::IsFalse => *left == Value::Bool(false),
            Self::Matches => false,
        }
    }
}

/// Equality without coercion; integers and decimals are one type.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => left == right,
    }
}

/// The order of two numbers or two strings.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => Some(compare_numbers(a, b)),
        _ => None,
    }
}

fn contains(left: &Value, right: &Value) -> bool {
    match left {
        Value::Array(items) => items.iter().any(|item| equal(item, right)),
        Value::String(text) => right.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

pub(super) fn both_strings<'v>(left: &'v Value, right: &'v Value) -> Option<(&'v str, &'v str)> {
    left.as_str().zip(right.as_str())
}
