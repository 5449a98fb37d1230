//! Tokens: asking for one, and renewing those that are stored, on one node at a time.
//!
//! Whoever finds a token missing, due or refused asks the database for the lease on the next one. The one who gets it
//! fetches, in a task of its own, so that a node that is given up loses no token; all others wait for what comes of it. A
//! refresh token is thus presented once, however many runs need it. Absent on purpose: what is asked and what the answer
//! means (`connectors`), and keeping it (`credentials`).

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::call::Call;
use super::{HttpCaller, output};
use crate::clock;
use crate::connectors::{Issued, TokenGrant, TokenProblem};
use crate::credentials::{CredentialError, KeptToken, OpenCredential, TokenError};
use crate::outbound::OutboundError;
use crate::secret::{Mask, Secret};
use crate::store::{
    CredentialStatus, LeaseToken, NewToken, StoreError, Token, TokenFailureKind, TokenLease, Topic,
};

/// How long a token's endpoint may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the lease lasts: longer than asking may take, so that nobody else asks meanwhile.
const LEASE_MS: i64 = 15_000;
/// How often those who wait look when they hear nothing.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Between attempts to store a token, and how many there are: a minute in all.
const STORE_AGAIN_AFTER: Duration = Duration::from_millis(500);
const STORE_ATTEMPTS: usize = 120;

/// A line nobody stood in for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// One line for each credential.
#[derive(Clone)]
pub(super) struct Lines(Cache<String, Arc<Mutex<()>>>);

impl Default for Lines {
    fn default() -> Self {
        Self(Cache::builder().time_to_idle(FORGOTTEN_AFTER).build())
    }
}

impl HttpCaller {
    /// A credential with a token that can be used: fetched when there is none, renewed when it is due.
    ///
    /// # Errors
    /// When no token comes, and the one at hand cannot be used either.
    pub async fn ready(&self, opened: OpenCredential) -> Result<OpenCredential, CredentialError> {
        let is_due = |renew_at: i64| renew_at <= clock::now_ms();
        match opened.kept {
            None => Ok(opened),
            Some(kept) if kept.revision > 0 && !kept.renew_at.is_some_and(is_due) => Ok(opened),
            Some(kept) => self.next_token(opened, kept, false).await,
        }
    }

    /// A credential whose token was refused, with another token; nothing when there cannot be one.
    ///
    /// # Errors
    /// When no token comes.
    pub async fn renewed(&self, refused: &OpenCredential) -> Result<Option<OpenCredential>, CredentialError> {
        let renewable = refused.connection().next_grant(&refused.data).is_some();
        match refused.kept.filter(|_| renewable) {
            Some(kept) => self.next_token(refused.clone(), kept, true).await.map(Some),
            None => Ok(None),
        }
    }

