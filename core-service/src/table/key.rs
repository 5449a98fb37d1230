//! Sort keys: bytes that compare as values do, the same on every database and in memory.
//!
//! No value comes after all values, in either direction; its key is empty, and whoever sorts puts it last. Values of
//! different kinds, which only JSON columns mix, are ordered: booleans, numbers, times, texts, then arrays and objects.
//! Numbers compare numerically without losing digits, texts by code point. A text beyond [`TEXT_BYTES`] is ordered by
//! that many bytes; a hash of the whole keeps keys of different texts different, and keys short enough to be indexed.

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use super::{ColumnType, value};

/// A sort key.
pub type Key = Vec<u8>;

/// The key of no value.
pub const NULL: &[u8] = &[];
/// Not greater than the key of any value, and greater than that of none.
pub const FIRST_VALUE: &[u8] = &[1];

/// How much of a text takes part in its order.
pub(super) const TEXT_BYTES: usize = 1_000;

/// Kinds of value in their order; the first byte of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Boolean = 1,
    Number = 2,
    Date = 3,
    Instant = 4,
    Text = 5,
    Composite = 6,
}

impl Kind {
    /// What the keys of this kind begin with; not greater than any of them.
    pub(super) fn start(self) -> Key {
        vec![self as u8]
    }

    /// Greater than all keys of this kind and not greater than those of the next.
    pub(super) fn end(self) -> Key {
        vec![self as u8 + 1]
    }
}

/// The kind of a value that a column of this type keeps.
pub(super) fn kind(column_type: ColumnType, value: &Value) -> Kind {
    match (column_type, value) {
        (ColumnType::Date, _) => Kind::Date,
        (ColumnType::Datetime, _) => Kind::Instant,
        (_, Value::Bool(_)) => Kind::Boolean,
        (_, Value::Number(_)) => Kind::Number,
        (_, Value::String(_)) => Kind::Text,
        _ => Kind::Composite,
    }
}

/// The key of a value that a column of this type keeps (see [`super::accept`]).
#[must_use]
pub fn key(column_type: ColumnType, value: &Value) -> Key {
    if value.is_null() {
        return NULL.to_vec();
    }
    let kind = kind(column_type, value);
    let mut key = kind.start();
    match (kind, value) {
        (Kind::Boolean, value) => key.push(u8::from(*value == Value::Bool(true))),
        (Kind::Number, Value::Number(number)) => push_number(&mut key, number),
        (Kind::Date, value) => {
            let instant = value::date(value).and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok());
            let seconds = instant.map_or(i64::MIN, |zoned| zoned.timestamp().as_second());
            key.extend(ordered(seconds));
        }
        (Kind::Instant, value) => {
            let instant = value::instant(value).unwrap_or(jiff::Timestamp::MIN);
            key.extend(ordered(instant.as_second()));
            key.extend(ordered(i64::from(instant.subsec_nanosecond())));
        }
        (_, Value::String(text)) => push_text(&mut key, text),
        (_, other) => push_text(&mut key, &engine::canonical::to_string(&one_spelling(other))),
    }
    key
}

/// A signed number as bytes that compare as it does.
fn ordered(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// The nearest decimal, then how far the number is from it: integers of 64 bits have more digits than decimals.
fn push_number(key: &mut Key, number: &Number) {
    let decimal = number.as_f64().unwrap_or_default();
    // Minus zero is zero.
    let bits = (decimal + 0.0).to_bits();
    let comparable = if bits >> 63 == 0 { bits | (1 << 63) } else { !bits };
    key.extend(comparable.to_be_bytes());
    let exact = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a decimal that an integer was rounded to is within 128 bits"
    )]
    let distance = exact.map_or(0, |exact| exact - decimal as i128);
    key.extend(ordered(i64::try_from(distance).unwrap_or_default()));
}

/// The value with every number in one spelling: integers and decimals are one type.
fn one_spelling(value: &Value) -> Value {
    match value {
        Value::Number(_) => value::integer(value).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(one_spelling).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), one_spelling(value)))
                .collect()
        }
        other => other.clone(),
    }
}

