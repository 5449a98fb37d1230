//! HTTP calls as nodes make them: from evaluated parameters to a node's output.
//!
//! One implementation for `http_request` and for the modules of apps, which differ only in where the parameters come
//! from. Absent on purpose: connections and addresses (`outbound`), when to try again (the engine).

mod body;
mod call;
mod output;
mod pace;
mod pagination;
pub mod rehearsal;

use std::time::{Duration, Instant};

use engine::failure::NodeError;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

pub use call::{Call, METHODS};
pub use pagination::Pagination;

use self::pace::Pace;
use self::pagination::Pages;
use super::Execution;
use super::patient::TRY_AGAIN_AFTER;
use crate::connectors::{App, Apps, Step, TemplateError, ToldFailure, Walk};
use crate::credentials::{CredentialError, Credentials, OpenCredential};
use crate::outbound::{MAX_BODY_BYTES, Outbound, OutboundError, Response, Secrets};
use crate::secret::{Mask, Secret, SecretError};

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
    pace: Pace,
}

/// What a call is made with, besides its parameters.
pub struct Caller<'a> {
    /// The app whose module calls; it says which hosts may be called.
    pub app: Option<&'a App>,
    /// Proves who is calling.
    pub credential: Option<&'a OpenCredential>,
    /// The same however often the call is repeated.
    pub idempotency_key: Option<String>,
    /// Whose rate is counted: the credential's, and without one the organization's.
    pub account: String,
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
            account: account(&execution.organization_id, execution.credential_id.as_deref()),
            // The runtime ends the node when its time is over; this is for what it might overlook.
            timeout: Duration::from_millis(execution.timeout_ms).saturating_add(GRACE),
        }
    }
}

/// Whose rate calls with a credential count for.
pub fn account(organization_id: &str, credential_id: Option<&str>) -> String {
    credential_id.unwrap_or(organization_id).to_owned()
}

impl HttpCaller {
    /// A caller with these credentials.
    pub fn new(outbound: Outbound, credentials: Credentials) -> Self {
        Self {
            outbound,
            credentials,
            pace: Pace::default(),
        }
    }

    /// The credential that a node names, for the app as the node's graph pinned it.
    ///
    /// # Errors
    /// When it cannot be used: `CREDENTIAL_INVALID`.
    pub async fn credential(
        &self,
        organization_id: &str,
        credential_id: Option<&str>,
        pinned: &Apps,
    ) -> Result<Option<OpenCredential>, NodeError> {
        let Some(id) = credential_id else { return Ok(None) };
        loop {
            match self.credentials.active(organization_id, id, pinned).await {
                // The time-out of the attempt ends this.
                Err(CredentialError::Secret(SecretError::Store(error))) if error.is_temporary() => {
                    tracing::warn!(%error, "a node waits for the database");
                    sleep(TRY_AGAIN_AFTER).await;
                }
                opened => return opened.map(Some).map_err(|error| refused_credential(&error)),
            }
        }
    }

    /// Makes a call, page by page when it asks for that. What the credential adds is masked in all that comes of it.
    ///
    /// # Errors
    /// `HTTP_BLOCKED`, `HTTP_UNREACHABLE`, `HTTP_ERROR`, `CREDENTIAL_INVALID`, or `EXPRESSION_ERROR` of parameters
    /// that make no request.
    pub async fn call(&self, call: Call, caller: Caller<'_>) -> Result<Value, NodeError> {
        let exchange = self.exchange(call.url()?, caller)?;
        let mut output = match &call.pagination {
            None => exchange.whole(&call).await?,
            Some(pagination) => exchange.paged(&call, pagination).await?,
        };
        exchange.mask(&mut output);
        Ok(output)
    }

    /// Makes the calls that a manifest's module asks for, and gives what it makes of the answers.
    ///
    /// # Errors
    /// As [`HttpCaller::call`], and with the codes of the manifest.
    pub async fn walk(&self, mut walk: Walk<'_>, caller: Caller<'_>) -> Result<Value, NodeError> {
        let mut call = Call::read(walk.call().clone())?;
        let exchange = self.exchange(call.url()?, caller)?;
        let mut size = 0;
        loop {
            let (response, answer) = exchange.answer(&call, walk.page()).await?;
            size += response.body.len();
            if size > MAX_BODY_BYTES {
                return Err(NodeError::new(HTTP_ERROR, OutboundError::TooLarge.to_string()));
            }
            if let Some(told) = walk.failure(&answer).map_err(|error| unreadable(&error))? {
                return Err(exchange.told(&call, &response, told));
            }
            exchange.check_status(&call, &response)?;
            match walk.take(&answer).map_err(|error| unreadable(&error))? {
                Step::Done(output) => return Ok(output),
                Step::Again => call = Call::read(walk.call().clone())?,
            }
        }
    }