    /// The credential with a token after the one it has, or with that while it is good.
    async fn next_token(
        &self,
        opened: OpenCredential,
        kept: KeptToken,
        is_refused: bool,
    ) -> Result<OpenCredential, CredentialError> {
        let is_good = || !is_refused && opened.data.has_token_at(clock::now_ms());
        let line = self.lines.0.get_with(opened.id.clone(), Arc::default);
        let _first = match line.try_lock() {
            Ok(first) => first,
            Err(_) if is_good() => return Ok(opened),
            Err(_) => line.lock().await,
        };
        let mut subscription = self.store.subscribe();
        let mut was_there = kept.revision > 0;
        loop {
            match self.credentials.token(&opened).await? {
                Some(next) if next.revision > kept.revision => {
                    return self.credentials.with_token(opened, &next).await;
                }
                // What was tried since this credential was read needs no other try for it.
                Some(Token {
                    failures,
                    failure: Some(failure),
                    ..
                }) if failures > kept.failures => return or_used_on(failure.into(), is_good(), opened),
                None if was_there => return Err(CredentialError::NotFound),
                _ => {}
            }
            // From here on, only a deleted credential has none.
            was_there = true;
            let asked = self.store.lease_token(&opened.id, kept.revision, LEASE_MS);
            match asked.await? {
                LeaseToken::Granted(lease) => {
                    return match self.renew(lease, opened.clone()).await {
                        Err(CredentialError::Token(error)) => or_used_on(error, is_good(), opened),
                        renewed => renewed,
                    };
                }
                LeaseToken::Changed => continue,
                LeaseToken::Held if is_good() => return Ok(opened),
                LeaseToken::Held => {}
            }
            let heard = async {
                while let Some(heard) = subscription.next().await {
                    if heard.topic == Topic::Tokens && heard.payload == opened.id {
                        break;
                    }
                }
            };
            tokio::select! {
                () = heard => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Fetches the next token and stores it, whatever becomes of the caller meanwhile.
    async fn renew(
        &self,
        lease: TokenLease,
        opened: OpenCredential,
    ) -> Result<OpenCredential, CredentialError> {
        let http = self.clone();
        // Before the lease is over for this process, the database is not closed.
        let busy = Arc::clone(&self.renewals).read_owned().await;
        let task = tokio::spawn(async move {
            let _busy = busy;
            http.renew_now(&lease, opened).await
        });
        let lost = |_| TokenError::new(TokenFailureKind::Temporary, "Renewing the token was broken off.");
        task.await.map_err(lost)?
    }

    async fn renew_now(
        &self,
        lease: &TokenLease,
        opened: OpenCredential,
    ) -> Result<OpenCredential, CredentialError> {
        let fetched = match opened.connection().next_grant(&opened.data) {
            Some(grant) => self.fetch_token(&opened, &grant).await,
            None => Err(expired()),
        };
        let issued = match fetched {
            Ok(issued) => issued,
            Err(error) => {
                tracing::warn!(credential_id = opened.id, %error, "a token could not be renewed");
                self.note(lease, &opened, &error).await?;
                return Err(error.into());
            }
        };
        let (organization_id, id) = (&opened.organization_id, &opened.id);
        let data = self
            .credentials
            .seal_token(organization_id, id, &issued.data)
            .await?;
        let token = NewToken {
            data: &data,
            renew_at: issued.renew_at,
        };
        match self.save(lease, &token).await? {
            Some(revision) => {
                tracing::debug!(credential_id = id, revision, "a token was fetched");
                Ok(opened.with_issued(issued, Some(revision)))
            }
            None => {
                let stored = self.credentials.token(&opened).await?;
                let stored = stored.ok_or(CredentialError::NotFound)?;
                self.credentials.with_token(opened, &stored).await
            }
        }
    }

    /// Stores a token, patiently: the one before may not work any more.
    async fn save(&self, lease: &TokenLease, token: &NewToken<'_>) -> Result<Option<i64>, StoreError> {
        for _ in 1..STORE_ATTEMPTS {
            match self.store.save_token(lease, token).await {
                Err(error) if error.is_temporary() => {
                    tracing::warn!(%error, "a token waits for the database");
                    sleep(STORE_AGAIN_AFTER).await;
                }
                saved => return saved,
            }
        }
        self.store.save_token(lease, token).await
    }

    async fn note(
        &self,
        lease: &TokenLease,
        opened: &OpenCredential,
        error: &TokenError,
    ) -> Result<(), StoreError> {
        let status = match error.is_over {
            true => CredentialStatus::Expired,
            false => CredentialStatus::Invalid,
        };
        match error.failure.kind {
            TokenFailureKind::Refused => {
                let organization_id = &opened.organization_id;
                self.store
                    .token_refused(lease, organization_id, status, &error.failure)
                    .await
            }
            TokenFailureKind::Temporary | TokenFailureKind::Blocked | TokenFailureKind::Unusable => {
                self.store.token_failed(lease, &error.failure).await
            }
        }
    }

    /// Asks for a token. Nothing is stored.
    ///
    /// # Errors
    /// When none comes.
    pub async fn fetch_token(
        &self,
        opened: &OpenCredential,
        grant: &TokenGrant<'_>,
    ) -> Result<Issued, TokenError> {
        let unusable = |message: String| TokenError::new(TokenFailureKind::Unusable, message);
        let (connection, data) = opened.connected();
        let parameters = opened.app.token_call(connection, data, grant);
        let parameters = parameters.map_err(|error| unusable(error.to_string()))?;
        let mask = mask(opened, grant, &parameters);
        let masked = |mut message: String| {
            mask.text(&mut message);
            unusable(message)
        };
        let call = Call::read(parameters).map_err(|error| masked(error.message))?;
        let url = call.url().map_err(|error| masked(error.message))?;
        let permitted = opened.app.permits(&url, Some(opened.connected()));
        permitted.map_err(|refused| TokenError::new(TokenFailureKind::Blocked, refused.to_string()))?;
        let request = call.request(url, PATIENCE);
        let request = request.map_err(|error| masked(error.message))?;
        let response = self.outbound.send(request).await?;
        let body = output::body(&response, None).map_err(|error| masked(error.message))?;
        let answer = output::of(&response, body, Duration::ZERO);
        let issued = connection.issued(data, &answer, &mask, clock::now_ms());
        issued.map_err(|problem| TokenError {
            retry_after_ms: output::retry_after_ms(response.status, &response.headers, clock::now_ms()),
            ..TokenError::of(problem, grant)
        })
    }

    /// Waits for the renewals that are under way.
    pub async fn settle(&self) {
        let _alone = self.renewals.write().await;
    }
}

impl TokenError {
    fn of(problem: TokenProblem, grant: &TokenGrant<'_>) -> Self {
        let (kind, is_over, reason) = match problem {
            TokenProblem::Over(reason) => {
                let is_over = !matches!(grant, TokenGrant::Own);
                (TokenFailureKind::Refused, is_over, reason)
            }
            TokenProblem::Refused(reason) => (TokenFailureKind::Refused, false, reason),
            TokenProblem::Temporary(reason) => (TokenFailureKind::Temporary, false, reason),
            TokenProblem::Unusable(reason) => (TokenFailureKind::Unusable, false, reason),
        };
        Self {
            is_over,
            ..Self::new(kind, reason)
        }
    }
}

impl From<OutboundError> for TokenError {
    fn from(error: OutboundError) -> Self {
        let kind = match &error {
            OutboundError::Blocked(_) => TokenFailureKind::Blocked,
            error if error.is_temporary() => TokenFailureKind::Temporary,
            _ => TokenFailureKind::Unusable,
        };
        Self::new(
            kind,
            format!("The service could not be asked for a token: {error}."),
        )
    }
}

/// The credential as it is when that is good for a while and a later try may help, else why there is no next token.
fn or_used_on(
    error: TokenError,
    is_good: bool,
    opened: OpenCredential,
) -> Result<OpenCredential, CredentialError> {
    match error.failure.kind {
        TokenFailureKind::Temporary if is_good => {
            tracing::warn!(credential_id = opened.id, %error, "a token that is due is used on");
            Ok(opened)
        }
        _ => Err(error.into()),
    }
}

/// A token ran out that nothing renews.
fn expired() -> TokenError {
    let reason =
        "The token has expired, and the service gave nothing to renew it by: a person has to consent again.";
    TokenError {
        is_over: true,
        ..TokenError::new(TokenFailureKind::Refused, reason)
    }
}

/// What must not be seen in an answer to a request for a token.
fn mask(opened: &OpenCredential, grant: &TokenGrant<'_>, parameters: &serde_json::Value) -> Mask {
    let mut hidden = opened.connection().secret_texts(&opened.data);
    if let TokenGrant::Code { code, verifier, .. } = grant {
        hidden.extend([(*code).clone(), (*verifier).clone()]);
    }
    let proof = parameters["headers"]["authorization"].as_str();
    let word = proof.and_then(|proof| proof.rsplit(' ').next());
    hidden.extend(word.map(|word| Secret::from(word.to_owned())));
    Mask::of(hidden.iter().map(Secret::expose))
}
