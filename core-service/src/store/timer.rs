//! Timers of runs: rows with a due time. They are set and cleared by `commit`, and wake parked runs when claimed.

use super::value::{Row, values};
use super::{Store, StoreError};

/// Something a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// Unique within the run; setting it again moves it.
    pub key: String,
    /// Epoch milliseconds.
    pub due_at: i64,
    /// What it is for; the runtime's word.
    pub kind: String,
}

impl Timer {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            key: row.get("key")?,
            due_at: row.get("due_at")?,
            kind: row.get("kind")?,
        })
    }
}

impl Store {
    /// A run's timers, soonest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_timers(&self, run_id: &str) -> Result<Vec<Timer>, StoreError> {
        let mut session = self.database.read().await?;
        let sql = "SELECT key, due_at, kind FROM timers WHERE run_id = $1 ORDER BY due_at, key";
        let rows = session.rows(sql, &values![run_id]).await?;
        rows.iter().map(Timer::from_row).collect()
    }

    /// When the next parked run is due (epoch milliseconds), if any waits for a timer. Claim again at that time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_due(&self) -> Result<Option<i64>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT t.due_at AS due_at FROM timers t JOIN runs r ON r.id = t.run_id
                 WHERE r.parked AND r.process_id IS NULL ORDER BY t.due_at LIMIT 1",
                &[],
            )
            .await?;
        row.map(|row| row.get("due_at")).transpose()
    }
}
