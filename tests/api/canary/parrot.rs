//! A service that repeats in its answer all that it hears.

use bytes::Bytes;
use http::{HeaderValue, Response};
use serde_json::json;
use test_support::{Asked, Target};

/// Starts one that answers whatever the path by the status at its end, and by a link to what it was asked.
pub(super) async fn parrot() -> Target {
    Target::start(repeat).await
}

pub(super) fn repeat(asked: &Asked) -> Response<Bytes> {
    let end = asked.uri.path().rsplit('/').next();
    let status = end.and_then(|end| end.parse().ok()).unwrap_or(200);
    let headers: Vec<String> = asked
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let body = json!({ "headers": headers, "uri": asked.uri.to_string(),
        "body": String::from_utf8_lossy(&asked.body) });
    let header = |name: &str| asked.headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    let heard = [header("authorization"), header("x-key")].concat();
    let bytes = |parts: &[&[u8]]| HeaderValue::from_bytes(&parts.concat()).unwrap();
    let link = bytes(&[b"<", asked.uri.to_string().as_bytes(), b">; rel=\"next\""]);
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("x-heard", bytes(&[&heard]))
        .header("link", link)
        .header("www-authenticate", bytes(&[&heard, b" is not known"]));
    response.body(Bytes::from(body.to_string())).unwrap()
}
