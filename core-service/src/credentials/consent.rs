//! Questions of consent while a person is at the service: what belongs to each, sealed until the answer comes.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Credentials;
use crate::connectors::ConnectionData;
use crate::secret::{Place, Secret, SecretError};
use crate::store::{Credential, NewConsentRequest};

/// The kind of place that questions are sealed for.
const SEALED_AS: &str = "consent";

/// What belongs to a question. Neither shown nor logged.
pub struct Consent {
    /// What a code is redeemed with.
    pub verifier: Secret,
    /// The token of the link that it began with.
    pub link: Secret,
    /// What the browser that it began in proves itself by.
    pub browser: Secret,
    /// What was typed into the form of the link.
    pub typed: ConnectionData,
}

/// A question that was asked.
pub struct AskedConsent {
    /// The credential that it is for.
    pub credential: Credential,
    /// What belongs to it.
    pub consent: Consent,
    /// Whether its answer can still be taken.
    pub is_open: bool,
}

/// A question as it is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    verifier: String,
    link: String,
    browser: String,
    typed: String,
}

impl Credentials {
    /// Keeps a question, until its credential's link is over.
    ///
    /// # Errors
    /// When it cannot be sealed or stored.
    pub async fn ask_consent(
        &self,
        credential: &Credential,
        state: &Secret,
        consent: &Consent,
    ) -> Result<(), SecretError> {
        let hash = hash(state);
        let sealed = Sealed {
            verifier: consent.verifier.expose().to_owned(),
            link: consent.link.expose().to_owned(),
            browser: consent.browser.expose().to_owned(),
            typed: consent.typed.to_secret().expose().to_owned(),
        };
        let text = serde_json::to_vec(&sealed).map_err(|_| SecretError::Damaged)?;
        let place_id = hex::encode(hash);
        let data = self.vault.seal(place(credential, &place_id), &text).await?;
        let new = NewConsentRequest {
            credential_id: &credential.id,
            state_hash: &hash,
            data: &data,
            expires_at: credential.link_expires_at.unwrap_or_default(),
        };
        Ok(self.store.ask_consent(&new).await?)
    }

    /// The question that a state is of.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn asked_consent(&self, state: &Secret) -> Result<Option<AskedConsent>, SecretError> {
        let hash = hash(state);
        let Some(request) = self.store.consent_request(&hash).await? else {
            return Ok(None);
        };
        let consent = self.open_consent(&request.credential, &hash, &request.data);
        Ok(Some(AskedConsent {
            consent: consent.await?,
            credential: request.credential,
            is_open: request.is_open,
        }))
    }

    /// Takes the answer to a question; `false` when that was done before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_consent(&self, state: &Secret) -> Result<bool, SecretError> {
        Ok(self.store.take_consent(&hash(state)).await?)
    }

    /// What was typed into the form of a credential's link before its person was sent to the service.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn typed_before(&self, credential: &Credential) -> Result<ConnectionData, SecretError> {
        match self.store.last_consent(&credential.id).await? {
            Some((hash, data)) => Ok(self.open_consent(credential, &hash, &data).await?.typed),
            None => Ok(ConnectionData::default()),
        }
    }

    async fn open_consent(
        &self,
        credential: &Credential,
        hash: &[u8],
        data: &[u8],
    ) -> Result<Consent, SecretError> {
        let place_id = hex::encode(hash);
        let text = self.vault.open_text(place(credential, &place_id), data).await?;
        let sealed: Sealed = serde_json::from_str(text.expose()).map_err(|_| SecretError::Damaged)?;
        let typed = ConnectionData::from_secret(&Secret::from(sealed.typed));
        Ok(Consent {
            verifier: sealed.verifier.into(),
            link: sealed.link.into(),
            browser: sealed.browser.into(),
            typed: typed.ok_or(SecretError::Damaged)?,
        })
    }
}

/// What the database finds a question by.
fn hash(state: &Secret) -> [u8; 32] {
    Sha256::digest(state.expose()).into()
}

fn place<'a>(credential: &'a Credential, id: &'a str) -> Place<'a> {
    Place {
        organization_id: &credential.organization_id,
        kind: SEALED_AS,
        id,
    }
}
