//! Credentials in use: what is stored of one, opened and joined with the connection that says what it is for.
//!
//! Absent on purpose: permissions and changes, which the service does; fetching tokens, which is asking a service
//! (`nodes::http`).

mod consent;
mod token;

use std::sync::Arc;

pub use consent::{AskedConsent, Consent};
pub use token::{KeptToken, TokenError};

use crate::catalog::Catalog;
use crate::connectors::{App, Apps, Connection, ConnectionData, Grant, GrantError};
use crate::secret::{Place, SecretError, Vault};
use crate::store::{Credential, CredentialStatus, Store, StoreError};

/// The kind of place that what a credential holds is sealed for.
const SEALED_AS: &str = "credential";

/// Seals credentials and opens them. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    store: Store,
    vault: Vault,
    catalog: Catalog,
}

/// A credential whose secrets are at hand. Neither shown nor logged.
#[derive(Clone)]
pub struct OpenCredential {
    /// `cred_`
    pub id: String,
    /// Its organization.
    pub organization_id: String,
    /// The app it is for.
    pub app: Arc<App>,
    /// Which of the app's ways to connect it is.
    place: usize,
    /// What it holds, with its token.
    pub data: ConnectionData,
    /// What is stored of its token; none when it fetches none, or was not stored itself.
    pub kept: Option<KeptToken>,
}

/// A credential that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// There is none, or it is another organization's.
    #[error("the credential does not exist")]
    NotFound,
    /// It is not finished, or its service refuses it.
    #[error("the credential is not active: it is {}", .0.as_word())]
    NotActive(CredentialStatus),
    /// The catalog has no longer what it is for.
    #[error("the credential is for an app or a connection that there is no more")]
    Orphan,
    /// It makes no request.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// It has no token that can be used, and no other comes.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// It cannot be opened.
    #[error("the credential cannot be opened")]
    Secret(#[from] SecretError),
}

impl From<StoreError> for CredentialError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::NotFound,
            error => Self::Secret(error.into()),
        }
    }
}

impl Credentials {
    /// Those of a store, for the apps of the catalog.
    pub fn new(store: Store, vault: Vault, catalog: Catalog) -> Self {
        Self {
            store,
            vault,
            catalog,
        }
    }

    /// What a credential holds, as it is stored.
    ///
    /// # Errors
    /// When it cannot be sealed.
    pub async fn seal(
        &self,
        organization_id: &str,
        credential_id: &str,
        data: &ConnectionData,
    ) -> Result<Vec<u8>, SecretError> {
        let place = place(organization_id, credential_id);
        self.vault.seal(place, data.to_secret().expose().as_bytes()).await
    }

    /// Opens a stored credential, whatever its status, for its app as it is now.
    ///
    /// # Errors
    /// When it is sealed otherwise, or for something that there is no more.
    pub async fn open(&self, credential: &Credential) -> Result<OpenCredential, CredentialError> {
        self.open_pinned(credential, &Apps::default()).await
    }

    /// Opens a stored credential for its app as it was pinned; one that was not pinned is as it is now.
    async fn open_pinned(
        &self,
        credential: &Credential,
        pinned: &Apps,
    ) -> Result<OpenCredential, CredentialError> {
        let pinned = pinned.brought(&credential.app_id);
        let app = match pinned.map(|pinned| Arc::clone(&pinned.app)) {
            Some(app) => app,
            None => {
                let apps = self.catalog.newest(&credential.organization_id).await?;
                let app = apps.find(&credential.app_id).cloned();
                app.ok_or(CredentialError::Orphan)?
            }
        };
        let mut connections = app.connections.iter();
        let place_of = connections.position(|connection| connection.id == credential.connection_id);
        let place = place(&credential.organization_id, &credential.id);
        let text = self.vault.open_text(place, &credential.data).await?;
        let opened = OpenCredential {
            id: credential.id.clone(),
            organization_id: credential.organization_id.clone(),
            place: place_of.ok_or(CredentialError::Orphan)?,
            app,
            data: ConnectionData::from_secret(&text).ok_or(SecretError::Damaged)?,
            kept: None,
        };
        if !opened.connection().connection_type.fetches_token() {
            return Ok(opened);
        }
        match self.store.token(&credential.id).await? {
            Some(token) => self.with_token(opened, &token).await,
            None => Ok(OpenCredential {
                kept: Some(KeptToken::default()),
                ..opened
            }),
        }
    }

    /// A credential that can be used now, for its app as it was pinned; one that was not pinned is as it is now.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub async fn active(
        &self,
        organization_id: &str,
        credential_id: &str,
        pinned: &Apps,
    ) -> Result<OpenCredential, CredentialError> {
        let credential = self.store.credential(organization_id, credential_id).await?;
        match credential.status {
            CredentialStatus::Active => self.open_pinned(&credential, pinned).await,
            other => Err(CredentialError::NotActive(other)),
        }
    }
}

#[cfg(test)]
impl OpenCredential {
    /// One that is stored nowhere.
    pub fn made_up(app: &Arc<App>, connection_id: &str, data: ConnectionData) -> Self {
        let mut connections = app.connections.iter();
        let place = connections.position(|connection| connection.id == connection_id);
        Self {
            id: "cred_made_up".to_owned(),
            organization_id: "org_made_up".to_owned(),
            app: Arc::clone(app),
            place: place.unwrap_or_default(),
            data,
            kept: None,
        }
    }
}

impl OpenCredential {
    /// The way to connect.
    pub fn connection(&self) -> &Connection {
        // It was found there when the credential was opened.
        &self.app.connections[self.place]
    }

    /// The way to connect and its values, as manifests see them.
    pub fn connected(&self) -> (&Connection, &ConnectionData) {
        (self.connection(), &self.data)
    }

    /// What it adds to requests.
    ///
    /// # Errors
    /// When that is nothing a request can hold.
    pub fn grant(&self) -> Result<Grant, GrantError> {
        self.connection().grant(&self.data)
    }
}

fn place<'a>(organization_id: &'a str, credential_id: &'a str) -> Place<'a> {
    Place {
        organization_id,
        kind: SEALED_AS,
        id: credential_id,
    }
}