    /// Makes the one call that tests a credential: the status of the answer, and the failure that it is by the manifest.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn test(
        &self,
        walk: &Walk<'_>,
        caller: Caller<'_>,
    ) -> Result<(StatusCode, Option<ToldFailure>), NodeError> {
        let mut call = Call::read(walk.call().clone())?;
        // A redirect is an answer: it says that the caller is somebody.
        call.follow_redirects.get_or_insert(false);
        let exchange = self.exchange(call.url()?, caller)?;
        let (response, answer) = exchange.answer(&call, 1).await?;
        let told = walk.failure(&answer).map_err(|error| unreadable(&error))?;
        Ok((response.status, told))
    }

    fn exchange<'a>(&'a self, home: Url, caller: Caller<'a>) -> Result<Exchange<'a>, NodeError> {
        let grant = caller.credential.map(OpenCredential::grant).transpose();
        let grant = grant.map_err(|error| refused_credential(&error.into()))?;
        let hidden = grant.iter().flat_map(|grant| &grant.hidden).map(Secret::expose);
        Ok(Exchange {
            outbound: &self.outbound,
            pace: &self.pace,
            home,
            mask: Mask::of(hidden),
            secrets: grant.map(|grant| grant.secrets).unwrap_or_default(),
            caller,
        })
    }
}

/// Calls under way.
struct Exchange<'a> {
    outbound: &'a Outbound,
    pace: &'a Pace,
    caller: Caller<'a>,
    /// Where it began; secrets go nowhere else.
    home: Url,
    secrets: Secrets,
    mask: Mask,
}

impl Exchange<'_> {
    async fn whole(&self, call: &Call) -> Result<Value, NodeError> {
        let started = Instant::now();
        let response = self.send(call, self.home.clone(), 1).await?;
        self.check_status(call, &response)?;
        let body = output::body(&response, call.response_type)?;
        Ok(output::of(&response, body, started.elapsed()))
    }

    /// The answer to a call, whatever its status, and as templates see it.
    async fn answer(&self, call: &Call, page: u32) -> Result<(Response, Value), NodeError> {
        let started = Instant::now();
        let response = self.send(call, call.url()?, page).await?;
        let body = output::body(&response, call.response_type)?;
        let mut answer = output::of(&response, body, started.elapsed());
        self.mask(&mut answer);
        Ok((response, answer))
    }

    async fn paged(&self, call: &Call, pagination: &Pagination) -> Result<Value, NodeError> {
        let started = Instant::now();
        let mut pages = Pages::new(pagination, self.home.clone());
        let mut size = 0;
        loop {
            let response = self.send(call, pages.url().clone(), pages.number()).await?;
            self.check_status(call, &response)?;
            size += response.body.len();
            if size > MAX_BODY_BYTES {
                return Err(NodeError::new(HTTP_ERROR, OutboundError::TooLarge.to_string()));
            }
            let body = output::body(&response, call.response_type)?;
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

    /// The request for one page, counted from 1, and its response, whatever its status.
    async fn send(&self, call: &Call, url: Url, page: u32) -> Result<Response, NodeError> {
        let is_at_home = url.origin() == self.home.origin();
        self.check_host(&url, is_at_home)?;
        let mut request = call.request(url, self.caller.timeout)?;
        self.add_idempotency_key(&mut request.headers, page);
        match is_at_home {
            true => request.secrets = self.secrets.clone(),
            false => call::without_private_headers(&mut request.headers),
        }
        if let Some(app) = self.caller.app {
            self.pace.wait(app, &self.caller.account).await;
        }
        let may_repeat = is_repeatable(&request.method);
        let response = self.outbound.send(request).await;
        response.map_err(|error| NodeError {
            temporary: may_repeat && error.is_temporary(),
            ..NodeError::new(error.code(), error.to_string())
        })
    }

    /// Fails by the status, when the call lets it.
    fn check_status(&self, call: &Call, response: &Response) -> Result<(), NodeError> {
        match call.fails_on_status() && response.status.as_u16() >= 400 {
            true => Err(output::failure(call, response, &self.mask)),
            false => Ok(()),
        }
    }

    /// The failure that the manifest's rules have told.
    fn told(&self, call: &Call, response: &Response, told: ToldFailure) -> NodeError {
        output::named(output::failure(call, response, &self.mask), told)
    }

    /// Masks what came from outside; the names of the output's own fields stay.
    fn mask(&self, output: &mut Value) {
        for part in ["headers", "body"] {
            output
                .get_mut(part)
                .into_iter()
                .for_each(|part| self.mask.value(part));
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
        let opened = self.caller.credential;
        let of_credential = opened.filter(|_| with_credential).map(|opened| &*opened.app);
        for app in self.caller.app.into_iter().chain(of_credential) {
            let own = opened.filter(|opened| opened.app.id == app.id);
            let permitted = app.permits(url, own.map(OpenCredential::connected));
            permitted.map_err(|refused| NodeError::new(HTTP_BLOCKED, refused.to_string()))?;
        }
        Ok(())
    }
}

/// Whether doing it twice is doing it once, by the method's own meaning.
fn is_repeatable(method: &Method) -> bool {
    method.is_idempotent()
}

fn unreadable(error: &TemplateError) -> NodeError {
    NodeError::new(HTTP_ERROR, error.to_string())
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
