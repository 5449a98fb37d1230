//! What a node gives of a response, or fails with.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::config::MAX_DELAY_MS;
use engine::failure::NodeError;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::is_repeatable;
use super::{Call, HTTP_ERROR};
use crate::clock;
use crate::connectors::{TemplateError, ToldFailure};
use crate::outbound::Response;

/// The most characters of a body that a failure tells of.
const EXCERPT: usize = 300;

/// How a response's body is read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResponseType {
    #[default]
    Auto,
    Json,
    Text,
    Base64,
}

/// The output: status, headers, body, duration.
pub(super) fn of(response: &Response, body: Value, duration: Duration) -> Value {
    json!({
        "status": response.status.as_u16(),
        "headers": headers(&response.headers),
        "body": body,
        "durationMs": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The body as a value.
pub(super) fn body(response: &Response, wanted: Option<ResponseType>) -> Result<Value, NodeError> {
    let bytes = &response.body[..];
    Ok(match wanted.unwrap_or_default() {
        ResponseType::Json if bytes.is_empty() => Value::Null,
        ResponseType::Json => serde_json::from_slice(bytes)
            .map_err(|error| NodeError::new(HTTP_ERROR, format!("the answer is not JSON: {error}")))?,
        ResponseType::Text => text(bytes),
        ResponseType::Base64 => Value::String(STANDARD.encode(bytes)),
        ResponseType::Auto => by_content_type(&response.headers, bytes),
    })
}

/// The failure that an answer to a call is. `hide` takes out what nobody may read.
pub(super) fn failure(call: &Call, response: &Response, hide: impl Fn(&mut String)) -> NodeError {
    let what = call.summary();
    let status = response.status;
    let mut body = String::from_utf8_lossy(&response.body).into_owned();
    // Before it is cut, so that no part of a secret is left.
    hide(&mut body);
    let mut message = format!("{what} answered {status}");
    let excerpt = excerpt(body.trim());
    if !excerpt.is_empty() {
        message.push_str(": ");
        message.push_str(excerpt);
    }
    NodeError {
        retry_after_ms: retry_after_ms(status, &response.headers, clock::now_ms()),
        temporary: is_temporary(call, status),
        ..NodeError::new(HTTP_ERROR, message)
    }
}

/// A failure as a manifest's rule names it.
pub(super) fn named(by_status: NodeError, told: ToldFailure) -> NodeError {
    NodeError {
        code: told.code.map_or(by_status.code, Into::into),
        message: told.message.unwrap_or(by_status.message),
        temporary: told.temporary.unwrap_or(by_status.temporary),
        retry_after_ms: by_status.retry_after_ms,
    }
}

/// Whether the same request may succeed later, and sending it again does no harm.
fn is_temporary(call: &Call, status: StatusCode) -> bool {
    let was_refused = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let may_repeat = call.method().is_ok_and(|method| is_repeatable(&method));
    was_refused || (may_repeat && status.is_server_error())
}

/// The beginning of a text, in whole words: half a word could be half a secret, which nobody would recognize.
fn excerpt(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(EXCERPT) else {
        return text;
    };
    let beginning = text.get(..end).unwrap_or_default();
    let words_end = beginning.rfind(|c: char| c.is_whitespace() || "\"'<>,;".contains(c));
    beginning.get(..words_end.unwrap_or(0)).unwrap_or_default()
}

/// How long the other side asks to wait, in milliseconds; at most a day.
pub(super) fn retry_after_ms(status: StatusCode, headers: &HeaderMap, now_ms: i64) -> Option<u64> {
    if !matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait_ms = match value.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1000),
        Err(_) => {
            let at = rfc2822::parse(value).ok()?.timestamp();
            u64::try_from(at.as_millisecond().saturating_sub(now_ms)).ok()?
        }
    };
    Some(wait_ms.min(MAX_DELAY_MS))
}

/// The values by name in lower case, those of one name joined.
fn headers(headers: &HeaderMap) -> Value {
    let mut shown: Map<String, Value> = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let texts: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        shown.insert(name.as_str().to_owned(), Value::String(texts.join(", ")));
    }
    Value::Object(shown)
}

fn by_content_type(headers: &HeaderMap, bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    if is_binary(&essence) {
        return Value::String(STANDARD.encode(bytes));
    }
    let is_json = essence == "application/json" || essence.ends_with("+json") || essence == "text/json";
    match is_json.then(|| serde_json::from_slice(bytes)) {
        Some(Ok(value)) => value,
        // Whatever its type says, what is text is useful as text only.
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Value::String(text.to_owned()),
            Err(_) if essence.starts_with("text/") => text(bytes),
            Err(_) => Value::String(STANDARD.encode(bytes)),
        },
    }
}

