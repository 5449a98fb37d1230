//! Folders: a tree that workflows and other things are kept in.

use contract::scope::{WorkflowRead, WorkflowWrite};
use contract::v1;

use super::change::Change;
use super::{Services, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::store::{Folder, FolderChange, StoreError, UpdateFolder};

pub(super) struct Folders {
    services: Services,
}

contract::folder_service_methods!(service, Folders);

impl Folders {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_folders(
        &self,
        caller: Authorized<WorkflowRead>,
        _request: v1::ListFoldersRequest,
    ) -> Result<v1::ListFoldersResponse> {
        let rows = self.services.store.list_folders(caller.organization_id()).await?;
        Ok(v1::ListFoldersResponse {
            data: rows.into_iter().map(shown).collect(),
        })
    }

    async fn create_folder(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::CreateFolderRequest,
    ) -> Result<v1::CreateFolderResponse> {
        let store = &self.services.store;
        let created = store
            .create_folder(
                &caller.actor(),
                caller.organization_id(),
                &request.name,
                request.parent_id.as_deref(),
            )
            .await;
        let folder = created.map_err(|error| match error {
            // The reference breaks when the parent is deleted at the same time.
            StoreError::NotFound("folder") | StoreError::BrokenReference(_) => unknown_parent(),
            other => other.into(),
        })?;
        Ok(v1::CreateFolderResponse {
            data: Some(shown(folder)),
        })
    }

    async fn update_folder(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::UpdateFolderRequest,
    ) -> Result<v1::UpdateFolderResponse> {
        let fields = Change::new(request.update_mask.as_ref(), &["name", "parent_id"])?;
        let change = FolderChange {
            name: fields.set("name", request.name.as_deref())?,
            parent_id: fields.set_or_clear("parent_id", request.parent_id.as_deref()),
        };
        let store = &self.services.store;
        let updated = store
            .update_folder(&caller.actor(), caller.organization_id(), &request.id, &change)
            .await;
        match updated {
            Ok(UpdateFolder::Updated(folder)) => Ok(v1::UpdateFolderResponse {
                data: Some(shown(folder)),
            }),
            Ok(UpdateFolder::Cycle) => Err(Error::invalid(
                "parentId",
                "must name a folder outside the one that moves",
            )),
            Ok(UpdateFolder::NoParent) | Err(StoreError::BrokenReference(_)) => Err(unknown_parent()),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete_folder(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::DeleteFolderRequest,
    ) -> Result<v1::DeleteFolderResponse> {
        let store = &self.services.store;
        store
            .delete_folder(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        Ok(v1::DeleteFolderResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }
}

fn shown(folder: Folder) -> v1::Folder {
    v1::Folder {
        id: folder.id,
        name: folder.name,
        parent_id: folder.parent_id,
    }
}

fn unknown_parent() -> Error {
    Error::invalid("parentId", "must name a folder of the organization")
}
