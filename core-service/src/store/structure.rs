//! Structures: named shapes. What the fields mean is not the store's business.

use std::collections::HashSet;

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::{Session, Transaction};
use super::folder::require_folder;
use super::team::require_team;
use super::value::{Row, Value, values};
use super::workflow::assign;
use super::{Store, StoreError};
use crate::{clock, id};

/// A structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// `struct_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// JSON: the fields in order.
    pub fields: Vec<u8>,
    /// How many fields there are.
    pub field_count: i64,
    /// The folder it is in.
    pub folder_id: Option<String>,
    /// The team it belongs to; null for the organization's.
    pub team_id: Option<String>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

/// A structure to be made.
#[derive(Debug, Clone)]
pub struct NewStructure<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub description: Option<&'a str>,
    /// JSON: the fields in order.
    pub fields: &'a [u8],
    /// How many fields there are.
    pub field_count: i64,
    /// The folder it is in.
    pub folder_id: Option<&'a str>,
    /// The team it belongs to.
    pub team_id: Option<&'a str>,
}

/// What to change; `None` stays, `Some(None)` clears.
#[derive(Debug, Clone, Default)]
pub struct StructureChange {
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<Option<String>>,
    /// JSON of the fields, and their number.
    pub fields: Option<(Vec<u8>, i64)>,
    /// The folder it is in.
    pub folder_id: Option<Option<String>>,
}

/// What came of making a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StructureCreated {
    /// It is there.
    Created(Structure),
    /// The plan allows no more than this number, and there are that many.
    LimitReached(i64),
}

const COLUMNS: &str =
    "id, name, description, fields, field_count, folder_id, team_id, created_at, updated_at";

impl Structure {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            description: row.get("description")?,
            fields: row.get("fields")?,
            field_count: row.get("field_count")?,
            folder_id: row.get("folder_id")?,
            team_id: row.get("team_id")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

impl StructureChange {
    /// Sets what is to change and names it.
    fn apply(&self, structure: &mut Structure) -> Vec<&'static str> {
        let mut changed = Vec::new();
        let mut set = |name: &'static str, is_set: bool| is_set.then(|| changed.push(name));
        set("name", assign(&mut structure.name, self.name.as_ref()));
        set(
            "description",
            assign(&mut structure.description, self.description.as_ref()),
        );
        set(
            "folderId",
            assign(&mut structure.folder_id, self.folder_id.as_ref()),
        );
        if let Some((fields, count)) = &self.fields {
            structure.fields.clone_from(fields);
            structure.field_count = *count;
            set("fields", true);
        }
        changed
    }
}

impl Store {
    /// Makes a structure, if the plan allows one more. Of several calls at once, no more than allowed succeed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team or the folder; when the database fails.
    pub async fn create_structure(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewStructure<'_>,
    ) -> Result<StructureCreated, StoreError> {
        let mut transaction = self.database.write().await?;
        require_folder(&mut transaction, organization_id, new.folder_id).await?;
        require_team(&mut transaction, organization_id, new.team_id).await?;
        if let Some(most) = reached_limit(&mut transaction, organization_id).await? {
            transaction.rollback().await?;
            return Ok(StructureCreated::LimitReached(most));
        }
        let sql = format!(
            "INSERT INTO structures (id, organization_id, team_id, folder_id, name, description, fields, field_count,
                 created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) RETURNING {COLUMNS}"
        );
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    &id::new(id::Kind::Structure),
                    organization_id,
                    new.team_id,
                    new.folder_id,
                    new.name,
                    new.description,
                    new.fields,
                    new.field_count,
                    clock::now_ms(),
                ],
            )
            .await?;
        let structure = Structure::from_row(&row.ok_or(StoreError::NotFound("structure"))?)?;
        let (made, action) = (&structure, "structure.created");
        record_structure(&mut transaction, actor, organization_id, made, action, &[]).await?;
        transaction.commit().await?;
        Ok(StructureCreated::Created(structure))
    }

    /// Those of these ids that are structures of the organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn known_structures(
        &self,
        organization_id: &str,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let mut session = self.database.read().await?;
        let one_of = session.dialect().one_of(2);
        let sql = format!("SELECT id FROM structures WHERE organization_id = $1 AND id {one_of}");
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, Value::Texts(ids)])
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
    }

    /// An organization's structures, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_structures(
        &self,
        organization_id: &str,
        limit: i64,
    ) -> Result<Vec<Structure>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM structures WHERE organization_id = $1 ORDER BY id DESC LIMIT $2");
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, limit])
            .await?;
        rows.iter().map(Structure::from_row).collect()
    }

    /// One structure.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn structure(
        &self,
        organization_id: &str,
        structure_id: &str,
    ) -> Result<Structure, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, structure_id, "").await
    }

    /// Changes what a PATCH may change. Gives the structure as it is then.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the structure or the folder; when the database fails.
    pub async fn update_structure(
        &self,
        actor: &Actor,
        organization_id: &str,
        structure_id: &str,
        change: &StructureChange,
    ) -> Result<Structure, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let mut structure = load(&mut transaction, organization_id, structure_id, lock).await?;
        if let Some(folder_id) = &change.folder_id {
            require_folder(&mut transaction, organization_id, folder_id.as_deref()).await?;
        }
        let changed = change.apply(&mut structure);
        structure.updated_at = clock::now_ms().max(structure.updated_at + 1);
        transaction
            .execute(
                "UPDATE structures SET name = $2, description = $3, fields = $4, field_count = $5, folder_id = $6,
                     updated_at = $7 WHERE id = $1",
                &values![
                    structure_id,
                    &structure.name,
                    &structure.description,
                    &structure.fields,
                    structure.field_count,
                    &structure.folder_id,
                    structure.updated_at,
                ],
            )
            .await?;
        let (made, action) = (&structure, "structure.updated");
        record_structure(&mut transaction, actor, organization_id, made, action, &changed).await?;
        transaction.commit().await?;
        Ok(structure)
    }
}

/// The plan's limit, when there are that many structures. Calls that may reach it take turns.
async fn reached_limit(
    transaction: &mut Transaction,
    organization_id: &str,
) -> Result<Option<i64>, StoreError> {
    let row = transaction
        .row(
            "SELECT p.structures_created AS most FROM organizations o JOIN plans p ON p.id = o.plan_id
             WHERE o.id = $1",
            &values![organization_id],
        )
        .await?;
    let most: Option<i64> = row.ok_or(StoreError::NotFound("organization"))?.get("most")?;
    let Some(most) = most else { return Ok(None) };
    let lock = transaction.dialect().for_update();
    let sql = format!("SELECT 1 FROM organizations WHERE id = $1{lock}");
    transaction
        .row(AssertSqlSafe(sql), &values![organization_id])
        .await?;
    let row = transaction
        .row(
            "SELECT COUNT(*) AS number FROM structures WHERE organization_id = $1",
            &values![organization_id],
        )
        .await?;
    let number: i64 = row.map_or(Ok(0), |row| row.get("number"))?;
    Ok((number >= most).then_some(most))
}

async fn load(
    session: &mut Session,
    organization_id: &str,
    structure_id: &str,
    lock: &'static str,
) -> Result<Structure, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM structures WHERE organization_id = $1 AND id = $2{lock}");
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, structure_id])
        .await?;
    Structure::from_row(&row.ok_or(StoreError::NotFound("structure"))?)
}

async fn record_structure(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    structure: &Structure,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: &structure.name,
        target_id: &structure.id,
        fields,
    };
    record(session, actor, entry).await
}
