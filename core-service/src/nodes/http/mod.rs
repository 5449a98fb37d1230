//! HTTP calls as nodes make them: from evaluated parameters to a node's output.
//!
//! One implementation for `http_request` and for the modules of apps, which differ only in where the parameters come
//! from. Absent on purpose: connections and addresses (`outbound`), when to try again (the engine).

mod body;
mod call;
mod output;
mod pagination;

use std::time::{Duration, Instant};

use engine::failure::NodeError;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

pub use call::{Call, METHODS};
pub use pagination::Pagination;

use self::pagination::Pages;
use super::Execution;
use crate::connectors::App;
use crate::credentials::{CredentialError, Credentials, OpenCredential};
use crate::outbound::{MAX_BODY_BYTES, Outbound, OutboundError, Response, Secrets};
use crate::secret::{Mask, Secret};

/// The code of nodes whose credential cannot be used.
const CREDENTIAL_INVALID: &str = "CREDENTIAL_INVALID";
/// The code of nodes that got no usable answer.
const HTTP_ERROR: &str = "HTTP_ERROR";
const HTTP_BLOCKED: &str = "HTTP_BLOCKED";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How much longer than its node a request may take.
const GRACE: Duration = Duration::from_secs(1);

/// Makes calls. Cheap to clone.
#[derive(Clone)]
pub struct HttpCaller {
    outbound: Outbound,
    credentials: Credentials,
}

/// What a call is made with, besides its parameters.
pub struct Caller<'a> {
    /// The app whose module calls; it says which hosts may be called.
    pub app: Option<&'a App>,
    /// Proves who is calling.
    pub credential: Option<&'a OpenCredential>,
    /// The same however often the call is repeated.
    pub idempotency_key: Option<String>,
    /// How long each request may take.
    pub timeout: Duration,
}

impl<'a> Caller<'a> {
    /// The caller that a node's execution is.
    pub fn of_node(
        execution: &Execution,
        app: Option<&'a App>,
        credential: Option<&'a OpenCredential>,
    ) -> Self {
        Self {
            app,
            credential,
            idempotency_key: Some(execution.idempotency_key()),
            // The runtime ends the node when its time is over; this is for what it might overlook.
            timeout: Duration::from_millis(execution.timeout_ms).saturating_add(GRACE),
        }
    }
}

impl HttpCaller {
    /// A caller with these credentials.
    pub fn new(outbound: Outbound, credentials: Credentials) -> Self {
        Self {
            outbound,
            credentials,
        }
    }

    /// The credential that an execution names.
    ///
    /// # Errors
    /// When it cannot be used: `CREDENTIAL_INVALID`.
    pub async fn credential(
        &self,
        execution: &Execution,
        credential_id: Option<&str>,
    ) -> Result<Option<OpenCredential>, NodeError> {
        let Some(id) = credential_id else { return Ok(None) };
        let opened = self.credentials.active(&execution.organization_id, id).await;
        opened.map(Some).map_err(|error| refused_credential(&error))
    }

    /// Makes a call, page by page when it asks for that. What the credential adds is masked in all that comes of it.
    ///
    /// # Errors
    /// `HTTP_BLOCKED`, `HTTP_UNREACHABLE`, `HTTP_ERROR`, `CREDENTIAL_INVALID`, or `EXPRESSION_ERROR` of parameters
    /// that make no request.
    pub async fn call(&self, call: Call, caller: Caller<'_>) -> Result<Value, NodeError> {
        let grant = caller.credential.map(OpenCredential::grant).transpose();
        let grant = grant.map_err(|error| refused_credential(&error.into()))?;
        let hidden = grant.iter().flat_map(|grant| &grant.hidden).map(Secret::expose);
        let exchange = Exchange {
            outbound: &self.outbound,
            home: call.url()?,
            mask: Mask::of(hidden),
            secrets: grant.map(|grant| grant.secrets).unwrap_or_default(),
            call,
            caller,
        };
        let mut output = match &exchange.call.pagination {
            None => exchange.whole().await?,
            Some(pagination) => exchange.paged(pagination).await?,
        };
        // What came from outside; the names of the output's own fields stay.
        for part in ["headers", "body"] {
            output
                .get_mut(part)
                .into_iter()
                .for_each(|part| exchange.mask.value(part));
        }
        Ok(output)
    }
}

