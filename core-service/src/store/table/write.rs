//! Writing rows: insert, update, upsert and delete. Each is one transaction with the number of rows.

use serde_json::{Map, Value as Json};

use super::super::database::{Session, Transaction};
use super::super::value::values;
use super::super::{Store, StoreError};
use super::query::{RowOrder, RowQuery, page};
use super::{Table, index, load_for_update, rows};
use crate::failpoint::Boundary;
use crate::table::{Column, Condition, Row, RowProblem, Values, by_column_name, given_values, matching};
use crate::{clock, id};

/// The most rows that one insert, update or upsert touches.
const MAX_ROWS: usize = 10_000;
/// How many rows a delete removes at a time.
const DELETE_CHUNK: i64 = 1_000;

/// Rows that were not written.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The rows are at fault.
    #[error(transparent)]
    Problem(#[from] RowProblem),
    /// There is no such table, or the database fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of an upsert.
#[derive(Debug, Clone, PartialEq)]
pub enum Upsert {
    /// No row matched; this one is new.
    Inserted(Row),
    /// These rows matched and were changed.
    Updated(Vec<Row>),
}

impl Store {
    /// Inserts rows, given by column id or name; all of them or none.
    ///
    /// # Errors
    /// [`RowError::Problem`]; [`StoreError::NotFound`] of the table; when the database fails.
    pub async fn insert_rows(
        &self,
        organization_id: &str,
        table_id: &str,
        given: &[Map<String, Json>],
    ) -> Result<Vec<Row>, RowError> {
        let mut transaction = self.database.write().await?;
        let table = load_for_update(&mut transaction, organization_id, table_id).await?;
        settle(transaction, async |session| insert(session, &table, given).await).await
    }

    /// The newest row that matches: each named column equals its value.
    ///
    /// # Errors
    /// [`RowError::Problem`] when `wanted` does not fit the table; [`StoreError::NotFound`] of the table; when the
    /// database fails.
    pub async fn row_by_match(
        &self,
        organization_id: &str,
        table_id: &str,
        wanted: &Map<String, Json>,
    ) -> Result<Option<Row>, RowError> {
        let table = self.table(organization_id, table_id).await?;
        let conditions = matching(&table.columns, wanted).map_err(RowProblem::Invalid)?;
        let query = RowQuery {
            conditions: &conditions,
            order: &RowOrder::NEWEST_FIRST,
            after: None,
            limit: 1,
        };
        Ok(self.list_rows(&table, &query).await?.into_iter().next())
    }

    /// Changes all rows that match, by column id or name; null clears.
    ///
    /// # Errors
    /// [`RowError::Problem`]; [`StoreError::NotFound`] of the table; when the database fails.
    pub async fn update_rows(
        &self,
        organization_id: &str,
        table_id: &str,
        wanted: &Map<String, Json>,
        changes: &Map<String, Json>,
    ) -> Result<Vec<Row>, RowError> {
        let mut transaction = self.database.write().await?;
        let table = load_for_update(&mut transaction, organization_id, table_id).await?;
        settle(transaction, async |session| {
            update(session, &table, wanted, changes).await
        })
        .await
    }

    /// Changes all rows that match or, when there is none, inserts one with the values of both.
    ///
    /// # Errors
    /// [`RowError::Problem`]; [`StoreError::NotFound`] of the table; when the database fails.
    pub async fn upsert_row(
        &self,
        organization_id: &str,
        table_id: &str,
        wanted: &Map<String, Json>,
        given: &Map<String, Json>,
    ) -> Result<Upsert, RowError> {
        let mut transaction = self.database.write().await?;
        let table = load_for_update(&mut transaction, organization_id, table_id).await?;
        settle(transaction, async |session| {
            upsert(session, &table, wanted, given).await
        })
        .await
    }

    /// Deletes all rows that satisfy the conditions, and gives their number.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the table; when the database fails.
    pub async fn delete_rows(
        &self,
        organization_id: &str,
        table_id: &str,
        conditions: &[Condition],
    ) -> Result<i64, StoreError> {
        let mut transaction = self.database.write().await?;
        let table = load_for_update(&mut transaction, organization_id, table_id).await?;
        let deleted = delete(&mut transaction, &table, conditions).await?;
        transaction.commit().await?;
        Ok(deleted)
    }
}

impl Upsert {
    pub(super) fn into_rows(self) -> Vec<Row> {
        match self {
            Self::Inserted(row) => vec![row],
            Self::Updated(rows) => rows,
        }
    }
}

/// Commits what `work` did, or undoes it.
pub(super) async fn settle<T>(
    mut transaction: Transaction,
    work: impl AsyncFnOnce(&mut Session) -> Result<T, RowError>,
) -> Result<T, RowError> {
    match work(&mut transaction).await {
        Ok(done) => {
            transaction.commit_at(&[Boundary::Effect]).await?;
            Ok(done)
        }
        Err(error) => {
            transaction.rollback().await?;
            Err(error)
        }
    }
}

pub(super) async fn insert(
    session: &mut Session,
    table: &Table,
    given: &[Map<String, Json>],
) -> Result<Vec<Row>, RowError> {
    let given_rows = given.len();
    refuse_too_many(given_rows)?;
    let now = clock::now_ms();
    let new = |(place, given): (usize, &Map<String, Json>)| {
        let values = given_values(&table.columns, Values::new(), given);
        Ok(Row {
            id: id::new(id::Kind::Row),
            values: values.map_err(|violations| match given_rows {
                1 => RowProblem::Invalid(violations),
                _ => RowProblem::InvalidRow(place, violations),
            })?,
            created_at: now,
            updated_at: now,
        })
    };
    let new: Vec<Row> = given
        .iter()
        .enumerate()
        .map(new)
        .collect::<Result<_, RowProblem>>()?;
    refuse_repeated(session, table, &new).await?;
    rows::insert(session, &table.id, &new).await?;
    index::put(session, &table.id, &indexed(table), &new).await?;
    count(session, table, i64::try_from(new.len()).unwrap_or(i64::MAX)).await?;
    Ok(new)
}

pub(super) async fn update(
    session: &mut Session,
    table: &Table,
    wanted: &Map<String, Json>,
    changes: &Map<String, Json>,
) -> Result<Vec<Row>, RowError> {
    let conditions = matching(&table.columns, wanted).map_err(RowProblem::Invalid)?;
    let query = RowQuery {
        conditions: &conditions,
        order: &RowOrder::NEWEST_FIRST,
        after: None,
        limit: i64::try_from(MAX_ROWS + 1).unwrap_or(i64::MAX),
    };
    let mut found = page(session, table, &query).await?;
    refuse_too_many(found.len())?;
    let now = clock::now_ms();
    for row in &mut found {
        let values = std::mem::take(&mut row.values);
        row.values = given_values(&table.columns, values, changes).map_err(RowProblem::Invalid)?;
        row.updated_at = now;
    }
    refuse_repeated(session, table, &found).await?;
    rows::update(session, &found).await?;
    let changed: Vec<&Column> = indexed(table)
        .into_iter()
        .filter(|column| changes.contains_key(&column.name) || changes.contains_key(&column.id))
        .collect();
    index::put(session, &table.id, &changed, &found).await?;
    Ok(found)
}

pub(super) async fn upsert(
    session: &mut Session,
    table: &Table,
    wanted: &Map<String, Json>,
    given: &Map<String, Json>,
) -> Result<Upsert, RowError> {
    let updated = update(session, table, wanted, given).await?;
    if !updated.is_empty() {
        return Ok(Upsert::Updated(updated));
    }
    let mut both = by_column_name(&table.columns, wanted);
    both.extend(by_column_name(&table.columns, given));
    let mut inserted = insert(session, table, &[both]).await?;
    Ok(Upsert::Inserted(inserted.remove(0)))
}

pub(super) async fn delete(
    session: &mut Session,
    table: &Table,
    conditions: &[Condition],
) -> Result<i64, StoreError> {
    let query = RowQuery {
        conditions,
        order: &RowOrder::NEWEST_FIRST,
        after: None,
        limit: DELETE_CHUNK,
    };
    let mut deleted = 0;
    loop {
        let found = page(session, table, &query).await?;
        if found.is_empty() {
            break;
        }
        index::delete_rows(session, &found).await?;
        rows::delete(session, &found).await?;
        deleted += i64::try_from(found.len()).unwrap_or(i64::MAX);
    }
    count(session, table, -deleted).await?;
    Ok(deleted)
}

fn refuse_too_many(rows: usize) -> Result<(), RowProblem> {
    if rows > MAX_ROWS {
        return Err(RowProblem::TooMany(MAX_ROWS));
    }
    Ok(())
}

async fn refuse_repeated(session: &mut Session, table: &Table, rows: &[Row]) -> Result<(), RowError> {
    let Some(column) = table.unique_column() else {
        return Ok(());
    };
    if index::would_repeat(session, &table.id, column, rows).await? {
        return Err(RowProblem::Duplicate(column.name.clone()).into());
    }
    Ok(())
}

fn indexed(table: &Table) -> Vec<&Column> {
    table.columns.iter().filter(|column| column.indexed).collect()
}

/// Adds to the number of rows.
async fn count(session: &mut Session, table: &Table, more: i64) -> Result<(), StoreError> {
    session
        .execute(
            "UPDATE databases SET row_count = row_count + $2 WHERE id = $1",
            &values![&table.id, more],
        )
        .await
        .map(drop)
}
