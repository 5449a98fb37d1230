//! Where items stand in the order in which they came to be, as a trigger's `order` says.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::template::TemplateError;

/// The most bytes of a text.
const LONGEST: usize = 1_000;

/// A number or a text that grows from one item to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order(Value);

impl Order {
    /// Reads what `order` gave; nothing for null and the empty text.
    ///
    /// # Errors
    /// When it is nothing that grows.
    pub(super) fn of(value: Value) -> Result<Option<Self>, TemplateError> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if text.len() > LONGEST => {
                let message = format!("an item's order is a text of more than {LONGEST} bytes");
                Err(TemplateError::new(message))
            }
            Value::Number(_) | Value::String(_) => Ok(Some(Self(value))),
            _ => Err(TemplateError::new(
                "an item's order is neither a number nor a text",
            )),
        }
    }

    /// Reads what [`Order::write`] wrote.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let value = serde_json::from_slice(bytes).ok()?;
        Self::of(value).ok().flatten()
    }

    /// A text of it, to be kept.
    pub fn write(&self) -> String {
        self.0.to_string()
    }

    /// Whether it comes before another. A number and a text have no order.
    pub fn is_below(&self, other: &Self) -> bool {
        let ordering = match (&self.0, &other.0) {
            (Value::Number(one), Value::Number(other)) => numbers(one, other),
            (Value::String(one), Value::String(other)) => Some(texts(one, other)),
            _ => None,
        };
        ordering == Some(Ordering::Less)
    }
}

fn numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Moments by their time, whatever their time zones; other texts by their parts.
fn texts(one: &str, other: &str) -> Ordering {
    match (one.parse::<Timestamp>(), other.parse::<Timestamp>()) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => parts(one).cmp(parts(other)),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// A number, first by its length. There is no largest one.
    Digits(usize, &'a str),
    Other(&'a str),
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let chunks = text
        .as_bytes()
        .chunk_by(move |one, next| is_digit(one) == is_digit(next));
    let mut from = 0;
    chunks.filter_map(move |chunk| {
        let part = text.get(from..from + chunk.len())?;
        from += chunk.len();
        Some(match chunk.first().is_some_and(is_digit) {
            true => {
                let digits = part.trim_start_matches('0');
                Part::Digits(digits.len(), digits)
            }
            false => Part::Other(part),
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn order(value: Value) -> Order {
        Order::of(value).unwrap().unwrap()
    }

    #[test]
    fn what_grows_is_compared_as_what_it_is() {
        for (lower, higher) in [
            (json!(9), json!(10)),
            (json!(-2), json!(1.5)),
            (json!(9_007_199_254_740_992_i64), json!(9_007_199_254_740_993_i64)),
            (json!("9"), json!("10")),
            (json!("1234567890123456789"), json!("1234567890123456790")),
            (json!("1700000000.000200"), json!("1700000000.000300")),
            (json!("7-99"), json!("7-100")),
            (json!("7-100"), json!("8-1")),
            (json!("2026-01-31"), json!("2026-02-01")),
            (json!("2026-01-31 12:00:00"), json!("2026-01-31 12:00:00.5")),
            (json!("2026-01-31T12:00:00Z"), json!("2026-01-31T12:00:00.5Z")),
            (
                json!("2026-01-31T12:00:00.000+0200"),
                json!("2026-01-31T11:00:00.000+0000"),
            ),
        ] {
            assert!(
                order(lower.clone()).is_below(&order(higher.clone())),
                "{lower} < {higher}"
            );
            assert!(
                !order(higher.clone()).is_below(&order(lower.clone())),
                "{higher} > {lower}"
            );
            assert!(!order(lower.clone()).is_below(&order(lower)));
        }
        assert!(
            !order(json!(1)).is_below(&order(json!("2"))),
            "they cannot be compared"
        );
    }

    #[test]
    fn what_does_not_grow_is_refused_and_what_is_kept_is_read_again() {
        for refused in [
            json!([1]),
            json!({ "a": 1 }),
            json!(true),
            json!("x".repeat(1_001)),
        ] {
            assert!(Order::of(refused).is_err());
        }
        for none in [json!(null), json!("")] {
            assert_eq!(Order::of(none).unwrap(), None);
        }
        for kept in [json!(7), json!("ä \"7\"")] {
            let kept = order(kept);
            assert_eq!(Order::read(kept.write().as_bytes()), Some(kept));
        }
    }
}
