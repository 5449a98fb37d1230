//! Values: what a column accepts, the one form it keeps them in, and which values follow a change of type.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Number, Value};

use super::ColumnType;

/// The greatest magnitude up to which every whole decimal is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value as a column of this type keeps it. Null is no value and never gets here.
///
/// # Errors
/// What the value must be.
pub fn accept(column_type: ColumnType, value: &Value) -> Result<Value, &'static str> {
    match column_type {
        ColumnType::Text => value.is_string().then(|| value.clone()).ok_or("must be a text"),
        ColumnType::Number => value.is_number().then(|| value.clone()).ok_or("must be a number"),
        ColumnType::Integer => integer(value)
            .map(Value::from)
            .ok_or("must be a whole number of 64 bits"),
        ColumnType::Boolean => value
            .is_boolean()
            .then(|| value.clone())
            .ok_or("must be true or false"),
        ColumnType::Date => date(value)
            .map(|date| Value::from(date.to_string()))
            .ok_or("must be a day such as 2026-01-31"),
        ColumnType::Datetime => instant(value)
            .map(|instant| Value::from(instant.to_string()))
            .ok_or("must be an instant such as 2026-01-31T09:00:00Z, or epoch milliseconds"),
        ColumnType::Json if value.is_null() => Err("must not be null"),
        ColumnType::Json => Ok(value.clone()),
    }
}

/// The stored value as a column of another type keeps it, when nothing of it is lost: what the type accepts as it is,
/// numbers and booleans from and to their text, and a day from and to its first instant in UTC.
#[must_use]
pub fn convert(value: &Value, to: ColumnType) -> Option<Value> {
    let accepted = accept(to, value).ok();
    accepted.or_else(|| match (to, value) {
        (ColumnType::Text, Value::Number(_) | Value::Bool(_)) => Some(Value::from(value.to_string())),
        (ColumnType::Number | ColumnType::Integer, Value::String(text)) => {
            let number: Number = serde_json::from_str(text).ok().filter(|_| text.trim() == text)?;
            accept(to, &Value::Number(number)).ok()
        }
        (ColumnType::Boolean, Value::String(text)) => text.parse::<bool>().ok().map(Value::from),
        (ColumnType::Date, Value::String(text)) => {
            let day = text.strip_suffix("T00:00:00Z")?;
            accept(to, &Value::from(day)).ok()
        }
        (ColumnType::Datetime, Value::String(text)) => {
            let day = date(&Value::from(text.as_str()))?;
            accept(to, &Value::from(format!("{day}T00:00:00Z"))).ok()
        }
        _ => None,
    })
}

/// A whole number of 64 bits, however it is spelled.
pub(super) fn integer(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else { return None };
    number.as_i64().or_else(|| {
        let decimal = number.as_f64()?;
        let whole = decimal.fract() == 0.0 && decimal.abs() <= EXACT;
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        whole.then_some(decimal as i64)
    })
}

/// A day in its one spelling.
pub(super) fn date(value: &Value) -> Option<Date> {
    let text = value.as_str()?;
    let date: Date = text.parse().ok()?;
    (date.to_string() == text).then_some(date)
}

/// An instant, from ISO-8601 with an offset or from epoch milliseconds.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => Timestamp::from_millisecond(number.as_i64()?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_keeps_one_form() {
        use ColumnType as Type;
        for (column_type, value, kept) in [
            (Type::Text, json!("ä\u{0}"), json!("ä\u{0}")),
            (Type::Number, json!(1.5), json!(1.5)),
            (Type::Integer, json!(5.0), json!(5)),
            (Type::Integer, json!(i64::MIN), json!(i64::MIN)),
            (Type::Date, json!("2024-02-29"), json!("2024-02-29")),
            (
                Type::Datetime,
                json!("2026-01-31T10:00:00+01:00"),
                json!("2026-01-31T09:00:00Z"),
            ),
            (Type::Datetime, json!(1_500), json!("1970-01-01T00:00:01.5Z")),
            (Type::Json, json!([1, {"a": null}]), json!([1, {"a": null}])),
        ] {
            assert_eq!(accept(column_type, &value), Ok(kept));
        }
        for (column_type, value) in [
            (Type::Text, json!(1)),
            (Type::Number, json!("1")),
            (Type::Integer, json!(1.5)),
            (Type::Integer, json!(u64::MAX)),
            (Type::Integer, json!(1e300)),
            (Type::Boolean, json!(0)),
            (Type::Date, json!("2025-02-29")),
            (Type::Date, json!("20250228")),
            (Type::Date, json!("2025-02-28T00:00:00Z")),
            (Type::Datetime, json!("2026-01-31")),
            (Type::Datetime, json!("2026-01-31T10:00:00")),
            (Type::Json, Value::Null),
        ] {
            assert!(accept(column_type, &value).is_err(), "{column_type:?} {value}");
        }
    }

    #[test]
    fn only_what_loses_nothing_follows_a_type() {
        use ColumnType as Type;
        for (value, to, converted) in [
            (json!(5), Type::Text, Some(json!("5"))),
            (json!("5"), Type::Integer, Some(json!(5))),
            (json!("5.5"), Type::Integer, None),
            (json!(" 5"), Type::Number, None),
            (json!(true), Type::Text, Some(json!("true"))),
            (json!("true"), Type::Boolean, Some(json!(true))),
            (json!("yes"), Type::Boolean, None),
            (json!(5.5), Type::Integer, None),
            (json!(5.0), Type::Integer, Some(json!(5))),
            (
                json!("2026-01-31"),
                Type::Datetime,
                Some(json!("2026-01-31T00:00:00Z")),
            ),
            (
                json!("2026-01-31T00:00:00Z"),
                Type::Date,
                Some(json!("2026-01-31")),
            ),
            (json!("2026-01-31T00:00:01Z"), Type::Date, None),
            (json!({"a": 1}), Type::Text, None),
            (json!({"a": 1}), Type::Json, Some(json!({"a": 1}))),
        ] {
            assert_eq!(convert(&value, to), converted, "{value} to {to:?}");
        }
    }
}