fn push_text(key: &mut Key, text: &str) {
    let bytes = text.as_bytes();
    match bytes.split_at_checked(TEXT_BYTES) {
        Some((head, tail)) if !tail.is_empty() => {
            key.extend(head);
            key.extend(Sha256::digest(bytes));
        }
        _ => key.extend(bytes),
    }
}

/// The least key that is greater than all keys with this beginning.
pub(super) fn after_prefix(mut prefix: Key) -> Key {
    // The first byte is a kind and never the greatest.
    while prefix.last() == Some(&u8::MAX) {
        prefix.pop();
    }
    if let Some(last) = prefix.last_mut() {
        *last += 1;
    }
    prefix
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn keys(column_type: ColumnType, values: &[Value]) -> Vec<Key> {
        values.iter().map(|value| key(column_type, value)).collect()
    }

    fn rise(column_type: ColumnType, values: &[Value]) {
        let keys = keys(column_type, values);
        for (pair, values) in keys.windows(2).zip(values.windows(2)) {
            assert!(pair[0] < pair[1], "{values:?}");
        }
        assert!(keys.iter().all(|key| key.as_slice() >= FIRST_VALUE));
    }

    #[test]
    fn values_rise_as_their_type_says() {
        rise(ColumnType::Boolean, &[json!(false), json!(true)]);
        rise(
            ColumnType::Number,
            &[
                json!(-1e300),
                json!(i64::MIN),
                json!(i64::MIN + 1),
                json!(-1.5),
                json!(-1),
                json!(0),
                json!(5e-324),
                json!(9_007_199_254_740_992_i64),
                json!(9_007_199_254_740_993_i64),
                json!(u64::MAX - 1),
                json!(u64::MAX),
                json!(1e20),
            ],
        );
        rise(
            ColumnType::Text,
            &[
                json!(""),
                json!("\u{0}"),
                json!("Z"),
                json!("a"),
                json!("ä"),
                json!("\u{ffff}"),
                json!("🚚"),
            ],
        );
        rise(
            ColumnType::Date,
            &[json!("0001-01-01"), json!("1969-12-31"), json!("2026-01-31")],
        );
        rise(
            ColumnType::Datetime,
            &[
                json!("1969-12-31T23:59:59.25Z"),
                json!("1969-12-31T23:59:59.5Z"),
                json!("1970-01-01T00:00:00Z"),
                json!("2026-01-31T09:00:00Z"),
            ],
        );
        rise(ColumnType::Json, &[json!(true), json!(7), json!("a"), json!([1])]);
    }

    #[test]
    fn equal_values_have_equal_keys() {
        assert_eq!(
            key(ColumnType::Number, &json!(1.0)),
            key(ColumnType::Number, &json!(1))
        );
        assert_eq!(
            key(ColumnType::Number, &json!(-0.0)),
            key(ColumnType::Number, &json!(0))
        );
        assert_eq!(
            key(ColumnType::Json, &json!({"a": 1, "b": 2})),
            key(ColumnType::Json, &json!({"b": 2, "a": 1}))
        );
    }

    #[test]
    fn long_texts_stay_apart_and_their_keys_short() {
        let head = "x".repeat(TEXT_BYTES);
        let (a, b) = (json!(format!("{head}a")), json!(format!("{head}b")));
        let keys = keys(ColumnType::Text, &[json!(head), a, b]);
        assert!(keys[0] < keys[1] && keys[0] < keys[2]);
        assert_ne!(keys[1], keys[2]);
        assert!(keys[1].len() < 1_100);
    }

    proptest! {
        #[test]
        fn numbers_compare_as_numbers(a: i64, b: i64) {
            prop_assert_eq!(
                key(ColumnType::Number, &json!(a)).cmp(&key(ColumnType::Number, &json!(b))),
                a.cmp(&b)
            );
        }

        #[test]
        fn texts_compare_by_code_point(a: String, b: String) {
            prop_assert_eq!(
                key(ColumnType::Text, &json!(a)).cmp(&key(ColumnType::Text, &json!(b))),
                a.chars().cmp(b.chars())
            );
        }

        #[test]
        fn a_prefix_ends_before_the_next(prefix: String, rest: String) {
            let start = key(ColumnType::Text, &json!(prefix));
            let longer = key(ColumnType::Text, &json!(format!("{prefix}{rest}")));
            prop_assert!(start <= longer && longer < after_prefix(start));
        }
    }
}
