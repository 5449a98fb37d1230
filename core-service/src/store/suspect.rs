//! Runs that their processes may have died of: lost while they were executing, and lost again.
//!
//! Of those that were driven together nobody can say which is to blame. So a process tries one of them at a time, and its
//! row says so: when the process is lost again, that one is. Absent on purpose: how long a trial takes (the runtime).

use sqlx::AssertSqlSafe;

use super::claim::{ClaimCause, ClaimedRun};
use super::commit::CommitError;
use super::dialect::Dialect;
use super::process::{LOST, Lease};
use super::run::{RUN_COLUMNS, Run};
use super::value::values;
use super::{Store, StoreError};
use crate::failpoint::Boundary;

/// What makes a lost run (`r`) a suspect. The first time a process is lost, that says nothing of its runs.
pub(super) fn suspect(dialect: Dialect) -> String {
    format!("r.crashes > 0 AND {}", at_work("r", dialect))
}

/// Whether a run's process was lost while it did something for the run: also when that waits, as far as its row says, but
/// was being woken. Its timer and its signals are there until the first write after that.
pub(super) fn at_work(run: &str, dialect: Dialect) -> String {
    let clock = dialect.clock_ms();
    format!(
        "({run}.status <> 'waiting' OR {run}.pending_signals > 0
             OR EXISTS (SELECT 1 FROM timers t WHERE t.run_id = {run}.id AND t.due_at <= {clock}))"
    )
}

impl Store {
    /// Whether there is a suspect that no living process drives.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_suspects(&self) -> Result<bool, StoreError> {
        let mut session = self.database.read().await?;
        let suspect = suspect(session.dialect());
        let sql = format!("SELECT 1 FROM runs r WHERE {LOST} AND {suspect} LIMIT 1");
        Ok(session.row(AssertSqlSafe(sql), &[]).await?.is_some())
    }

    /// Claims a suspect, if there is one, and puts it on trial. What is given still says whether it was on trial when
    /// its process was lost.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when this process was itself taken over; when the database fails.
    pub async fn claim_suspect(&self, lease: &Lease) -> Result<Option<ClaimedRun>, CommitError> {
        let mut transaction = self.fenced(lease).await?;
        let dialect = transaction.dialect();
        let (lock, suspect) = (dialect.skip_locked(), suspect(dialect));
        let sql = format!(
            "UPDATE runs SET process_id = $1, crashes = crashes + 1 WHERE id IN (
                 SELECT r.id FROM runs r WHERE {LOST} AND {suspect} ORDER BY r.id LIMIT 1{lock})
             RETURNING {RUN_COLUMNS}"
        );
        let row = transaction
            .row(AssertSqlSafe(sql), &values![&lease.process_id])
            .await?;
        let Some(row) = row else {
            transaction.rollback().await?;
            return Ok(None);
        };
        let run = Run::from_row(&row)?;
        transaction
            .execute("UPDATE runs SET on_trial = TRUE WHERE id = $1", &values![&run.id])
            .await?;
        transaction.commit_at(&[Boundary::Claim]).await?;
        Ok(Some(ClaimedRun {
            run,
            cause: ClaimCause::TakenOver,
        }))
    }

    /// The process has survived the run so far; another may be tried.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when this process was taken over; when the database fails.
    pub async fn end_trial(&self, lease: &Lease, run_id: &str) -> Result<(), CommitError> {
        let mut transaction = self.fenced(lease).await?;
        transaction
            .execute(
                "UPDATE runs SET on_trial = FALSE WHERE id = $1 AND process_id = $2",
                &values![run_id, &lease.process_id],
            )
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}
