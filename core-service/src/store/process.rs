//! Running servers and their leases.
//!
//! A process holds one lease, judged by the database's clock; its runs belong to it through `runs.process_id`. Whoever
//! finds a lease expired raises the process's epoch, which refuses everything that process still has to write.

use sqlx::AssertSqlSafe;

use super::commit::CommitError;
use super::database::{Session, Transaction};
use super::run::{RUN_COLUMNS, Run};
use super::value::values;
use super::{Store, StoreError};
use crate::failpoint::Boundary;
use crate::id;

/// The right of a process to write to its runs, until another takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The process (`proc_`).
    pub process_id: String,
    /// Raised when the process is taken over.
    pub epoch: i64,
    /// How long the lease lasts after each renewal, in milliseconds.
    pub duration_ms: i64,
}

impl Store {
    /// Registers this process and gives it a lease of `duration_ms` milliseconds.
    ///
    /// A SQLite database serves one process, so the ones registered before are taken to be dead at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn register_process(&self, duration_ms: i64) -> Result<Lease, StoreError> {
        let lease = Lease {
            process_id: id::new(id::Kind::Process),
            epoch: 1,
            duration_ms,
        };
        let mut transaction = self.database.write_first().await?;
        let clock = transaction.dialect().clock_ms();
        if transaction.dialect().is_single_process() {
            let sql = "UPDATE processes SET alive = FALSE, epoch = epoch + 1 WHERE alive";
            transaction.execute(sql, &[]).await?;
        }
        let sql = format!(
            "INSERT INTO processes (id, epoch, alive, expires_at, started_at)
             VALUES ($1, $2, TRUE, {clock} + $3, {clock})"
        );
        transaction
            .execute(
                AssertSqlSafe(sql),
                &values![&lease.process_id, lease.epoch, lease.duration_ms],
            )
            .await?;
        transaction.commit().await?;
        Ok(lease)
    }

    /// The database's time, in epoch milliseconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn time(&self) -> Result<i64, StoreError> {
        let mut session = self.database.read().await?;
        let sql = format!("SELECT {} AS now", session.dialect().clock_ms());
        let row = session.row(AssertSqlSafe(sql), &[]).await?;
        row.ok_or(StoreError::NotFound("time"))?.get("now")
    }

    /// Extends the lease by its duration from now.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when another process took over; when the database fails.
    pub async fn renew_lease(&self, lease: &Lease) -> Result<(), CommitError> {
        let mut transaction = self.database.write_first().await?;
        let clock = transaction.dialect().clock_ms();
        let sql =
            format!("UPDATE processes SET expires_at = {clock} + $3 WHERE id = $1 AND epoch = $2 AND alive");
        let renewed = transaction
            .execute(
                AssertSqlSafe(sql),
                &values![&lease.process_id, lease.epoch, lease.duration_ms],
            )
            .await?;
        if renewed == 0 {
            transaction.rollback().await?;
            return Err(CommitError::LeaseLost);
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Gives up the lease and all runs, which others may claim at once. For an orderly stop.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when another process took over; when the database fails.
    pub async fn retire_process(&self, lease: &Lease) -> Result<(), CommitError> {
        let mut transaction = self.database.write_first().await?;
        // First, because it waits for commits under way: their runs, too, must be given up.
        let deleted = transaction
            .execute(
                "DELETE FROM processes WHERE id = $1 AND epoch = $2 AND alive",
                &values![&lease.process_id, lease.epoch],
            )
            .await?;
        if deleted == 0 {
            transaction.rollback().await?;
            return Err(CommitError::LeaseLost);
        }
        transaction
            .execute(
                "UPDATE runs SET process_id = NULL, parked = FALSE, on_trial = FALSE
                 WHERE process_id = $1 AND finished_at IS NULL",
                &values![&lease.process_id],
            )
            .await?;
        transaction.commit_at(&[Boundary::Retire]).await?;
        Ok(())
    }

    /// Unfinished runs that a process drives, in order of id, from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn driven_runs(
        &self,
        process_id: &str,
        after: &str,
        limit: i64,
    ) -> Result<Vec<Run>, StoreError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs
             WHERE process_id = $1 AND finished_at IS NULL AND id > $2 ORDER BY id LIMIT $3"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![process_id, after, limit])
            .await?;
        rows.iter().map(Run::from_row).collect()
    }

    /// Forgets processes that are dead and drive nothing any more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_dead_processes(&self) -> Result<u64, StoreError> {
        let mut transaction = self.database.write().await?;
        let deleted = transaction
            .execute(
                "DELETE FROM processes WHERE NOT alive AND NOT EXISTS
                 (SELECT 1 FROM runs WHERE runs.process_id = processes.id AND runs.finished_at IS NULL)",
                &[],
            )
            .await?;
        transaction.commit().await?;
        Ok(deleted)
    }

    /// A transaction that only a process whose lease still stands can commit: nobody can take it over before the end.
    /// It waits in no line.
    pub(super) async fn fenced(&self, lease: &Lease) -> Result<Transaction, CommitError> {
        let transaction = self.database.write_first().await?;
        self.fenced_by(transaction, lease).await
    }

    pub(super) async fn fenced_by(
        &self,
        mut transaction: Transaction,
        lease: &Lease,
    ) -> Result<Transaction, CommitError> {
        let sql = match transaction.dialect().is_single_process() {
            true => "SELECT 1 FROM processes WHERE id = $1 AND epoch = $2 AND alive",
            // Keeps the row from being taken over, which locks it FOR UPDATE, but not from being renewed: share locks that
            // follow one another for ever would.
            false => "SELECT 1 FROM processes WHERE id = $1 AND epoch = $2 AND alive FOR KEY SHARE",
        };
        if transaction
            .row(sql, &values![&lease.process_id, lease.epoch])
            .await?
            .is_none()
        {
            transaction.rollback().await?;
            return Err(CommitError::LeaseLost);
        }
        Ok(transaction)
    }
}

/// Raises the epoch of other processes whose lease ran out. One that is committing at this instant is left for the next
/// time; one whose clock leaps must not take itself for lost.
pub(super) async fn mark_expired(session: &mut Session, own: &Lease) -> Result<(), StoreError> {
    let clock = session.dialect().clock_ms();
    let lock = session.dialect().skip_locked();
    let sql = format!(
        "UPDATE processes SET alive = FALSE, epoch = epoch + 1
         WHERE id IN (SELECT r.id FROM processes r WHERE r.alive AND r.expires_at <= {clock} AND r.id <> $1{lock})"
    );
    session
        .execute(AssertSqlSafe(sql), &values![&own.process_id])
        .await?;
    Ok(())
}

/// What makes a run (`r`) one of a lost process.
pub(super) const LOST: &str =
    "r.process_id IN (SELECT p.id FROM processes p WHERE NOT p.alive) AND r.finished_at IS NULL";
