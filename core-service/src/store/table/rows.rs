//! The rows of a table as they are written and read, many at once.

use super::super::StoreError;
use super::super::database::Session;
use super::super::dialect::{BatchStatement, Kind};
use super::super::value::{Row as DatabaseRow, Value};
use super::unreadable;
use crate::table::Row;

/// The columns of a row `r`.
pub(super) const ROW_COLUMNS: &str =
    "r.id AS id, r.data AS data, r.created_at AS created_at, r.updated_at AS updated_at";

const INSERT: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("database_id", Kind::Text),
        ("data", Kind::Bytes),
        ("created_at", Kind::Integer),
        ("updated_at", Kind::Integer),
    ],
    tail: "INSERT INTO database_rows (id, database_id, data, created_at, updated_at) SELECT v.* FROM v",
};

const UPDATE: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("data", Kind::Bytes),
        ("updated_at", Kind::Integer),
    ],
    tail: "UPDATE database_rows SET data = v.data, updated_at = v.updated_at FROM v WHERE database_rows.id = v.id",
};

const DELETE: BatchStatement = BatchStatement {
    columns: &[("id", Kind::Text)],
    tail: "DELETE FROM database_rows WHERE id IN (SELECT v.id FROM v)",
};

/// Reads a row that selects [`ROW_COLUMNS`].
pub(super) fn from_row(row: &DatabaseRow) -> Result<Row, StoreError> {
    let data: Vec<u8> = row.get("data")?;
    Ok(Row {
        id: row.get("id")?,
        values: serde_json::from_slice(&data).map_err(unreadable)?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

pub(super) async fn insert(session: &mut Session, table_id: &str, rows: &[Row]) -> Result<(), StoreError> {
    let data = data(rows)?;
    let mut parameters: Vec<Value<'_>> = Vec::with_capacity(rows.len() * INSERT.columns.len());
    for (row, data) in rows.iter().zip(&data) {
        parameters.extend([
            Value::from(&row.id),
            Value::from(table_id),
            Value::from(data),
            Value::from(row.created_at),
            Value::from(row.updated_at),
        ]);
    }
    session.batch(&INSERT, &parameters).await.map(drop)
}

pub(super) async fn update(session: &mut Session, rows: &[Row]) -> Result<(), StoreError> {
    let data = data(rows)?;
    let mut parameters: Vec<Value<'_>> = Vec::with_capacity(rows.len() * UPDATE.columns.len());
    for (row, data) in rows.iter().zip(&data) {
        parameters.extend([
            Value::from(&row.id),
            Value::from(data),
            Value::from(row.updated_at),
        ]);
    }
    session.batch(&UPDATE, &parameters).await.map(drop)
}

pub(super) async fn delete(session: &mut Session, rows: &[Row]) -> Result<(), StoreError> {
    let ids: Vec<Value<'_>> = rows.iter().map(|row| Value::from(&row.id)).collect();
    session.batch(&DELETE, &ids).await.map(drop)
}

fn data(rows: &[Row]) -> Result<Vec<Vec<u8>>, StoreError> {
    rows.iter()
        .map(|row| serde_json::to_vec(&row.values).map_err(unreadable))
        .collect()
}
