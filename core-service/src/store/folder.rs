//! Folders that order workflows, as trees of an organization.

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::page::name_key;
use super::value::{Row, values};
use super::{Store, StoreError};
use crate::{clock, id};

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// `folder_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// The folder it is in.
    pub parent_id: Option<String>,
}

impl Folder {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            parent_id: row.get("parent_id")?,
        })
    }
}

/// A folder `$2` of organization `$1` and all below it, as a list of ids. `UNION` ends it even on a cycle.
pub(super) const DESCENDANTS: &str = "WITH RECURSIVE tree(id) AS (
     SELECT id FROM folders WHERE organization_id = $1 AND id = $2
     UNION SELECT f.id FROM folders f JOIN tree ON f.parent_id = tree.id) SELECT id FROM tree";

impl Store {
    /// Makes a folder, inside `parent_id` when given.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the parent; when the database fails.
    pub async fn create_folder(
        &self,
        actor: &Actor,
        organization_id: &str,
        name: &str,
        parent_id: Option<&str>,
    ) -> Result<Folder, StoreError> {
        let folder = Folder {
            id: id::new(id::Kind::Folder),
            name: name.to_owned(),
            parent_id: parent_id.map(str::to_owned),
        };
        let mut transaction = self.database.write().await?;
        require_folder(&mut transaction, organization_id, parent_id).await?;
        transaction
            .execute(
                "INSERT INTO folders (id, organization_id, parent_id, name, name_key, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6)",
                &values![
                    &folder.id,
                    organization_id,
                    parent_id,
                    name,
                    &name_key(name),
                    clock::now_ms()
                ],
            )
            .await?;
        let entry = Entry {
            organization_id,
            action: "folder.created",
            label: name,
            target_id: &folder.id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await?;
        Ok(folder)
    }

    /// An organization's folders by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_folders(&self, organization_id: &str) -> Result<Vec<Folder>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, name, parent_id FROM folders WHERE organization_id = $1 ORDER BY name_key, id",
                &values![organization_id],
            )
            .await?;
        rows.iter().map(Folder::from_row).collect()
    }

    /// A folder and all below it; empty when the organization has no such folder.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn folder_descendants(
        &self,
        organization_id: &str,
        folder_id: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(DESCENDANTS, &values![organization_id, folder_id])
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
    }
}

/// Checks that a folder, if one is named, is the organization's.
pub(super) async fn require_folder(
    session: &mut Session,
    organization_id: &str,
    folder_id: Option<&str>,
) -> Result<(), StoreError> {
    let Some(folder_id) = folder_id else { return Ok(()) };
    let sql = "SELECT 1 FROM folders WHERE organization_id = $1 AND id = $2";
    session
        .row(sql, &values![organization_id, folder_id])
        .await?
        .map(drop)
        .ok_or(StoreError::NotFound("folder"))
}
