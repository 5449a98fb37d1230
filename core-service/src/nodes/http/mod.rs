//! HTTP calls as nodes make them: from evaluated parameters to a node's output.
//!
//! One implementation for `http_request` and for the modules of apps, which differ only in where the parameters come
//! from. `call` reads the parameters, `exchange` sends and answers, `output` is what comes of it. Absent on purpose: connections and
//! addresses (`outbound`), when to try again (the engine).

mod body;
mod call;
mod exchange;
mod output;
mod pace;
mod pagination;
pub mod rehearsal;
mod token;

use std::sync::Arc;
use std::time::Duration;

use engine::failure::NodeError;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::RwLock;
use tokio::time::sleep;

pub use call::{Call, METHODS};
pub use pagination::Pagination;

use self::exchange::Exchange;
use self::pace::Pace;
use self::token::Lines;
use super::Execution;
use super::patient::TRY_AGAIN_AFTER;
use crate::connectors::{App, Apps, ToldFailure, Walk};
use crate::credentials::{CredentialError, Credentials, OpenCredential};
use crate::outbound::Outbound;
use crate::secret::{Hide, SecretError};
use crate::store::{Store, TokenFailureKind};

/// The code of nodes whose credential cannot be used.
pub(super) const CREDENTIAL_INVALID: &str = "CREDENTIAL_INVALID";
/// The code of nodes that got no usable answer.
const HTTP_ERROR: &str = "HTTP_ERROR";
const HTTP_BLOCKED: &str = "HTTP_BLOCKED";
/// How much longer than its node a request may take.
const GRACE: Duration = Duration::from_secs(1);

/// Makes calls. Cheap to clone.
#[derive(Clone)]
pub struct HttpCaller {
    outbound: Outbound,
    credentials: Credentials,
    store: Store,
    pace: Pace,
    /// Held by whoever renews a token.
    renewals: Arc<RwLock<()>>,
    /// Where those of this process wait who need the next token of a credential, so that one of them asks for all.
    lines: Lines,
}

/// What a call is made with, besides its parameters.
pub struct Caller<'a> {
    /// The app whose module calls; it says which hosts may be called.
    pub app: Option<&'a App>,
    /// Proves who is calling.
    pub credential: Option<&'a OpenCredential>,
    /// Takes out of failures what is secret besides the credential.
    pub hide: Hide,
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
            hide: execution.hide.clone(),
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
    pub fn new(outbound: Outbound, credentials: Credentials, store: Store) -> Self {
        Self {
            outbound,
            credentials,
            store,
            pace: Pace::default(),
            renewals: Arc::default(),
            lines: Lines::default(),
        }
    }

    /// A credential that can be used now, with its token, for its app as it was pinned.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub async fn usable(
        &self,
        organization_id: &str,
        credential_id: &str,
        pinned: &Apps,
    ) -> Result<OpenCredential, CredentialError> {
        let opened = self
            .credentials
            .active(organization_id, credential_id, pinned)
            .await?;
        self.ready(opened).await
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
            match self.usable(organization_id, id, pinned).await {
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
        let mut exchange = Exchange::new(self, call.url()?, caller)?;
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
    pub async fn walk(&self, walk: Walk<'_>, caller: Caller<'_>) -> Result<Value, NodeError> {
        let call = Call::read(walk.call().clone())?;
        let mut exchange = Exchange::new(self, call.url()?, caller)?;
        exchange.walk(walk, call).await
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
        let mut exchange = Exchange::new(self, call.url()?, caller)?;
        exchange.test(walk, &call).await
    }
}

fn refused_credential(error: &CredentialError) -> NodeError {
    match error {
        CredentialError::Token(error) => {
            let code = match error.failure.kind {
                TokenFailureKind::Temporary => "HTTP_UNREACHABLE",
                TokenFailureKind::Refused => CREDENTIAL_INVALID,
                TokenFailureKind::Blocked => HTTP_BLOCKED,
                TokenFailureKind::Unusable => HTTP_ERROR,
            };
            NodeError {
                temporary: error.failure.kind == TokenFailureKind::Temporary,
                retry_after_ms: error.retry_after_ms,
                ..NodeError::new(code, error.to_string())
            }
        }
        CredentialError::Secret(cause) => {
            tracing::error!(error = %cause, "a credential cannot be opened");
            NodeError::new("ENGINE_ERROR", "the credential cannot be opened at the moment")
        }
        error => NodeError::new(CREDENTIAL_INVALID, error.to_string()),
    }
}
