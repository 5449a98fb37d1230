//! A request as data: what it needs to be sent as it is, or with one thing changed.

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use test_support::{Answer, Api, percent_encoded};

use super::endpoint::Endpoint;

/// A request that succeeds.
#[derive(Clone, Default)]
pub(super) struct Example {
    /// Values of the path's parameters, in order.
    pub at: Vec<String>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    pub headers: Vec<(&'static str, String)>,
    /// Body; none of an endpoint without one.
    pub body: Option<Value>,
}

impl Example {
    /// Of an endpoint without parameters in its path.
    pub fn list() -> Self {
        Self::default()
    }

    /// About one thing.
    pub fn at(id: impl Into<String>) -> Self {
        Self {
            at: vec![id.into()],
            ..Self::default()
        }
    }

    /// With a body, and without parameters in its path.
    pub fn sent(body: Value) -> Self {
        Self::default().with(body)
    }

    /// About one thing of the one before.
    pub fn and(mut self, id: impl Into<String>) -> Self {
        self.at.push(id.into());
        self
    }

    /// With a body.
    pub fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// With a query parameter, in the place of one of that name.
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// With a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Path and query, from the root.
    pub fn target(&self, endpoint: &Endpoint) -> String {
        let mut values = self.at.iter();
        let segments = endpoint
            .route
            .path
            .split('/')
            .map(|segment| match segment.starts_with('{') {
                true => percent_encoded(
                    values
                        .next()
                        .unwrap_or_else(|| panic!("{}: an id is missing", endpoint.name)),
                ),
                false => segment.to_owned(),
            });
        let path = segments.collect::<Vec<_>>().join("/");
        let pairs = self.query.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
            .collect();
        match pairs.is_empty() {
            true => path,
            false => format!("{path}?{}", pairs.join("&")),
        }
    }

    /// The body as it is sent.
    pub fn bytes(&self) -> Bytes {
        self.body
            .as_ref()
            .map(Value::to_string)
            .unwrap_or_default()
            .into()
    }

    /// Sends it.
    pub async fn send(&self, api: &Api, endpoint: &Endpoint) -> Answer {
        self.send_bytes(api, endpoint, self.bytes()).await
    }

    /// Sends it with another body.
    pub async fn send_bytes(&self, api: &Api, endpoint: &Endpoint, body: Bytes) -> Answer {
        self.send_typed(api, endpoint, "application/json", body).await
    }

    /// Sends it with another body of a media type.
    pub async fn send_typed(&self, api: &Api, endpoint: &Endpoint, media_type: &str, body: Bytes) -> Answer {
        // The same id for all, so that equal answers are equal to the byte.
        let mut headers = vec![("x-request-id", "conformance")];
        if !body.is_empty() {
            headers.push(("content-type", media_type));
        }
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_str())));
        let verb: Method = endpoint.route.verb.parse().unwrap();
        api.send(verb, &self.target(endpoint), &headers, body).await
    }
}
