//! When something is due next.

use sqlx::AssertSqlSafe;

use super::StoreError;
use super::database::Database;

/// When something has to be looked at, and what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextWake {
    /// Epoch milliseconds.
    pub wake_at: i64,
    /// The database's time, in epoch milliseconds.
    pub now: i64,
}

impl NextWake {
    /// The earliest `wake_at` of such rows: a table named `r`, and which of it.
    pub(super) async fn earliest(database: &Database, rows: &str) -> Result<Option<Self>, StoreError> {
        let mut session = database.read().await?;
        let clock = session.dialect().clock_ms();
        let sql =
            format!("SELECT r.wake_at AS wake_at, {clock} AS now FROM {rows} ORDER BY r.wake_at LIMIT 1");
        let Some(row) = session.row(AssertSqlSafe(sql), &[]).await? else {
            return Ok(None);
        };
        Ok(Some(Self {
            wake_at: row.get("wake_at")?,
            now: row.get("now")?,
        }))
    }

    /// Whether its time has come.
    #[must_use]
    pub fn is_due(self) -> bool {
        self.wake_at <= self.now
    }
}
