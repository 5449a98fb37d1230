//! Free-form JSON that messages carry as text: gRPC callers may send anything there.

use contract::v1;
use serde_json::{Map, Value};

use crate::{Result, refuse};

/// The object that a message carries; an empty one when there is none.
///
/// # Errors
/// When it is not a JSON object.
pub fn object(object: Option<&v1::JsonObject>, path: &str) -> Result<Map<String, Value>> {
    match object
        .map(|object| object.json.as_str())
        .filter(|json| !json.is_empty())
    {
        None => Ok(Map::new()),
        Some(json) => match parse(json, path)? {
            Value::Object(members) => Ok(members),
            _ => Err(refuse(path, "must be an object")),
        },
    }
}

/// The value that a message carries; nothing for null.
///
/// # Errors
/// When it is not JSON.
pub fn value(value: Option<&v1::JsonValue>, path: &str) -> Result<Option<Value>> {
    match value
        .map(|value| value.json.as_str())
        .filter(|json| !json.is_empty())
    {
        None => Ok(None),
        Some(json) => Ok(Some(parse(json, path)?).filter(|value| !value.is_null())),
    }
}

fn parse(json: &str, path: &str) -> Result<Value> {
    let wrong = |inner: &str, message: String| match inner {
        "" => refuse(path, message),
        inner => refuse(format!("{path}.{inner}"), message),
    };
    contract::json::check(json.as_bytes()).map_err(|error| wrong(&error.path, error.message))?;
    serde_json::from_str(json).map_err(|error| wrong("", error.to_string()))
}
