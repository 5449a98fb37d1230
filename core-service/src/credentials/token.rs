//! The tokens of credentials: sealed and opened, each by itself, so that what a person gave is never written again.

use super::{CredentialError, Credentials, OpenCredential};
use crate::connectors::{ConnectionData, Issued};
use crate::secret::{Place, SecretError};
use crate::store::{Token, TokenFailure, TokenFailureKind};

/// The kind of place that tokens are sealed for.
const SEALED_AS: &str = "token";

/// What was stored of a token when its credential was opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptToken {
    /// Rises with every token; 0 before the first.
    pub revision: i64,
    /// When it has to be renewed, epoch milliseconds.
    pub renew_at: Option<i64>,
    /// How often fetching has failed.
    pub failures: i64,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .failure.reason)]
pub struct TokenError {
    /// What is kept of it.
    pub failure: TokenFailure,
    /// Whether what was presented is over, so that a person has to consent again.
    pub is_over: bool,
    /// How long the service asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl TokenError {
    /// A failure of this kind, with a sentence without secrets.
    pub fn new(kind: TokenFailureKind, reason: impl Into<String>) -> Self {
        Self::from(TokenFailure {
            kind,
            reason: reason.into(),
        })
    }
}

impl From<TokenFailure> for TokenError {
    fn from(failure: TokenFailure) -> Self {
        Self {
            failure,
            is_over: false,
            retry_after_ms: None,
        }
    }
}

impl Credentials {
    /// A token as it is stored.
    ///
    /// # Errors
    /// When it cannot be sealed.
    pub async fn seal_token(
        &self,
        organization_id: &str,
        credential_id: &str,
        token: &ConnectionData,
    ) -> Result<Vec<u8>, SecretError> {
        let place = place(organization_id, credential_id);
        self.vault
            .seal(place, token.to_secret().expose().as_bytes())
            .await
    }

    /// The stored token of a credential; nothing before the first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn token(&self, opened: &OpenCredential) -> Result<Option<Token>, CredentialError> {
        Ok(self.store.token(&opened.id).await?)
    }

    /// A credential with a token that was stored.
    ///
    /// # Errors
    /// When the token cannot be opened.
    pub async fn with_token(
        &self,
        mut opened: OpenCredential,
        token: &Token,
    ) -> Result<OpenCredential, CredentialError> {
        if let Some(sealed) = &token.data {
            let place = place(&opened.organization_id, &opened.id);
            let text = self.vault.open_text(place, sealed).await?;
            let data = ConnectionData::from_secret(&text).ok_or(SecretError::Damaged)?;
            opened.data = opened.data.extended(data);
        }
        opened.kept = Some(KeptToken {
            revision: token.revision,
            renew_at: token.renew_at,
            failures: token.failures,
        });
        Ok(opened)
    }
}

impl OpenCredential {
    /// With a token that was just fetched, stored as this revision if it is.
    #[must_use]
    pub fn with_issued(mut self, issued: Issued, revision: Option<i64>) -> Self {
        self.kept = revision.map(|revision| KeptToken {
            revision,
            renew_at: issued.renew_at,
            failures: 0,
        });
        self.data = self.data.extended(issued.data);
        self
    }
}

fn place<'a>(organization_id: &'a str, credential_id: &'a str) -> Place<'a> {
    Place {
        organization_id,
        kind: SEALED_AS,
        id: credential_id,
    }
}
