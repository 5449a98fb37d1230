//! Runs one statement over many rows: multi-row `VALUES` on SQLite, `UNNEST` on PostgreSQL.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::StoreError;
use super::database::Session;
use super::dialect::{BatchStatement, CHUNKS, Dialect, Kind};
use super::value::{Row, Value};

impl Session {
    /// Runs the statement over rows given one after the other in `values`; gives the number of rows it changed.
    pub(super) async fn batch(
        &mut self,
        statement: &BatchStatement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        for chunk in chunks(self.dialect(), statement, values) {
            changed += match self.dialect() {
                Dialect::Sqlite => {
                    let rows = chunk.len() / statement.columns.len();
                    self.execute(AssertSqlSafe(statement.for_sqlite(rows)), chunk)
                        .await?
                }
                Dialect::Postgres => self.execute_arrays(statement, chunk).await?,
            };
        }
        Ok(changed)
    }

    /// As `batch`, for statements whose tail ends in `RETURNING`.
    pub(super) async fn batch_returning(
        &mut self,
        statement: &BatchStatement,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut returned = Vec::new();
        for chunk in chunks(self.dialect(), statement, values) {
            returned.extend(match self.dialect() {
                Dialect::Sqlite => {
                    let rows = chunk.len() / statement.columns.len();
                    self.rows(AssertSqlSafe(statement.for_sqlite(rows)), chunk)
                        .await?
                }
                Dialect::Postgres => self.fetch_arrays(statement, chunk).await?,
            });
        }
        Ok(returned)
    }
}

/// Cuts the rows into the sizes that SQLite statements exist for. PostgreSQL takes them all at once.
fn chunks<'a, 'v>(
    dialect: Dialect,
    statement: &BatchStatement,
    values: &'a [Value<'v>],
) -> impl Iterator<Item = &'a [Value<'v>]> {
    let width = statement.columns.len();
    let mut rest = values;
    std::iter::from_fn(move || {
        let rows = rest.len() / width;
        let size = match dialect {
            Dialect::Sqlite => CHUNKS.into_iter().find(|size| *size <= rows)?,
            Dialect::Postgres if rows == 0 => return None,
            Dialect::Postgres => rows_of_one_message(rest, width),
        };
        let (chunk, after) = rest.split_at(size * width);
        rest = after;
        Some(chunk)
    })
}

/// What one message to PostgreSQL carries at most, in bytes, unless a single row is larger: what fits into one TLS
/// record. sqlx 0.9.0 does not set `TCP_NODELAY`, so a second record would wait 40 ms for the first one's receipt.
const MESSAGE: usize = 15 * 1024;

/// How many rows fit into one message.
fn rows_of_one_message(values: &[Value<'_>], width: usize) -> usize {
    let mut size = 0;
    let fitting = values.chunks(width).take_while(|row| {
        size += row.iter().map(Value::size).sum::<usize>();
        size <= MESSAGE
    });
    fitting.count().max(1)
}

/// Binds each column as one array.
pub(super) fn bind_arrays<'q>(
    mut query: Query<'q, sqlx::Postgres, PgArguments>,
    statement: &BatchStatement,
    values: &[Value<'_>],
) -> Query<'q, sqlx::Postgres, PgArguments> {
    let width = statement.columns.len();
    for (place, (_, kind)) in statement.columns.iter().enumerate() {
        let column = values.iter().skip(place).step_by(width);
        query = match kind {
            Kind::Text => query.bind(column.map(Value::text).collect::<Vec<_>>()),
            Kind::Integer => query.bind(column.map(Value::integer).collect::<Vec<_>>()),
            Kind::Bytes => query.bind(column.map(Value::bytes).collect::<Vec<_>>()),
            Kind::Boolean => query.bind(column.map(Value::boolean).collect::<Vec<_>>()),
        };
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_COLUMN: BatchStatement = BatchStatement {
        columns: &[("id", Kind::Text)],
        tail: "SELECT id FROM v",
    };

    fn sizes(dialect: Dialect, rows: usize) -> Vec<usize> {
        let values = vec![Value::Text(None); rows];
        chunks(dialect, &ONE_COLUMN, &values)
            .map(<[Value<'_>]>::len)
            .collect()
    }

    #[test]
    fn every_row_is_in_exactly_one_chunk() {
        assert_eq!(sizes(Dialect::Sqlite, 0), [0; 0]);
        assert_eq!(sizes(Dialect::Sqlite, 7), [4, 1, 1, 1]);
        assert_eq!(sizes(Dialect::Sqlite, 600), [256, 256, 64, 16, 4, 4]);
        assert_eq!(sizes(Dialect::Postgres, 0), [0; 0]);
        assert_eq!(sizes(Dialect::Postgres, 600), [600]);
    }

    #[test]
    fn a_message_to_postgres_is_bounded_but_never_empty() {
        let (small, large) = ("x".repeat(5_000), "x".repeat(MESSAGE + 1));
        let values = [&small, &small, &small, &small, &large, &small].map(Value::from);
        let sizes: Vec<usize> = chunks(Dialect::Postgres, &ONE_COLUMN, &values)
            .map(<[Value<'_>]>::len)
            .collect();
        assert_eq!(sizes, [3, 1, 1, 1]);
    }
}
