//! What a call brings: its body as the content type says, its headers and its query.

use contract::v1::{self, ErrorReason};
use serde_json::{Map, Value};

use super::header;
use crate::error::{Error, Result};

/// The deepest nesting of a JSON body.
const MAX_DEPTH: usize = contract::json::MAX_DEPTH;

/// The body as its content type says.
pub(super) fn read(request: &v1::ReceiveWebhookRequest) -> Result<Value> {
    let declared = header(request, "content-type").unwrap_or_default();
    let kind = declared
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind.as_str() {
        _ if request.body.is_empty() => Ok(Value::Null),
        "" | "application/json" => json_body(&request.body),
        kind if kind.starts_with("application/") && kind.ends_with("+json") => json_body(&request.body),
        "application/x-www-form-urlencoded" => Ok(query_object(&text_body(&request.body)?)),
        kind if kind.starts_with("text/") => Ok(Value::String(text_body(&request.body)?)),
        kind => {
            let message = format!("The webhook takes JSON, forms and text, not {kind}.");
            Err(Error::new(ErrorReason::UnsupportedMediaType, message))
        }
    }
}

fn json_body(bytes: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid("", format!("the body is not JSON: {error}")))?;
    match is_deeper(&value, MAX_DEPTH) {
        true => Err(Error::invalid(
            "",
            format!("the body is nested deeper than {MAX_DEPTH} levels"),
        )),
        false => Ok(value),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
        _ => false,
    }
}

fn text_body(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::invalid("", "the body is not UTF-8 text"))
}

/// Headers by name; those that come several times are joined by commas.
pub(super) fn header_object(headers: Vec<v1::HttpHeader>) -> Value {
    let mut object = Map::new();
    for header in headers {
        let text = String::from_utf8_lossy(&header.value).into_owned();
        match object.get_mut(&header.name) {
            Some(Value::String(before)) => {
                before.push_str(", ");
                before.push_str(&text);
            }
            _ => _ = object.insert(header.name, Value::String(text)),
        }
    }
    Value::Object(object)
}

/// Parameters by name; those that come several times are arrays.
pub(super) fn query_object(query: &str) -> Value {
    let mut object = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = Value::String(value.into_owned());
        match object.get_mut(name.as_ref()) {
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
            None => _ = object.insert(name.into_owned(), value),
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn call(content_type: &str, body: &[u8]) -> v1::ReceiveWebhookRequest {
        let header = v1::HttpHeader {
            name: "content-type".to_owned(),
            value: content_type.as_bytes().to_vec(),
        };
        v1::ReceiveWebhookRequest {
            headers: vec![header],
            body: body.to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn bodies_are_read_as_their_type_says() {
        assert_eq!(
            read(&call("application/json; charset=utf-8", b"{\"a\":1}")).unwrap(),
            json!({"a": 1})
        );
        assert_eq!(
            read(&call("application/cloudevents+json", b"[1]")).unwrap(),
            json!([1])
        );
        assert_eq!(
            read(&call("text/plain", "grüß".as_bytes())).unwrap(),
            json!("grüß")
        );
        let form = read(&call("application/x-www-form-urlencoded", b"a=1&b=x+y&a=2")).unwrap();
        assert_eq!(form, json!({"a": ["1", "2"], "b": "x y"}));
        assert_eq!(read(&call("application/json", b"")).unwrap(), Value::Null);
        assert!(read(&call("application/json", b"{")).is_err());
        assert!(read(&call("text/plain", &[0xff])).is_err());
        assert_eq!(
            read(&call("image/png", b"x")).unwrap_err().reason(),
            ErrorReason::UnsupportedMediaType
        );
    }

    #[test]
    fn bodies_nest_to_the_limit() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&call("application/json", nested(64).as_bytes())).is_ok());
        assert!(read(&call("application/json", nested(65).as_bytes())).is_err());
    }

    #[test]
    fn repeated_headers_are_joined() {
        let header = |value: &str| v1::HttpHeader {
            name: "accept".to_owned(),
            value: value.as_bytes().to_vec(),
        };
        assert_eq!(
            header_object(vec![header("a"), header("b")]),
            json!({"accept": "a, b"})
        );
    }
}
