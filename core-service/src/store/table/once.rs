//! What nodes write: once for each execution, however often it is executed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::super::Store;
use super::super::database::Session;
use super::super::effect::{self, Claim, Effect};
use super::write::{RowError, delete, insert, settle, update, upsert};
use super::{Table, load_for_update, unreadable};
use crate::table::{Row, RowProblem, parse_conditions};

/// A write of rows. Columns are named by id or name.
#[derive(Debug, Clone, Copy)]
pub enum RowWrite<'a> {
    /// Inserts these rows, all or none.
    Insert(&'a [Map<String, Json>]),
    /// Changes all rows that match.
    Update {
        /// Each named column equals its value.
        wanted: &'a Map<String, Json>,
        /// Null clears.
        changes: &'a Map<String, Json>,
    },
    /// Changes all rows that match or, when there is none, inserts one with the values of both.
    Upsert {
        /// Each named column equals its value.
        wanted: &'a Map<String, Json>,
        /// Null clears.
        given: &'a Map<String, Json>,
    },
    /// Deletes all rows that satisfy these filters: a JSON array.
    Delete {
        /// See [`parse_conditions`].
        filters: &'a str,
    },
}

/// What a write gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowsWritten {
    /// The rows as they were written, every column by its name. None of those that were deleted.
    pub rows: Vec<Map<String, Json>>,
    /// How many rows were written or deleted.
    pub count: i64,
}

impl Store {
    /// Writes rows under an effect. When the effect is there already, nothing is written and the first result given,
    /// whatever the table is by now.
    ///
    /// # Errors
    /// [`RowError::Problem`]; [`super::StoreError::NotFound`] of the table; when the database fails.
    pub async fn write_rows_once(
        &self,
        organization_id: &str,
        table_id: &str,
        effect: &Effect<'_>,
        write: RowWrite<'_>,
    ) -> Result<RowsWritten, RowError> {
        let transaction = self.database.write().await?;
        settle(transaction, async |session| {
            if let Claim::Again(result) = effect::claim(session, effect).await? {
                return Ok(serde_json::from_slice(&result).map_err(unreadable)?);
            }
            let table = load_for_update(session, organization_id, table_id).await?;
            let written = write.apply(session, &table).await?;
            let result = serde_json::to_vec(&written).map_err(unreadable)?;
            effect::record(session, effect, &result).await?;
            Ok(written)
        })
        .await
    }
}

impl RowWrite<'_> {
    async fn apply(self, session: &mut Session, table: &Table) -> Result<RowsWritten, RowError> {
        let rows = match self {
            Self::Insert(rows) => insert(session, table, rows).await?,
            Self::Update { wanted, changes } => update(session, table, wanted, changes).await?,
            Self::Upsert { wanted, given } => upsert(session, table, wanted, given).await?.into_rows(),
            Self::Delete { filters } => {
                let conditions = parse_conditions(&table.columns, filters).map_err(RowProblem::Invalid)?;
                let count = delete(session, table, &conditions).await?;
                return Ok(RowsWritten {
                    rows: Vec::new(),
                    count,
                });
            }
        };
        let object = |row: &Row| row.to_object(&table.columns);
        Ok(RowsWritten {
            count: i64::try_from(rows.len()).unwrap_or(i64::MAX),
            rows: rows.iter().map(object).collect(),
        })
    }
}
