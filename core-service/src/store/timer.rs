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

    /// Organizations with a timer that was due at `now` (epoch milliseconds), in order of id, from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn organizations_due(
        &self,
        now: i64,
        after: &str,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let mut session = self.database.read().await?;
        // From one organization to the next, however many timers each has.
        let rows = session
            .rows(
                "WITH RECURSIVE found(id) AS (
                     SELECT MIN(t.organization_id) FROM timers t WHERE t.organization_id > $2
                     UNION ALL
                     SELECT (SELECT MIN(t.organization_id) FROM timers t WHERE t.organization_id > found.id)
                     FROM found WHERE found.id IS NOT NULL)
                 SELECT found.id AS id FROM found WHERE EXISTS (
                     SELECT 1 FROM timers t WHERE t.organization_id = found.id AND t.due_at <= $1)
                 LIMIT $3",
                &values![now, after, limit],
            )
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
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
