//! JSON with one spelling per value, and its SHA-256.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The value as JSON with sorted keys and no white space.
pub fn to_string(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// SHA-256 of the bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of the bytes in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in sha256(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => write_object(text, fields),
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

fn write_object(text: &mut String, fields: &Map<String, Value>) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    text.push('{');
    for (position, (key, value)) in sorted.into_iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        write_value(text, &Value::String(key.clone()));
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = serde_json::json!({"b": [{"z": 1, "a": "\"é\n"}], "a": null});
        assert_eq!(
            to_string(&value),
            "{\"a\":null,\"b\":[{\"a\":\"\\\"é\\n\",\"z\":1}]}"
        );
    }

    #[test]
    fn hash_is_the_known_one() {
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
