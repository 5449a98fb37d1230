//! What the server answers, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::native::values::float;

/// An answer as JSON: what is no text is `{base64}`.
pub fn shown(value: ::redis::Value) -> Value {
    use ::redis::Value as Answer;
    match value {
        Answer::Nil => Value::Null,
        Answer::Int(number) => Value::from(number),
        Answer::BulkString(bytes) | Answer::BigNumber(bytes) => text(bytes),
        Answer::SimpleString(text) | Answer::VerbatimString { text, .. } => Value::from(text),
        Answer::Okay => Value::from("OK"),
        Answer::Double(number) => float(number),
        Answer::Boolean(holds) => Value::from(holds),
        Answer::Array(items) | Answer::Set(items) | Answer::Push { data: items, .. } => {
            items.into_iter().map(shown).collect()
        }
        Answer::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(key, value)| [shown(key), shown(value)])
            .collect(),
        Answer::Attribute { data, .. } => shown(*data),
        other => Value::from(format!("{other:?}")),
    }
}

fn text(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

/// Names and values, one after the other, as an object.
pub fn fields(answer: Value) -> Map<String, Value> {
    let items = answer.as_array().map_or(&[][..], Vec::as_slice);
    let (pairs, _rest) = items.as_chunks::<2>();
    let name = |name: &Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    pairs
        .iter()
        .map(|[field, value]| (name(field), value.clone()))
        .collect()
}
