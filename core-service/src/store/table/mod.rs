//! Tables, which the contract calls databases: their schemas, their rows, and the index of the rows.
//!
//! A row is JSON. Each indexed column of it has an entry in `database_row_keys`, whose key sorts by bytes as values do
//! (see [`crate::table`]), so that both databases order and compare alike. Writers of one table take turns: each locks
//! the table's row first, which is what keeps unique values unique and the number of rows exact.

mod columns;
mod index;
mod once;
mod query;
mod rows;
mod statement;
mod write;

pub use columns::ColumnsReplaced;
pub use once::{RowWrite, RowsWritten};
pub use query::{RowOrder, RowQuery};
pub use write::{RowError, Upsert};

use std::collections::HashSet;

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::team::require_team;
use super::value::{Row, Value, values};
use super::{Store, StoreError};
use crate::table::Column;
use crate::{clock, id};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `db_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The team it belongs to; null for the organization's.
    pub team_id: Option<String>,
    /// Its columns in order.
    pub columns: Vec<Column>,
    /// How many rows it has.
    pub row_count: i64,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds; of the schema, not of the rows.
    pub updated_at: i64,
}

/// A table to be made.
#[derive(Debug, Clone)]
pub struct NewTable<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub description: Option<&'a str>,
    /// The team it belongs to.
    pub team_id: Option<&'a str>,
    /// Its columns in order.
    pub columns: &'a [Column],
}

const COLUMNS: &str = "id, name, description, team_id, columns, row_count, created_at, updated_at";

impl Table {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let columns: Vec<u8> = row.get("columns")?;
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            description: row.get("description")?,
            team_id: row.get("team_id")?,
            columns: serde_json::from_slice(&columns).map_err(unreadable)?,
            row_count: row.get("row_count")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }

    /// The column whose values are unique.
    #[must_use]
    pub fn unique_column(&self) -> Option<&Column> {
        self.columns.iter().find(|column| column.unique)
    }
}

impl Store {
    /// Makes a table without rows.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team; when the database fails.
    pub async fn create_table(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewTable<'_>,
    ) -> Result<Table, StoreError> {
        let mut transaction = self.database.write().await?;
        require_team(&mut transaction, organization_id, new.team_id).await?;
        let sql = format!(
            "INSERT INTO databases (id, organization_id, team_id, name, description, columns, row_count, created_at,
                 updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7) RETURNING {COLUMNS}"
        );
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    &id::new(id::Kind::Database),
                    organization_id,
                    new.team_id,
                    new.name,
                    new.description,
                    &stored_columns(new.columns)?,
                    clock::now_ms(),
                ],
            )
            .await?;
        let table = Table::from_row(&row.ok_or(StoreError::NotFound("database"))?)?;
        record_table(
            &mut transaction,
            actor,
            organization_id,
            &table,
            "database.created",
            &[],
        )
        .await?;
        transaction.commit().await?;
        Ok(table)
    }

    /// An organization's tables, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_tables(&self, organization_id: &str, limit: i64) -> Result<Vec<Table>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM databases WHERE organization_id = $1 AND deleted_at IS NULL
             ORDER BY id DESC LIMIT $2"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, limit])
            .await?;
        rows.iter().map(Table::from_row).collect()
    }

    /// One table.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn table(&self, organization_id: &str, table_id: &str) -> Result<Table, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, table_id, "").await
    }

    /// Those of these ids that are tables of the organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn known_tables(
        &self,
        organization_id: &str,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let mut session = self.database.read().await?;
        let one_of = session.dialect().one_of(2);
        let sql = format!(
            "SELECT id FROM databases WHERE organization_id = $1 AND deleted_at IS NULL AND id {one_of}"
        );
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, Value::Texts(ids)])
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
    }

    /// Hides a table and its rows for good.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_table(
        &self,
        actor: &Actor,
        organization_id: &str,
        table_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let table = load_for_update(&mut transaction, organization_id, table_id).await?;
        transaction
            .execute(
                "UPDATE databases SET deleted_at = $2 WHERE id = $1",
                &values![table_id, clock::now_ms()],
            )
            .await?;
        record_table(
            &mut transaction,
            actor,
            organization_id,
            &table,
            "database.deleted",
            &[],
        )
        .await?;
        transaction.commit().await
    }
}

async fn load(
    session: &mut Session,
    organization_id: &str,
    table_id: &str,
    lock: &'static str,
) -> Result<Table, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM databases WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL{lock}"
    );
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, table_id])
        .await?;
    Table::from_row(&row.ok_or(StoreError::NotFound("database"))?)
}

/// The table, which no one else writes to until the transaction ends.
async fn load_for_update(
    session: &mut Session,
    organization_id: &str,
    table_id: &str,
) -> Result<Table, StoreError> {
    let lock = session.dialect().for_update();
    load(session, organization_id, table_id, lock).await
}

fn stored_columns(columns: &[Column]) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(columns).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a table's JSON: {error}"))
}

async fn record_table(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    table: &Table,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: &table.name,
        target_id: &table.id,
        fields,
    };
    record(session, actor, entry).await
}
