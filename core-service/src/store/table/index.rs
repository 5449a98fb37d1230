//! The index: an entry for each row and indexed column, rows without a value included.

use std::collections::HashSet;

use super::super::StoreError;
use super::super::database::Session;
use super::super::dialect::{BatchStatement, Kind};
use super::super::value::{Value, values};
use crate::table::{Column, Key, NULL, Row};

const PUT: BatchStatement = BatchStatement {
    columns: &[
        ("row_id", Kind::Text),
        ("column_id", Kind::Text),
        ("database_id", Kind::Text),
        ("sort_key", Kind::Bytes),
    ],
    tail:
        "INSERT INTO database_row_keys (row_id, column_id, database_id, sort_key) SELECT v.* FROM v WHERE TRUE
           ON CONFLICT (row_id, column_id) DO UPDATE SET sort_key = excluded.sort_key",
};

const DELETE_ROWS: BatchStatement = BatchStatement {
    columns: &[("row_id", Kind::Text)],
    tail: "DELETE FROM database_row_keys WHERE row_id IN (SELECT v.row_id FROM v)",
};

const HOLDERS: BatchStatement = BatchStatement {
    columns: &[
        ("database_id", Kind::Text),
        ("column_id", Kind::Text),
        ("sort_key", Kind::Bytes),
    ],
    tail: "SELECT k.row_id AS row_id, k.sort_key AS sort_key FROM v JOIN database_row_keys k
           ON k.database_id = v.database_id AND k.column_id = v.column_id AND k.sort_key = v.sort_key",
};

/// Writes the entries of these rows in these columns.
pub(super) async fn put(
    session: &mut Session,
    table_id: &str,
    columns: &[&Column],
    rows: &[Row],
) -> Result<(), StoreError> {
    let keys: Vec<(&Row, &Column, Key)> = rows
        .iter()
        .flat_map(|row| columns.iter().map(move |column| (row, *column, row.key(column))))
        .collect();
    let mut parameters: Vec<Value<'_>> = Vec::with_capacity(keys.len() * PUT.columns.len());
    for (row, column, key) in &keys {
        parameters.extend(values![&row.id, &column.id, table_id, key]);
    }
    session.batch(&PUT, &parameters).await.map(drop)
}

/// Removes all entries of these rows.
pub(super) async fn delete_rows(session: &mut Session, rows: &[Row]) -> Result<(), StoreError> {
    let ids: Vec<Value<'_>> = rows.iter().map(|row| Value::from(&row.id)).collect();
    session.batch(&DELETE_ROWS, &ids).await.map(drop)
}

/// Removes all entries of a column.
pub(super) async fn delete_column(
    session: &mut Session,
    table_id: &str,
    column_id: &str,
) -> Result<(), StoreError> {
    session
        .execute(
            "DELETE FROM database_row_keys WHERE database_id = $1 AND column_id = $2",
            &values![table_id, column_id],
        )
        .await
        .map(drop)
}

/// Whether these rows, written now, would leave a value of the unique column to two rows. The table is locked.
pub(super) async fn would_repeat(
    session: &mut Session,
    table_id: &str,
    column: &Column,
    rows: &[Row],
) -> Result<bool, StoreError> {
    let keys: Vec<(&Row, Key)> = rows
        .iter()
        .map(|row| (row, row.key(column)))
        .filter(|(_, key)| key.as_slice() != NULL)
        .collect();
    let distinct: HashSet<&Key> = keys.iter().map(|(_, key)| key).collect();
    if distinct.len() < keys.len() {
        return Ok(true);
    }
    let mut parameters: Vec<Value<'_>> = Vec::with_capacity(keys.len() * HOLDERS.columns.len());
    for (_, key) in &keys {
        parameters.extend(values![table_id, &column.id, key]);
    }
    let own: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    for holder in session.batch_returning(&HOLDERS, &parameters).await? {
        let row_id: String = holder.get("row_id")?;
        // A row that is written now gives its old value up.
        if !own.contains(row_id.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}
