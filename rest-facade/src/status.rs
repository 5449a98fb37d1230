//! Errors as HTTP answers: the reason that a gRPC status names decides status and code.

use axum::body::Body;
use axum::response::Response;
use contract::v1::{Error, ErrorDetail, ErrorReason, ErrorResponse};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::metadata;
use crate::request_id::RequestId;

/// Media type of every JSON answer.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Seconds to wait when nobody says how long.
const UNAVAILABLE_RETRY_S: i64 = 1;

/// A request that is refused or failed, before it is an HTTP answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub reason: ErrorReason,
    pub message: String,
    pub details: Box<[ErrorDetail]>,
    base_url: Option<Box<str>>,
    retry_after_s: Option<i64>,
    run_id: Option<Box<str>>,
    headers: Box<HeaderMap>,
    /// What is for the log alone.
    cause: Option<Box<str>>,
}

impl Failure {
    pub fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: Box::default(),
            base_url: None,
            retry_after_s: None,
            run_id: None,
            headers: Box::default(),
            cause: None,
        }
    }

    /// A request that is not as its endpoint wants it.
    pub fn invalid(details: Vec<ErrorDetail>) -> Self {
        let message = match details.as_slice() {
            [ErrorDetail { path, message }] if path.is_empty() => format!("The request {message}."),
            [ErrorDetail { path, message }] => format!("{path} {message}."),
            _ => "The request has several fields that are not valid; see details.".to_owned(),
        };
        Self {
            details: details.into(),
            ..Self::new(ErrorReason::ValidationError, message)
        }
    }

    /// With the advice to come again soon.
    pub fn retry_soon(self) -> Self {
        Self {
            retry_after_s: Some(UNAVAILABLE_RETRY_S),
            ..self
        }
    }

    /// With what the metadata of an answer tells, such as how the caller stands to its rate limit.
    pub fn telling(mut self, metadata: &MetadataMap) -> Self {
        *self.headers = metadata::to_headers(metadata);
        self
    }

    /// Something that must not happen did; the log tells why.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self {
            cause: Some(cause.to_string().into()),
            ..Self::new(ErrorReason::Internal, general_message(ErrorReason::Internal))
        }
    }

    pub fn into_response(self, id: &RequestId) -> Response {
        let row = self.reason.row();
        if let Some(cause) = self.cause {
            tracing::warn!(request_id = id.as_str(), code = row.code, %cause, "a request failed");
        }
        let body = ErrorResponse {
            error: Some(Error {
                code: row.code.to_owned(),
                message: self.message,
                request_id: id.as_str().to_owned(),
                details: self.details.into_vec(),
                base_url: self.base_url.map(String::from),
                retry_after_s: self.retry_after_s,
                run_id: self.run_id.map(String::from),
            }),
        };
        let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() =
            StatusCode::from_u16(row.http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.headers_mut() = *self.headers;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let named = details
            .error_info()
            .filter(|info| info.domain == contract::errors::DOMAIN)
            .and_then(|info| ErrorReason::from_name(&info.reason));
        let reason = named.unwrap_or_else(|| class_of(status.code()));
        // What the core did not say on purpose, or what broke, is for the log alone.
        let hidden = named.is_none() || reason == ErrorReason::Internal;
        let (message, cause) = match hidden {
            true => (general_message(reason).to_owned(), Some(chain(&status))),
            false => (status.message().to_owned(), None),
        };
        let unavailable = (reason == ErrorReason::Unavailable).then_some(UNAVAILABLE_RETRY_S);
        Self {
            reason,
            message,
            details: violations(&details).into(),
            base_url: metadata_of(&details, contract::errors::BASE_URL),
            run_id: metadata_of(&details, contract::errors::RUN_ID),
            retry_after_s: retry_after(&details).or(unavailable),
            headers: Box::new(metadata::to_headers(status.metadata())),
            cause,
        }
    }
}

/// What the core adds to a reason under a name.
fn metadata_of(details: &ErrorDetails, name: &str) -> Option<Box<str>> {
    let told = details.error_info()?.metadata.get(name)?;
    Some(told.as_str().into())
}

/// A status and what caused it.
fn chain(status: &Status) -> Box<str> {
    let mut text = format!("{:?}: {}", status.code(), status.message());
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text.into()
}

fn violations(details: &ErrorDetails) -> Vec<ErrorDetail> {
    let violations = details
        .bad_request()
        .map_or(&[][..], |request| request.field_violations.as_slice());
    let detail = |violation: &tonic_types::FieldViolation| ErrorDetail {
        path: violation.field.clone(),
        message: violation.description.clone(),
    };
    violations.iter().map(detail).collect()
}

/// Whole seconds to wait, rounded up: a client that obeys is not early.
fn retry_after(details: &ErrorDetails) -> Option<i64> {
    let delay = details.retry_info()?.retry_delay?;
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    Some(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// The reason for a status that names none: the transport's own, or the gRPC library's.
fn class_of(code: Code) -> ErrorReason {
    match code {
        Code::Cancelled => ErrorReason::Cancelled,
        Code::InvalidArgument => ErrorReason::ValidationError,
        Code::DeadlineExceeded => ErrorReason::DeadlineExceeded,
        Code::NotFound => ErrorReason::NotFound,
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => ErrorReason::Conflict,
        Code::PermissionDenied => ErrorReason::ApiAccessDenied,
        Code::ResourceExhausted => ErrorReason::RateLimited,
        Code::OutOfRange => ErrorReason::PayloadTooLarge,
        Code::Unimplemented => ErrorReason::Unimplemented,
        Code::Unavailable => ErrorReason::Unavailable,
        Code::Unauthenticated => ErrorReason::Unauthenticated,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => ErrorReason::Internal,
    }
}

/// What is said when nothing more may be.
fn general_message(reason: ErrorReason) -> &'static str {
    match reason {
        ErrorReason::Cancelled => "The request was cancelled.",
        ErrorReason::ValidationError => "The request is not valid.",
        ErrorReason::DeadlineExceeded => "The answer did not come in time; try again.",
        ErrorReason::NotFound => "There is no such resource.",
        ErrorReason::Conflict => {
            "The request conflicts with the state of the resource; read it again and retry."
        }
        ErrorReason::ApiAccessDenied => "The key may not do this.",
        ErrorReason::RateLimited => "Too many requests; wait and try again.",
        ErrorReason::PayloadTooLarge => "The request is larger than the service accepts.",
        ErrorReason::Unimplemented => "The service does not offer this yet.",
        ErrorReason::Unavailable => "The service cannot answer now; try again.",
        ErrorReason::Unauthenticated => "A valid API key is needed as a bearer token.",
        _ => "Something broke inside the service; name the request id when you report it.",
    }
}
