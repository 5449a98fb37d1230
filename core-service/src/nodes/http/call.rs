//! The parameters of a call, and the request they make.

use std::time::Duration;

use engine::failure::NodeError;
use http::Method;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::body::{self, BodyType};
use super::output::ResponseType;
use super::pagination::Pagination;
use crate::outbound::Request;

/// The methods a call may have.
pub const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
/// What the connection itself needs to say.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A call: parameters with their templates evaluated.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Call {
    method: Option<String>,
    url: Option<String>,
    headers: Option<Map<String, Value>>,
    query: Option<Map<String, Value>>,
    body: Value,
    body_type: Option<BodyType>,
    /// The credential to call with.
    pub credential_id: Option<String>,
    pub(super) pagination: Option<Pagination>,
    fail_on: Option<FailOn>,
    pub(super) follow_redirects: Option<bool>,
    pub(super) response_type: Option<ResponseType>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailOn {
    ErrorStatus,
    Never,
}

impl Call {
    /// Reads evaluated parameters.
    ///
    /// # Errors
    /// When they are of the wrong types, as templates may give them.
    pub fn read(parameters: Value) -> Result<Self, NodeError> {
        serde_path_to_error::deserialize(parameters).map_err(|error| NodeError::expression(error.to_string()))
    }

    /// Where it goes, with the query joined to the URL's own.
    pub(super) fn url(&self) -> Result<Url, NodeError> {
        let text = self.url.as_deref().unwrap_or_default().trim();
        let mut url = Url::parse(text).map_err(|error| {
            NodeError::expression(format!(
                "url must be a whole URL, such as https://api.example.com/: {error}"
            ))
        })?;
        for (name, value) in self.query.iter().flatten() {
            for text in texts(name, value)? {
                url.query_pairs_mut().append_pair(name, &text);
            }
        }
        Ok(url)
    }

    pub(super) fn fails_on_status(&self) -> bool {
        self.fail_on != Some(FailOn::Never)
    }

    /// The request for one URL.
    pub(super) fn request(&self, url: Url, timeout: Duration) -> Result<Request, NodeError> {
        let mut request = Request::new(self.method()?, url, timeout);
        request.follow_redirects = self.follow_redirects.unwrap_or(true);
        request.headers = self.headers()?;
        if !self.body.is_null() {
            let encoded = body::encode(self.body_type, &self.body)?;
            request.body = encoded.bytes;
            request
                .headers
                .entry(CONTENT_TYPE)
                .or_insert(encoded.content_type);
        }
        Ok(request)
    }

    /// What is asked of whom, for people.
    pub(super) fn summary(&self) -> String {
        let url = Url::parse(self.url.as_deref().unwrap_or_default()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        format!("{} {host}", self.method().unwrap_or_default())
    }

    pub(super) fn method(&self) -> Result<Method, NodeError> {
        let method = self.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
        let known = METHODS
            .contains(&method.as_str())
            .then(|| Method::try_from(method.as_str()));
        match known {
            Some(Ok(method)) => Ok(method),
            _ => Err(NodeError::expression(format!(
                "method must be one of {}",
                METHODS.join(", ")
            ))),
        }
    }

    fn headers(&self) -> Result<HeaderMap, NodeError> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers.iter().flatten() {
            let header = HeaderName::try_from(name)
                .map_err(|_| NodeError::expression(format!("headers: {name:?} is no name of a header")))?;
            if OF_THE_CONNECTION.contains(&header) {
                let message = format!("headers: {header} is for the connection to say and cannot be set");
                return Err(NodeError::expression(message));
            }
            for text in texts(name, value)? {
                let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
                    NodeError::expression(format!("headers: the value of {header} holds control characters"))
                })?;
                headers.append(header.clone(), value);
            }
        }
        Ok(headers)
    }
}

/// Takes out what a caller may have put into headers to prove who it is.
pub(super) fn without_private_headers(headers: &mut HeaderMap) {
    for private in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
        headers.remove(private);
    }
}

/// The texts of a value of headers, queries and forms: none for null, several for a list.
pub(super) fn texts(name: &str, value: &Value) -> Result<Vec<String>, NodeError> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(NodeError::expression(format!(
            "the value of {name} must be a text, a number, true or false, or a list of such"
        ))),
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(text).collect(),
        value => Ok(vec![text(value)?]),
    }
}

/// Whether doing it twice is doing it once, by the method's own meaning.
pub(super) fn is_repeatable(method: &Method) -> bool {
    method.is_idempotent()
}
