//! Runs as they are read: one of them, and its journal.
//!
//! Runs are written by `commit` only. A run keeps its workflow's id for good; reading tells whether that workflow is
//! still there, so deleting a workflow with a million runs changes one row.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;

use super::run_batch::Segment;
use super::value::{Row, Value, values, words};
use super::{Store, StoreError};

words! {
    /// Where a run stands.
    RunStatus {
        /// Accepted; no node has started.
        Queued = "queued",
        /// Under way.
        Running = "running",
        /// Nothing to do before a timer or a person says so.
        Waiting = "waiting",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended by request.
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// `run_`
    pub id: String,
    /// The organization it belongs to.
    pub organization_id: String,
    /// The workflow; null when that was deleted. A claimed run always tells.
    pub workflow_id: Option<String>,
    /// Where it stands.
    pub status: RunStatus,
    /// The current attempt, from 1.
    pub attempt_number: i64,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds; set exactly when the status is terminal.
    pub finished_at: Option<i64>,
    /// What made it fail.
    pub error: Option<String>,
    /// Over all attempts.
    pub credits_used: i64,
    /// The deployed version it runs; null for a draft.
    pub version_no: Option<i64>,
    /// The frozen graph it runs.
    pub graph_hash: String,
    /// What it was started with, as the engine wrote it.
    pub start_input: Vec<u8>,
    /// The user who started it.
    pub created_by: Option<String>,
    /// The process that drives it.
    pub process_id: Option<String>,
    /// How often a process was lost while executing it, since it slept.
    pub crashes: i64,
    /// Its process suspects it, and no other run, of ending processes.
    pub on_trial: bool,
    /// Signals for it that nobody has acted upon.
    pub pending_signals: i64,
    /// Whether its credits are counted.
    pub metered: bool,
}

/// The columns of [`Run`], for a statement whose only table is `runs`.
pub(super) const RUN_COLUMNS: &str = "id, organization_id, workflow_id, status, attempt_number, created_at, \
     finished_at, error, credits_used, version_no, graph_hash, start_input, created_by, process_id, crashes, on_trial, \
     pending_signals, metered";

/// As `RUN_COLUMNS`, with the workflow's id null when that workflow is gone.
pub(super) const READ_COLUMNS: &str = "id, organization_id, \
     (SELECT w.id FROM workflows w WHERE w.id = runs.workflow_id) AS workflow_id, status, attempt_number, created_at, \
     finished_at, error, credits_used, version_no, graph_hash, start_input, created_by, process_id, crashes, on_trial, \
     pending_signals, metered";

impl Run {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        let error: Option<Vec<u8>> = row.get("error")?;
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            workflow_id: row.get("workflow_id")?,
            status: row.word("status")?,
            attempt_number: row.get("attempt_number")?,
            created_at: row.get("created_at")?,
            finished_at: row.get("finished_at")?,
            error: error.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            credits_used: row.get("credits_used")?,
            version_no: row.get("version_no")?,
            graph_hash: row.get("graph_hash")?,
            start_input: row.get("start_input")?,
            created_by: row.get("created_by")?,
            process_id: row.get("process_id")?,
            crashes: row.get("crashes")?,
            on_trial: row.get("on_trial")?,
            pending_signals: row.get("pending_signals")?,
            metered: row.get("metered")?,
        })
    }
}

impl Store {
    /// One run of an organization.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn run(&self, organization_id: &str, run_id: &str) -> Result<Run, StoreError> {
        let sql = format!("SELECT {READ_COLUMNS} FROM runs WHERE id = $1 AND organization_id = $2");
        let mut session = self.database.read().await?;
        let row = session
            .row(AssertSqlSafe(sql), &values![run_id, organization_id])
            .await?;
        Run::from_row(&row.ok_or(StoreError::NotFound("run"))?)
    }

    /// A run's journal in order: of one attempt, or of all.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn load_segments(
        &self,
        run_id: &str,
        attempt: Option<i64>,
    ) -> Result<Vec<Segment>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT attempt, seq, events FROM segments
                 WHERE run_id = $1 AND attempt >= $2 AND attempt <= $3 ORDER BY attempt, seq",
                &values![run_id, attempt.unwrap_or(0), attempt.unwrap_or(i64::MAX)],
            )
            .await?;
        rows.iter().map(Segment::from_row).collect()
    }

    /// The journals of the present attempts of these runs, in order, by run: those of at most `most_bytes` bytes each.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn short_journals(
        &self,
        run_ids: &[&str],
        most_bytes: i64,
    ) -> Result<HashMap<String, Vec<Segment>>, StoreError> {
        let mut session = self.database.read().await?;
        let one_of = session.dialect().one_of(1);
        let sql = format!(
            "SELECT s.run_id AS run_id, s.attempt AS attempt, s.seq AS seq, s.events AS events
             FROM segments s JOIN runs r ON r.id = s.run_id AND r.attempt_number = s.attempt
             WHERE s.run_id IN (SELECT run_id FROM segments WHERE run_id {one_of}
                                GROUP BY run_id HAVING SUM(LENGTH(events)) <= $2)
             ORDER BY s.run_id, s.seq"
        );
        let values = [Value::Texts(run_ids), Value::from(most_bytes)];
        let mut journals: HashMap<String, Vec<Segment>> = HashMap::with_capacity(run_ids.len());
        for row in session.rows(AssertSqlSafe(sql), &values).await? {
            let journal = journals.entry(row.get("run_id")?).or_default();
            journal.push(Segment::from_row(&row)?);
        }
        Ok(journals)
    }
}

impl Segment {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            attempt: row.get("attempt")?,
            seq: row.get("seq")?,
            events: row.get("events")?,
        })
    }
}
