//! Folders that order workflows, as trees of an organization.

use sqlx::AssertSqlSafe;

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

/// What to change; `None` stays, `Some(None)` moves to the top.
#[derive(Debug, Clone, Copy, Default)]
pub struct FolderChange<'a> {
    /// Its name.
    pub name: Option<&'a str>,
    /// The folder it is in.
    pub parent_id: Option<Option<&'a str>>,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateFolder {
    /// The folder as it is now.
    Updated(Folder),
    /// It would be inside itself.
    Cycle,
    /// There is no folder to move it into.
    NoParent,
}

/// What moves when folder `$1` is deleted, to folder `$2` or the top: each kind of thing that a folder can hold.
const MOVE_CONTENTS: &[&str] = &[
    "UPDATE folders SET parent_id = $2 WHERE parent_id = $1",
    "UPDATE workflows SET folder_id = $2, updated_at = updated_at + 1 WHERE folder_id = $1",
    "UPDATE structures SET folder_id = $2, updated_at = updated_at + 1 WHERE folder_id = $1",
    "UPDATE functions SET folder_id = $2, updated_at = updated_at + 1 WHERE folder_id = $1",
    "UPDATE credentials SET folder_id = $2, updated_at = updated_at + 1 WHERE folder_id = $1",
];

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
        record_folder(
            &mut transaction,
            actor,
            organization_id,
            &folder,
            "folder.created",
            &[],
        )
        .await?;
        transaction.commit().await?;
        Ok(folder)
    }

    /// Renames a folder or moves it, `Some(None)` to the top.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the folder; when the database fails.
    pub async fn update_folder(
        &self,
        actor: &Actor,
        organization_id: &str,
        folder_id: &str,
        change: &FolderChange<'_>,
    ) -> Result<UpdateFolder, StoreError> {
        let mut transaction = self.database.write().await?;
        if let Some(Some(parent_id)) = change.parent_id {
            lock_tree(&mut transaction, organization_id).await?;
            let below = transaction
                .rows(DESCENDANTS, &values![organization_id, folder_id])
                .await?;
            let below = below.iter().map(|row| row.get("id"));
            if below
                .collect::<Result<Vec<String>, _>>()?
                .iter()
                .any(|id| id == parent_id)
            {
                transaction.rollback().await?;
                return Ok(UpdateFolder::Cycle);
            }
        }
        let mut folder = load_for_update(&mut transaction, organization_id, folder_id).await?;
        let mut fields = Vec::new();
        if let Some(name) = change.name {
            name.clone_into(&mut folder.name);
            fields.push("name");
        }
        if let Some(parent_id) = change.parent_id {
            if require_folder(&mut transaction, organization_id, parent_id)
                .await
                .is_err()
            {
                transaction.rollback().await?;
                return Ok(UpdateFolder::NoParent);
            }
            folder.parent_id = parent_id.map(str::to_owned);
            fields.push("parentId");
        }
        transaction
            .execute(
                "UPDATE folders SET name = $2, name_key = $3, parent_id = $4 WHERE id = $1",
                &values![
                    folder_id,
                    &folder.name,
                    &name_key(&folder.name),
                    &folder.parent_id
                ],
            )
            .await?;
        record_folder(
            &mut transaction,
            actor,
            organization_id,
            &folder,
            "folder.updated",
            &fields,
        )
        .await?;
        transaction.commit().await?;
        Ok(UpdateFolder::Updated(folder))
    }

    /// Deletes a folder; what it holds moves to its parent.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_folder(
        &self,
        actor: &Actor,
        organization_id: &str,
        folder_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        // Nothing can be put into it from here on.
        let folder = load_for_update(&mut transaction, organization_id, folder_id).await?;
        for statement in MOVE_CONTENTS {
            transaction
                .execute(*statement, &values![folder_id, &folder.parent_id])
                .await?;
        }
        transaction
            .execute("DELETE FROM folders WHERE id = $1", &values![folder_id])
            .await?;
        record_folder(
            &mut transaction,
            actor,
            organization_id,
            &folder,
            "folder.deleted",
            &[],
        )
        .await?;
        transaction.commit().await
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

/// Keeps others from moving folders, so that two moves cannot close a circle.
async fn lock_tree(session: &mut Session, organization_id: &str) -> Result<(), StoreError> {
    let lock = session.dialect().for_update();
    let sql = format!("SELECT id FROM folders WHERE organization_id = $1 ORDER BY id{lock}");
    session
        .rows(AssertSqlSafe(sql), &values![organization_id])
        .await
        .map(drop)
}

async fn load_for_update(
    session: &mut Session,
    organization_id: &str,
    folder_id: &str,
) -> Result<Folder, StoreError> {
    let lock = session.dialect().for_update();
    let sql = format!("SELECT id, name, parent_id FROM folders WHERE organization_id = $1 AND id = $2{lock}");
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, folder_id])
        .await?;
    Folder::from_row(&row.ok_or(StoreError::NotFound("folder"))?)
}

async fn record_folder(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    folder: &Folder,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: &folder.name,
        target_id: &folder.id,
        fields,
    };
    record(session, actor, entry).await
}
