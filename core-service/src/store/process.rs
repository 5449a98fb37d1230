//! Running servers, their leases, and who drives which run.
//!
//! A process holds one lease, judged by the database's clock; its runs belong to it through `runs.process_id`. Whoever
//! finds a lease expired raises the process's epoch, which refuses everything that process still has to write.

use sqlx::AssertSqlSafe;

use super::commit::CommitError;
use super::database::{Session, Transaction};
use super::run::{RUN_COLUMNS, Run};
use super::suspect::SUSPECT;
use super::value::{Value, values};
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

/// A run that this process drives from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedRun {
    /// The run, as last committed.
    pub run: Run,
    /// Why nobody else drives it.
    pub cause: ClaimCause,
}

/// How a run came to have no driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimCause {
    /// Its process was lost while driving it; `crashes` counts that already, if the run was executing.
    TakenOver,
    /// It was released, or a due timer or a signal woke it.
    Ready,
}

/// What came of claiming one named run.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimOne {
    /// This process drives it now (or did already).
    Claimed(Box<Run>),
    /// Another live process does: send it a signal.
    DrivenElsewhere,
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

    /// Claims up to `limit` runs that nobody drives: first those of processes whose lease expired (suspects apart), then
    /// those that are ready, then those with a timer due at `now` (epoch milliseconds), soonest first.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when this process was itself taken over; when the database fails.
    pub async fn claim_runs(
        &self,
        lease: &Lease,
        now: i64,
        limit: i64,
    ) -> Result<Vec<ClaimedRun>, CommitError> {
        let mut transaction = self.fenced(lease).await?;
        mark_expired(&mut transaction, lease).await?;
        let mut claimed = take_over(&mut transaction, lease, limit).await?;
        let left = |claimed: &[ClaimedRun]| limit - i64::try_from(claimed.len()).unwrap_or(limit);
        claimed.extend(take_ready(&mut transaction, lease, left(&claimed)).await?);
        claimed.extend(take_due(&mut transaction, lease, now, left(&claimed)).await?);
        let boundaries: &[Boundary] = if claimed.is_empty() {
            &[]
        } else {
            &[Boundary::Claim]
        };
        transaction.commit_at(boundaries).await?;
        Ok(claimed)
    }

    /// Claims one run of an organization, finished or not, for a request about it (cancel, respond, rerun).
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`CommitError::LeaseLost`]; when the database fails.
    pub async fn claim_run(
        &self,
        lease: &Lease,
        organization_id: &str,
        run_id: &str,
    ) -> Result<ClaimOne, CommitError> {
        let mut transaction = self.fenced_by(self.database.write().await?, lease).await?;
        mark_expired(&mut transaction, lease).await?;
        let known = transaction
            .row(
                "SELECT 1 FROM runs WHERE id = $1 AND organization_id = $2",
                &values![run_id, organization_id],
            )
            .await?;
        if known.is_none() {
            transaction.rollback().await?;
            return Err(StoreError::NotFound("run").into());
        }
        let sql = format!(
            "UPDATE runs SET process_id = $2, parked = FALSE
             WHERE id = $1 AND (process_id IS NULL OR process_id = $2
                 OR NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = runs.process_id AND p.alive))
             RETURNING {RUN_COLUMNS}"
        );
        let row = transaction
            .row(AssertSqlSafe(sql), &values![run_id, &lease.process_id])
            .await?;
        let outcome = match row {
            Some(row) => ClaimOne::Claimed(Box::new(Run::from_row(&row)?)),
            None => ClaimOne::DrivenElsewhere,
        };
        transaction.commit_at(&[Boundary::Wake]).await?;
        Ok(outcome)
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

    async fn fenced_by(
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
async fn mark_expired(session: &mut Session, own: &Lease) -> Result<(), StoreError> {
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

async fn take_over(session: &mut Session, lease: &Lease, limit: i64) -> Result<Vec<ClaimedRun>, StoreError> {
    let lock = session.dialect().skip_locked();
    let sql = format!(
        "UPDATE runs SET process_id = $1, crashes = crashes + CASE WHEN status = 'waiting' THEN 0 ELSE 1 END
         WHERE id IN (SELECT r.id FROM runs r WHERE {LOST} AND NOT ({SUSPECT}) LIMIT $2{lock})
         RETURNING {RUN_COLUMNS}"
    );
    claim(
        session,
        sql,
        &values![&lease.process_id, limit],
        limit,
        ClaimCause::TakenOver,
    )
    .await
}

async fn take_ready(session: &mut Session, lease: &Lease, limit: i64) -> Result<Vec<ClaimedRun>, StoreError> {
    let lock = session.dialect().skip_locked();
    let sql = format!(
        "UPDATE runs SET process_id = $1 WHERE id IN (
             SELECT r.id FROM runs r WHERE r.process_id IS NULL AND r.finished_at IS NULL AND NOT r.parked
             ORDER BY r.id LIMIT $2{lock})
         RETURNING {RUN_COLUMNS}"
    );
    claim(
        session,
        sql,
        &values![&lease.process_id, limit],
        limit,
        ClaimCause::Ready,
    )
    .await
}

/// Parked runs with a due timer. Their timers stay until they go on.
async fn take_due(
    session: &mut Session,
    lease: &Lease,
    now: i64,
    limit: i64,
) -> Result<Vec<ClaimedRun>, StoreError> {
    let lock = session.dialect().skip_locked();
    let sql = format!(
        "UPDATE runs SET process_id = $1, parked = FALSE WHERE id IN (
             SELECT r.id FROM timers t JOIN runs r ON r.id = t.run_id
             WHERE t.due_at <= $3 AND r.parked AND r.process_id IS NULL
             ORDER BY t.due_at LIMIT $2{lock})
         RETURNING {RUN_COLUMNS}"
    );
    claim(
        session,
        sql,
        &values![&lease.process_id, limit, now],
        limit,
        ClaimCause::Ready,
    )
    .await
}

async fn claim(
    session: &mut Session,
    sql: String,
    values: &[Value<'_>],
    limit: i64,
    cause: ClaimCause,
) -> Result<Vec<ClaimedRun>, StoreError> {
    if limit <= 0 {
        return Ok(Vec::new());
    }
    let rows = session.rows(AssertSqlSafe(sql), values).await?;
    rows.iter()
        .map(|row| {
            Ok(ClaimedRun {
                run: Run::from_row(row)?,
                cause,
            })
        })
        .collect()
}
