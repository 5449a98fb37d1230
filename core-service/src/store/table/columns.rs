//! Replacing the columns of a table: what stays keeps its data, and all rows follow in the same transaction.

use std::collections::HashSet;

use contract::validation::Violation;

use super::super::activity::Actor;
use super::super::database::Session;
use super::super::page::Position;
use super::super::value::values;
use super::super::{Store, StoreError};
use super::query::{RowOrder, RowQuery, page};
use super::{Table, index, load_for_update, record_table, rows, stored_columns};
use crate::clock;
use crate::table::{Column, ColumnInput, Key, Row, Values, arrange, convert, key};

/// How many rows follow at a time.
const CHUNK: i64 = 1_000;

/// What came of replacing columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnsReplaced {
    /// The table as it is now.
    Replaced(Table),
    /// Nothing changed: the list is wrong, or rows cannot follow it.
    Refused(Vec<Violation>),
}

impl Store {
    /// Gives a table these columns. One whose name stays keeps its id and its values. All rows follow in one
    /// transaction, unless the change is none of theirs: with very many rows that takes seconds.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn replace_columns(
        &self,
        actor: &Actor,
        organization_id: &str,
        table_id: &str,
        wanted: Vec<ColumnInput>,
    ) -> Result<ColumnsReplaced, StoreError> {
        let mut transaction = self.database.write().await?;
        let mut table = load_for_update(&mut transaction, organization_id, table_id).await?;
        let columns = match arrange(&table.columns, wanted) {
            Ok(columns) => columns,
            Err(violations) => {
                transaction.rollback().await?;
                return Ok(ColumnsReplaced::Refused(violations));
            }
        };
        let mut move_rows = Move::new(&table, &columns);
        let violations = move_rows.run(&mut transaction).await?;
        if !violations.is_empty() {
            transaction.rollback().await?;
            return Ok(ColumnsReplaced::Refused(violations));
        }
        table.columns = columns;
        table.updated_at = clock::now_ms().max(table.updated_at + 1);
        transaction
            .execute(
                "UPDATE databases SET columns = $2, updated_at = $3 WHERE id = $1",
                &values![table_id, &stored_columns(&table.columns)?, table.updated_at],
            )
            .await?;
        let fields = ["columns"];
        record_table(
            &mut transaction,
            actor,
            organization_id,
            &table,
            "database.updated",
            &fields,
        )
        .await?;
        transaction.commit().await?;
        Ok(ColumnsReplaced::Replaced(table))
    }
}

/// Rows on their way from one list of columns to another.
struct Move<'a> {
    table: &'a Table,
    columns: &'a [Column],
    /// The values seen of the column that becomes the unique key.
    seen: HashSet<Key>,
}

impl<'a> Move<'a> {
    fn new(table: &'a Table, columns: &'a [Column]) -> Self {
        Self {
            table,
            columns,
            seen: HashSet::new(),
        }
    }

    /// What the column was before.
    fn before(&self, column: &Column) -> Option<&'a Column> {
        self.table.columns.iter().find(|before| before.id == column.id)
    }

    fn changes_type(&self, column: &Column) -> bool {
        self.before(column)
            .is_some_and(|before| before.column_type != column.column_type)
    }

    /// Whether rows hold something else afterwards.
    fn changes_values(&self) -> bool {
        let is_dropped = |before: &Column| !self.columns.iter().any(|column| column.id == before.id);
        self.columns.iter().any(|column| self.changes_type(column))
            || self.table.columns.iter().any(is_dropped)
    }

    /// Columns whose index has to be made.
    fn newly_indexed(&self) -> Vec<&'a Column> {
        self.columns
            .iter()
            .filter(|column| {
                let was_indexed = self.before(column).is_some_and(|before| before.indexed);
                column.indexed && (!was_indexed || self.changes_type(column))
            })
            .collect()
    }

    /// Whether rows have to be looked at.
    fn concerns_rows(&self) -> bool {
        let asks_more = |column: &Column| {
            let before = self.before(column);
            column.required && !before.is_some_and(|before| before.required)
                || column.unique && !before.is_some_and(|before| before.unique)
        };
        self.table.row_count > 0
            && (self.changes_values()
                || !self.newly_indexed().is_empty()
                || self.columns.iter().any(asks_more))
    }

    /// Moves all rows; gives what keeps them from following.
    async fn run(&mut self, session: &mut Session) -> Result<Vec<Violation>, StoreError> {
        for column in &self.table.columns {
            let after = self.columns.iter().find(|after| after.id == column.id);
            if column.indexed && !after.is_some_and(|after| after.indexed) {
                index::delete_column(session, &self.table.id, &column.id).await?;
            }
        }
        if !self.concerns_rows() {
            return Ok(Vec::new());
        }
        let (rewrites, indexes) = (self.changes_values(), self.newly_indexed());
        let order = RowOrder {
            column: None,
            descending: false,
        };
        let mut after: Option<Position<Key>> = None;
        loop {
            let query = RowQuery {
                conditions: &[],
                order: &order,
                after: after.as_ref(),
                limit: CHUNK,
            };
            let mut chunk = page(session, self.table, &query).await?;
            let Some(last) = chunk.last() else {
                return Ok(Vec::new());
            };
            after = Some(Position {
                value: Key::new(),
                id: last.id.clone(),
            });
            let violations = self.follow(&mut chunk);
            if !violations.is_empty() {
                return Ok(violations);
            }
            if rewrites {
                rows::update(session, &chunk).await?;
            }
            index::put(session, &self.table.id, &indexes, &chunk).await?;
        }
    }

    /// Converts rows in place; each column that they cannot follow is named once.
    fn follow(&mut self, rows: &mut [Row]) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            if let Some((field, message)) = self.refusal(column, rows) {
                violations.push(Violation {
                    path: format!("columns[{place}].{field}"),
                    message: format!("of column {} {message}", column.name),
                });
            }
        }
        for row in rows {
            let values = std::mem::take(&mut row.values);
            row.values = self.values(values);
        }
        violations
    }

    fn refusal(&mut self, column: &Column, rows: &[Row]) -> Option<(&'static str, String)> {
        if !(self.changes_type(column) || column.required || column.unique) {
            return None;
        }
        for row in rows {
            let Some(value) = row.values.get(&column.id) else {
                if column.required {
                    return Some(("required", "cannot be set: a row has no value there".to_owned()));
                }
                continue;
            };
            let Some(value) = convert(value, column.column_type) else {
                let word = column.column_type.as_word();
                return Some(("type", format!("cannot be {word}: a stored value cannot follow")));
            };
            if column.unique && !self.seen.insert(key(column.column_type, &value)) {
                return Some((
                    "uniqueKey",
                    "cannot be set: two rows have the same value".to_owned(),
                ));
            }
        }
        None
    }

    fn values(&self, mut values: Values) -> Values {
        let kept = |column: &Column| {
            let value = values.remove(&column.id)?;
            let value = if self.changes_type(column) {
                convert(&value, column.column_type)?
            } else {
                value
            };
            Some((column.id.clone(), value))
        };
        self.columns.iter().filter_map(kept).collect()
    }
}
