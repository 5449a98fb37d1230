//! HTTP that is carried as it is: requests in messages to the core, and its answers back.

use axum::body::Body;
use axum::response::Response;
use contract::v1::{ErrorReason, HttpHeader};
use http::header::{
    CONNECTION, CONTENT_LENGTH, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::status::Failure;

/// Headers that belong to one connection and not to the message, besides those that `Connection` names.
static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The headers of a request but those of its connection.
pub(crate) fn headers(headers: &HeaderMap) -> Vec<HttpHeader> {
    let header = |(name, value): (&HeaderName, &HeaderValue)| HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    };
    let stays = |(name, _): &(&HeaderName, &HeaderValue)| {
        !HOP_BY_HOP.contains(name) && !is_named_by_connection(headers, name)
    };
    headers.iter().filter(stays).map(header).collect()
}

/// Whether the sender says that a header is for its connection.
fn is_named_by_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    named
        .flat_map(|names| names.split(','))
        .any(|named| named.trim().eq_ignore_ascii_case(name.as_str()))
}

/// The core's answer as an HTTP response. A header that HTTP cannot carry is left out.
pub(crate) fn response(status: i32, headers: Vec<HttpHeader>, body: Vec<u8>) -> Result<Response, Failure> {
    let status = u16::try_from(status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status.filter(|status| !status.is_informational()) else {
        return Err(Failure::new(
            ErrorReason::Internal,
            "The answer has a status that is not one of HTTP.",
        ));
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let answered = response.headers_mut();
    for HttpHeader { name, value } in headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(&value)) else {
            continue;
        };
        // The length is the server's to say.
        if !HOP_BY_HOP.contains(&name) && name != CONTENT_LENGTH {
            answered.append(name, value);
        }
    }
    Ok(response)
}