/// A call under way.
struct Exchange<'a> {
    outbound: &'a Outbound,
    call: Call,
    caller: Caller<'a>,
    /// Where it began; secrets go nowhere else.
    home: Url,
    secrets: Secrets,
    mask: Mask,
}

impl Exchange<'_> {
    async fn whole(&self) -> Result<Value, NodeError> {
        let started = Instant::now();
        let response = self.send(self.home.clone(), 1).await?;
        let body = output::body(&response, self.call.response_type)?;
        Ok(output::of(&response, body, started.elapsed()))
    }

    async fn paged(&self, pagination: &Pagination) -> Result<Value, NodeError> {
        let started = Instant::now();
        let mut pages = Pages::new(pagination, self.home.clone());
        let mut size = 0;
        loop {
            let response = self.send(pages.url().clone(), pages.number()).await?;
            size += response.body.len();
            if size > MAX_BODY_BYTES {
                return Err(NodeError::new(HTTP_ERROR, OutboundError::TooLarge.to_string()));
            }
            let body = output::body(&response, self.call.response_type)?;
            if !pages.take(&response.headers, &body)? {
                let (items, summary) = pages.finish();
                let mut whole = output::of(&response, items, started.elapsed());
                if let Value::Object(fields) = &mut whole {
                    fields.extend(summary);
                }
                return Ok(whole);
            }
        }
    }

    /// The request for one page, counted from 1, and its response, which is no failure.
    async fn send(&self, url: Url, page: u32) -> Result<Response, NodeError> {
        let is_at_home = url.origin() == self.home.origin();
        self.check_host(&url, is_at_home)?;
        let mut request = self.call.request(url, self.caller.timeout)?;
        self.add_idempotency_key(&mut request.headers, page);
        match is_at_home {
            true => request.secrets = self.secrets.clone(),
            false => call::without_private_headers(&mut request.headers),
        }
        let what = format!(
            "{} {}",
            request.method,
            request.url.host_str().unwrap_or_default()
        );
        let response = self.outbound.send(request).await;
        let response = response.map_err(|error| NodeError::new(error.code(), error.to_string()))?;
        match self.call.fails_on_status() && response.status.as_u16() >= 400 {
            true => Err(output::failure(&what, &response, &self.mask)),
            false => Ok(response),
        }
    }

    /// A key that is the same whenever this page is asked for again, unless the call brings its own.
    fn add_idempotency_key(&self, headers: &mut HeaderMap, page: u32) {
        let Some(key) = &self.caller.idempotency_key else {
            return;
        };
        let key = match page {
            1 => HeaderValue::try_from(key),
            page => HeaderValue::try_from(format!("{key}-p{page}")),
        };
        if let Ok(key) = key {
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
    }

    /// Keeps requests, and credentials with them, at the hosts of their apps.
    fn check_host(&self, url: &Url, with_credential: bool) -> Result<(), NodeError> {
        let credential = self.caller.credential.filter(|_| with_credential);
        let of_credential = credential.map(|credential| &*credential.app);
        let mut apps = self.caller.app.into_iter().chain(of_credential);
        match apps.find(|app| !app.permits(url)) {
            None => Ok(()),
            Some(app) => {
                let host = url.host_str().unwrap_or_default();
                let message = format!("the app {} and its credentials do not go to {host}", app.id);
                Err(NodeError::new(HTTP_BLOCKED, message))
            }
        }
    }
}

fn refused_credential(error: &CredentialError) -> NodeError {
    match error {
        CredentialError::Secret(cause) => {
            tracing::error!(error = %cause, "a credential cannot be opened");
            NodeError::new("ENGINE_ERROR", "the credential cannot be opened at the moment")
        }
        error => NodeError::new(CREDENTIAL_INVALID, error.to_string()),
    }
}
