//! The body of a call's request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::failure::NodeError;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::texts;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// How a body is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BodyType {
    #[default]
    Json,
    Form,
    Multipart,
    Raw,
}

/// A body that can be sent.
pub(super) struct Encoded {
    pub(super) bytes: Bytes,
    pub(super) content_type: HeaderValue,
}

/// A part of a multipart body that is a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// Writes a body that is not null.
pub(super) fn encode(body_type: Option<BodyType>, body: &Value) -> Result<Encoded, NodeError> {
    match body_type.unwrap_or_default() {
        BodyType::Json => Ok(Encoded {
            bytes: body.to_string().into(),
            content_type: JSON,
        }),
        BodyType::Form => form(fields(body)?),
        BodyType::Multipart => multipart(fields(body)?),
        BodyType::Raw => raw(body),
    }
}

fn fields(body: &Value) -> Result<&Map<String, Value>, NodeError> {
    body.as_object()
        .ok_or_else(|| NodeError::expression("body must be an object of values by name for this bodyType"))
}

fn form(fields: &Map<String, Value>) -> Result<Encoded, NodeError> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        for text in texts(name, value)? {
            form.append_pair(name, &text);
        }
    }
    Ok(Encoded {
        bytes: form.finish().into(),
        content_type: FORM,
    })
}

fn raw(body: &Value) -> Result<Encoded, NodeError> {
    match body {
        Value::String(text) => Ok(Encoded {
            bytes: text.clone().into(),
            content_type: TEXT,
        }),
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("base64") => {
            let text = fields.get("base64").and_then(Value::as_str).unwrap_or_default();
            Ok(Encoded {
                bytes: decoded("body", text)?.into(),
                content_type: BYTES,
            })
        }
        _ => Err(NodeError::expression(
            "body must be a text, or {\"base64\": …} for bytes, with bodyType raw",
        )),
    }
}

fn multipart(fields: &Map<String, Value>) -> Result<Encoded, NodeError> {
    let boundary = boundary()?;
    let mut bytes = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(_) => file(&mut bytes, &boundary, name, value)?,
            value => {
                for text in texts(name, value)? {
                    let head = disposition(name, None);
                    part(&mut bytes, &boundary, &head, text.as_bytes());
                }
            }
        }
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
    Ok(Encoded {
        bytes: bytes.into(),
        content_type: content_type.unwrap_or(BYTES),
    })
}

fn file(bytes: &mut Vec<u8>, boundary: &str, name: &str, value: &Value) -> Result<(), NodeError> {
    let read = serde_path_to_error::deserialize(value);
    let file: File = read.map_err(|error| NodeError::expression(format!("body.{name}: {error}")))?;
    let content = match (file.content, file.base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => decoded(&format!("body.{name}"), &text)?,
        _ => {
            let message = format!("body.{name} must have either content or base64");
            return Err(NodeError::expression(message));
        }
    };
    let content_type = file.content_type.as_deref().unwrap_or("application/octet-stream");
    if content_type.contains(char::is_control) {
        let message = format!("body.{name}.contentType holds control characters");
        return Err(NodeError::expression(message));
    }
    let head = disposition(name, Some(file.filename.as_deref().unwrap_or(name)));
    part(
        bytes,
        boundary,
        &format!("{head}\r\nContent-Type: {content_type}"),
        &content,
    );
    Ok(())
}

fn part(bytes: &mut Vec<u8>, boundary: &str, head: &str, content: &[u8]) {
    bytes.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b"\r\n");
}

fn disposition(name: &str, filename: Option<&str>) -> String {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let filename = filename.map(|filename| format!("; filename=\"{}\"", quoted(filename)));
    let filename = filename.unwrap_or_default();
    format!(
        "Content-Disposition: form-data; name=\"{}\"{filename}",
        quoted(name)
    )
}

/// A text that no content holds, because nobody can guess it.
fn boundary() -> Result<String, NodeError> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random)
        .map_err(|_| NodeError::new("ENGINE_ERROR", "the operating system gives no random numbers"))?;
    Ok(hex::encode(random))
}

fn decoded(place: &str, text: &str) -> Result<Vec<u8>, NodeError> {
    let bytes = STANDARD.decode(text.trim());
    bytes.map_err(|_| NodeError::expression(format!("{place}: base64 is not Base64")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn written(body_type: BodyType, body: Value) -> (String, String) {
        let encoded = encode(Some(body_type), &body).unwrap();
        let content_type = encoded.content_type.to_str().unwrap().to_owned();
        (content_type, String::from_utf8(encoded.bytes.to_vec()).unwrap())
    }

    #[test]
    fn bodies_are_written_as_their_type_says() {
        let (content_type, text) = written(BodyType::Json, json!({ "a": [1, null] }));
        assert_eq!(
            (content_type.as_str(), text.as_str()),
            ("application/json", r#"{"a":[1,null]}"#)
        );
        let (_, text) = written(
            BodyType::Form,
            json!({ "a b": "ä&=", "n": [1, true], "none": null }),
        );
        assert_eq!(text, "a+b=%C3%A4%26%3D&n=1&n=true");
        let (content_type, text) = written(BodyType::Raw, json!("<x/>"));
        assert_eq!(
            (content_type.as_str(), text.as_str()),
            ("text/plain; charset=utf-8", "<x/>")
        );
        let (content_type, text) = written(BodyType::Raw, json!({ "base64": "aGVsbG8=" }));
        assert_eq!(
            (content_type.as_str(), text.as_str()),
            ("application/octet-stream", "hello")
        );
    }

    #[test]
    fn parts_keep_to_their_boundary() {
        let body = json!({
            "na\"me\r\n": "value",
            "file": { "filename": "a.txt", "contentType": "text/plain", "content": "hi" },
        });
        let (content_type, text) = written(BodyType::Multipart, body);
        let boundary = content_type
            .strip_prefix("multipart/form-data; boundary=")
            .unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"na%22me%0D%0A\"\r\n\r\nvalue\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
             Content-Type: text/plain\r\n\r\nhi\r\n--{boundary}--\r\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for (body_type, body) in [
            (BodyType::Form, json!("text")),
            (BodyType::Form, json!({ "a": {} })),
            (BodyType::Form, json!({ "a": [[1]] })),
            (BodyType::Raw, json!(7)),
            (BodyType::Raw, json!({ "base64": "!" })),
            (
                BodyType::Multipart,
                json!({ "a": { "content": "x", "base64": "eA==" } }),
            ),
            (
                BodyType::Multipart,
                json!({ "a": { "content": "x", "contentType": "a\r\nb: c" } }),
            ),
            (BodyType::Multipart, json!({ "a": { "name": "x" } })),
        ] {
            assert!(encode(Some(body_type), &body).is_err(), "{body}");
        }
    }
}
