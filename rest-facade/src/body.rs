//! Bodies of requests, read whole up to a limit. Time and memory are the server's to watch.

use axum::body::Body;
use bytes::Bytes;
use contract::v1::{ErrorDetail, ErrorReason};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use server::BodyError;

use crate::status::Failure;

/// Reads a JSON body up to a limit.
pub(crate) async fn json_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Failure> {
    let body = limited(headers, body, limit).await?;
    if body.is_empty() || is_json(headers) {
        return Ok(body);
    }
    Err(Failure::new(
        ErrorReason::UnsupportedMediaType,
        "The body must be JSON: send Content-Type application/json, without Content-Encoding.",
    ))
}

/// Reads a body up to a limit; one that says it is larger is not read at all.
pub(crate) async fn limited(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Failure> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > limit as u64) {
        return Err(too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Err(error) => Err(incomplete(BodyError::among(&*error))),
    }
}

fn too_large(limit: usize) -> Failure {
    Failure::new(
        ErrorReason::PayloadTooLarge,
        format!("The body is larger than {limit} bytes; send less."),
    )
}

fn incomplete(error: Option<&BodyError>) -> Failure {
    match error {
        Some(BodyError::Late) => Failure::new(
            ErrorReason::RequestTimeout,
            "The body did not arrive in time; send the request again.",
        ),
        Some(BodyError::NoRoom) => Failure::new(
            ErrorReason::Unavailable,
            "The service has no memory for the body now; try again soon.",
        )
        .retry_soon(),
        Some(BodyError::Broken(_)) | None => Failure::invalid(vec![ErrorDetail {
            path: String::new(),
            message: "has a body that ended early".to_owned(),
        }]),
    }
}

/// Whether a body is `application/json`, or does not say what it is.
fn is_json(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"))
    };
    let encoded = text(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let media_type = text(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or_default().trim());
    !encoded && media_type.is_none_or(|media_type| media_type.eq_ignore_ascii_case("application/json"))
}
