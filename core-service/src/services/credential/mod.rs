//! Credentials: stored access to the services that nodes talk to. The page where a person finishes one is in `pages`.

mod create;
mod graph;
mod options;
mod verify;

pub(super) use graph::{check_credentials, credential_apps, credential_problems};

use contract::json::Words as _;
use contract::scope::{CredentialRead, CredentialUse, CredentialWrite};
use contract::v1;
use wire::cursor::Pages;

use super::change::Change;
use super::reference::unresolvable;
use super::{Services, given, page_size, service};
use crate::auth::Authorized;
use crate::credentials::CredentialError;
use crate::error::{Error, Result};
use crate::store::{Credential, CredentialChange};

const DEFAULT_PAGE: i64 = 50;

pub(super) struct Credentials {
    services: Services,
}

contract::credential_service_methods!(service, Credentials);

impl Credentials {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_credentials(
        &self,
        caller: Authorized<CredentialRead>,
        request: v1::ListCredentialsRequest,
    ) -> Result<v1::ListCredentialsResponse> {
        let pages = Pages::of(&["credentials", &request.app_id]);
        let after: Option<String> = pages.position(&request.cursor)?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let mut rows = self
            .services
            .store
            .list_credentials(
                caller.organization_id(),
                given(&request.app_id),
                after.as_deref(),
                size + 1,
            )
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.id.clone());
        let data = rows.into_iter().map(shown).collect();
        Ok(v1::ListCredentialsResponse { data, next_cursor })
    }

    async fn update_credential(
        &self,
        caller: Authorized<CredentialWrite>,
        request: v1::UpdateCredentialRequest,
    ) -> Result<v1::UpdateCredentialResponse> {
        let fields = Change::new(request.update_mask.as_ref(), &["name", "folder_id"])?;
        let change = CredentialChange {
            name: fields.set("name", request.name)?,
            folder_id: fields.set_or_clear("folder_id", request.folder_id),
        };
        let store = &self.services.store;
        let updated = store
            .update_credential(&caller.actor(), caller.organization_id(), &request.id, &change)
            .await;
        Ok(v1::UpdateCredentialResponse {
            data: Some(shown(updated.map_err(unresolvable)?)),
        })
    }

    async fn delete_credential(
        &self,
        caller: Authorized<CredentialWrite>,
        request: v1::DeleteCredentialRequest,
    ) -> Result<v1::DeleteCredentialResponse> {
        let store = &self.services.store;
        store
            .delete_credential(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        Ok(v1::DeleteCredentialResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }

    async fn create_credential(
        &self,
        caller: Authorized<CredentialWrite>,
        request: v1::CreateCredentialRequest,
    ) -> Result<v1::CreateCredentialResponse> {
        create::create(&self.services, &caller, request).await
    }

    async fn verify_credential(
        &self,
        caller: Authorized<CredentialUse>,
        request: v1::VerifyCredentialRequest,
    ) -> Result<v1::VerifyCredentialResponse> {
        verify::verify(&self.services, &caller, &request.id).await
    }

    async fn list_dynamic_options(
        &self,
        caller: Authorized<CredentialUse>,
        request: v1::ListDynamicOptionsRequest,
    ) -> Result<v1::ListDynamicOptionsResponse> {
        options::list(&self.services, &caller, request).await
    }
}

fn shown(credential: Credential) -> v1::Credential {
    v1::Credential {
        id: credential.id,
        name: credential.name,
        app_id: credential.app_id,
        r#type: credential.connection_id,
        status: status(credential.status.as_word()),
        folder_id: credential.folder_id,
        created_at: credential.created_at,
        updated_at: credential.updated_at,
    }
}

fn status(word: &str) -> i32 {
    v1::CredentialStatus::from_word(word).unwrap_or_default()
}

impl From<CredentialError> for Error {
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::NotFound => Self::not_found("credential"),
            CredentialError::Secret(error) => error.into(),
            error @ (CredentialError::NotActive(_)
            | CredentialError::Orphan
            | CredentialError::Grant(_)
            | CredentialError::Token(_)) => Self::internal(error),
        }
    }
}
