//! What the URL leads to that a service calls: its registration, opened, and the credential that its trigger uses.

use std::sync::Arc;
use std::time::Duration;

use crate::connectors::Connected;
use crate::credentials::{CredentialError, Credentials, OpenCredential};
use crate::error::{Error, Result};
use crate::lookups::Lookups;
use crate::registrations::{OpenRegistration, Registrations};
use crate::secret::SecretError;
use crate::store::{RegistrationTarget, Store};

/// How long a target is believed on nodes other than the one that changed it.
const BELIEVED: Duration = Duration::from_millis(500);
/// Targets that are kept.
const MOST_TARGETS: u64 = 100_000;

/// A trigger of an app, and what proves and answers deliveries.
pub(super) struct AppTarget {
    /// What the database says.
    pub(super) row: RegistrationTarget,
    /// The trigger's module, its parameters, and what its templates reach.
    pub(super) trigger: OpenRegistration,
    credential: Option<OpenCredential>,
}

impl AppTarget {
    /// The connection that the trigger uses.
    pub(super) fn connected(&self) -> Connected<'_> {
        self.credential.as_ref().map(OpenCredential::connected)
    }
}

/// Looks targets up, once in a while for each.
#[derive(Clone)]
pub struct AppTargets {
    store: Store,
    registrations: Registrations,
    credentials: Credentials,
    known: Lookups<String, Option<Arc<AppTarget>>, Error>,
}

impl AppTargets {
    /// Looks targets up in this store, and opens what they hold.
    pub fn new(store: Store, registrations: Registrations, credentials: Credentials) -> Self {
        Self {
            store,
            registrations,
            credentials,
            known: Lookups::for_a_while(MOST_TARGETS, BELIEVED),
        }
    }

    /// What a URL leads to, if its trigger is of a deployed version.
    pub(super) async fn find(&self, id: &str) -> Result<Option<Arc<AppTarget>>> {
        self.known.find(id, || self.look_up(id)).await
    }

    async fn look_up(&self, id: &str) -> Result<Option<Arc<AppTarget>>> {
        let Some(row) = self.store.registration_target(id).await? else {
            return Ok(None);
        };
        let trigger = self.registrations.open(&row.registration).await?;
        let credential = self.credential(&row, &trigger).await?;
        Ok(Some(Arc::new(AppTarget {
            row,
            trigger,
            credential,
        })))
    }

    /// The credential, when it can be used: without it, a delivery has to prove itself by the trigger's own secret.
    async fn credential(
        &self,
        row: &RegistrationTarget,
        trigger: &OpenRegistration,
    ) -> Result<Option<OpenCredential>> {
        let Some(id) = &trigger.credential_id else {
            return Ok(None);
        };
        let organization_id = &row.registration.organization_id;
        match self.credentials.active(organization_id, id, &trigger.apps).await {
            Ok(credential) => Ok(Some(credential).filter(|opened| opened.app.id == trigger.app.id)),
            Err(CredentialError::Secret(SecretError::Store(error))) => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, credential_id = id, "a delivery is taken without its trigger's credential");
                Ok(None)
            }
        }
    }

    /// Forgets what was looked up, so that a change made here holds at once.
    pub(super) fn forget(&self) {
        self.known.forget();
    }
}
