//! The id that follows a request through answers, errors, logs and the core.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header, and the metadata key, that carries it.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken from a caller.
const MAX_LENGTH: usize = 128;

/// The id of a request: an extension of the request.
#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id when it is 1 to 128 visible ASCII characters, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(HEADER).iter();
        match (given.next(), given.next()) {
            (Some(id), None) if is_fine(id) => Self(id.clone()),
            _ => Self::new(),
        }
    }

    fn new() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text = uuid::Uuid::now_v7().simple().encode_lower(&mut buffer);
        Self(HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("none")))
    }

    /// The id as a header's value.
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

fn is_fine(id: &HeaderValue) -> bool {
    (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Gives the request its id and the response the same.
pub(crate) async fn assign(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    response.headers_mut().insert(HEADER, id.0);
    response
}

/// The id that [`assign`] gave.
pub(crate) fn of(extensions: &http::Extensions) -> RequestId {
    extensions
        .get::<RequestId>()
        .cloned()
        .unwrap_or_else(RequestId::new)
}