/// Whether a type is one of bytes, so that it never depends on them whether the body is text.
fn is_binary(essence: &str) -> bool {
    const FAMILIES: [&str; 4] = ["audio/", "font/", "image/", "video/"];
    const TYPES: [&str; 5] = [
        "application/gzip",
        "application/octet-stream",
        "application/pdf",
        "application/wasm",
        "application/zip",
    ];
    let of_a_family = FAMILIES.iter().any(|family| essence.starts_with(family));
    (of_a_family && !essence.ends_with("+xml")) || TYPES.contains(&essence)
}

fn text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

/// An answer that a manifest cannot read.
pub(super) fn unreadable(error: &TemplateError) -> NodeError {
    NodeError::new(HTTP_ERROR, error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use http::HeaderValue;

    use super::*;
    use crate::secret::Mask;

    fn response(content_type: &str, body: &'static [u8]) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::try_from(content_type).unwrap());
        Response {
            status: StatusCode::OK,
            headers,
            body: body.into(),
        }
    }

    #[test]
    fn bodies_are_read_by_their_type() {
        for (content_type, bytes, expected) in [
            (
                "application/json; charset=utf-8",
                br#"{"a":1}"#.as_slice(),
                json!({ "a": 1 }),
            ),
            ("application/problem+json", b"[1]", json!([1])),
            ("application/json", b"{broken", json!("{broken")),
            ("text/html", b"<p>", json!("<p>")),
            ("text/plain", b"\xff", json!("\u{fffd}")),
            ("application/octet-stream", b"\xff\xfe", json!("//4=")),
            ("application/octet-stream", b"text", json!("dGV4dA==")),
            ("image/png; q=1", b"text", json!("dGV4dA==")),
            ("image/svg+xml", b"<svg/>", json!("<svg/>")),
            ("application/x-unknown", b"text", json!("text")),
            ("application/x-unknown", b"\xff\xfe", json!("//4=")),
            ("", b"plain", json!("plain")),
            ("application/json", b"", Value::Null),
        ] {
            let read = body(&response(content_type, bytes), None).unwrap();
            assert_eq!(read, expected, "{content_type}");
        }
        let plain = response("text/plain", b"7");
        assert_eq!(body(&plain, Some(ResponseType::Json)).unwrap(), json!(7));
        assert_eq!(body(&plain, Some(ResponseType::Base64)).unwrap(), json!("Nw=="));
        assert_eq!(
            body(&response("application/json", b"7"), Some(ResponseType::Text)).unwrap(),
            json!("7")
        );
        assert!(body(&response("text/plain", b"{"), Some(ResponseType::Json)).is_err());
    }

    #[test]
    fn failures_tell_of_whole_words_and_no_secrets() {
        let mask = Mask::of(["hidden-key"].into_iter());
        let said = |body: String| {
            let response = Response {
                status: StatusCode::NOT_FOUND,
                headers: HeaderMap::new(),
                body: body.into(),
            };
            let call = Call::read(json!({ "url": "https://x/" })).unwrap();
            failure(&call, &response, |text| mask.text(text)).message
        };
        assert_eq!(said(String::new()), "GET x answered 404 Not Found");
        assert_eq!(
            said(" no hidden-key ".to_owned()),
            "GET x answered 404 Not Found: no ***"
        );
        let long = format!("{} {}", "a".repeat(290), "b".repeat(20));
        assert_eq!(
            said(long),
            format!("GET x answered 404 Not Found: {}", "a".repeat(290))
        );
        let cut = format!("{} hidden-key", "a".repeat(290));
        assert!(!said(cut).contains("hidden"));
        assert_eq!(said("ä".repeat(400)), "GET x answered 404 Not Found");
    }

    #[test]
    fn the_other_side_says_how_long_to_wait() {
        let wait = |status: u16, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::try_from(value).unwrap());
            // Sun, 06 Nov 1994 08:49:37 GMT
            retry_after_ms(StatusCode::from_u16(status).unwrap(), &headers, 784_111_777_000)
        };
        assert_eq!(wait(429, "2"), Some(2_000));
        assert_eq!(wait(503, " 0 "), Some(0));
        assert_eq!(wait(503, "Sun, 06 Nov 1994 08:49:40 GMT"), Some(3_000));
        assert_eq!(wait(503, "Sun, 06 Nov 1994 08:49:30 GMT"), None, "it is over");
        assert_eq!(wait(429, "99999999999999999999"), None);
        assert_eq!(wait(429, "999999999999"), Some(MAX_DELAY_MS));
        assert_eq!(wait(429, "soon"), None);
        assert_eq!(wait(500, "2"), None);
    }
}
