//! Signals: what a request asks of a run that another process drives. The driver reads them, acts, and leaves what came
//! of them in the commit that records the act; a run that nobody drives is made ready by one.

use sqlx::AssertSqlSafe;

use super::value::{Row, Value, values};
use super::{Store, StoreError, Topic};
use crate::{clock, id};

/// A request to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// `sig_`; ids sort by time.
    pub id: String,
    /// The run it is for.
    pub run_id: String,
    /// What is asked; the runtime's word.
    pub kind: String,
    /// Its argument, as the runtime wrote it.
    pub payload: Vec<u8>,
}

impl Signal {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            run_id: row.get("run_id")?,
            kind: row.get("kind")?,
            payload: row.get("payload")?,
        })
    }
}

impl Store {
    /// Leaves a signal for an unfinished run and wakes whoever drives it. Gives the signal's id, or nothing when the
    /// run has finished.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the organization has no such run; when the database fails.
    pub async fn send_signal(
        &self,
        organization_id: &str,
        run_id: &str,
        kind: &str,
        payload: &[u8],
    ) -> Result<Option<String>, StoreError> {
        let signal_id = id::new(id::Kind::Signal);
        let mut transaction = self.database.write().await?;
        let woken = transaction
            .row(
                "UPDATE runs SET parked = parked AND finished_at IS NOT NULL,
                     pending_signals = pending_signals + CASE WHEN finished_at IS NULL THEN 1 ELSE 0 END
                 WHERE id = $1 AND organization_id = $2 RETURNING finished_at",
                &values![run_id, organization_id],
            )
            .await?;
        let Some(run) = woken else {
            transaction.rollback().await?;
            return Err(StoreError::NotFound("run"));
        };
        if run.get::<Option<i64>>("finished_at")?.is_some() {
            transaction.rollback().await?;
            return Ok(None);
        }
        transaction
            .execute(
                "INSERT INTO signals (id, run_id, kind, payload, created_at) VALUES ($1, $2, $3, $4, $5)",
                &values![&signal_id, run_id, kind, payload, clock::now_ms()],
            )
            .await?;
        transaction.commit().await?;
        self.notify(Topic::Signal, run_id).await?;
        Ok(Some(signal_id))
    }

    /// The signals for runs of a process, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pending_signals(&self, process_id: &str, limit: i64) -> Result<Vec<Signal>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT s.id AS id, s.run_id AS run_id, s.kind AS kind, s.payload AS payload
                 FROM signals s JOIN runs r ON r.id = s.run_id
                 WHERE r.process_id = $1 AND s.outcome IS NULL ORDER BY s.id LIMIT $2",
                &values![process_id, limit],
            )
            .await?;
        rows.iter().map(Signal::from_row).collect()
    }

    /// The signals for one run, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pending_signals_of(&self, run_id: &str, limit: i64) -> Result<Vec<Signal>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, run_id, kind, payload FROM signals
                 WHERE run_id = $1 AND outcome IS NULL ORDER BY id LIMIT $2",
                &values![run_id, limit],
            )
            .await?;
        rows.iter().map(Signal::from_row).collect()
    }

    /// What came of a signal, once; nothing as long as nobody has acted upon it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_signal_outcome(&self, signal_id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut session = self.database.read().await?;
        let sql = "SELECT outcome FROM signals WHERE id = $1 AND outcome IS NOT NULL";
        let Some(row) = session.row(sql, &values![signal_id]).await? else {
            return Ok(None);
        };
        let outcome = row.get("outcome")?;
        drop(session);
        let mut transaction = self.database.write().await?;
        transaction
            .execute("DELETE FROM signals WHERE id = $1", &values![signal_id])
            .await?;
        transaction.commit().await?;
        Ok(Some(outcome))
    }

    /// Forgets signals of runs that finished without acting upon them, and outcomes of signals sent before an instant
    /// (epoch milliseconds) that nobody asked for.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_late_signals(&self, sent_before: i64) -> Result<u64, StoreError> {
        let mut transaction = self.database.write().await?;
        // The runs first: one that begins again meanwhile must not be left with a number of signals that are gone.
        let late = transaction
            .rows(
                "UPDATE runs SET pending_signals = 0 WHERE finished_at IS NOT NULL AND id IN
                     (SELECT s.run_id FROM signals s WHERE s.outcome IS NULL)
                 RETURNING id",
                &[],
            )
            .await?;
        let late = late
            .iter()
            .map(|row| row.get("id"))
            .collect::<Result<Vec<String>, _>>()?;
        let late: Vec<&str> = late.iter().map(String::as_str).collect();
        let one_of = transaction.dialect().one_of(2);
        let sql = format!(
            "DELETE FROM signals WHERE created_at < $1 AND outcome IS NOT NULL OR outcome IS NULL AND run_id {one_of}"
        );
        let values = [Value::from(sent_before), Value::Texts(&late)];
        let deleted = transaction.execute(AssertSqlSafe(sql), &values).await?;
        transaction.commit().await?;
        Ok(deleted)
    }
}
