//! Who drives which run: processes claim those that nobody does.

use sqlx::AssertSqlSafe;

use super::commit::CommitError;
use super::database::Session;
use super::process::{LOST, Lease, mark_expired};
use super::run::{RUN_COLUMNS, Run};
use super::suspect::{at_work, suspect};
use super::value::{Value, values};
use super::{Store, StoreError};
use crate::failpoint::Boundary;

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

/// Which of the runs with a due timer are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Those that are due the longest, whoever's they are.
    Soonest,
    /// Those of some organizations.
    InTurn(Vec<Share>),
}

/// What an organization has of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The organization.
    pub organization_id: String,
    /// The most runs that are claimed; the soonest first.
    pub most: i64,
}

impl Store {
    /// Claims up to `limit` runs that nobody drives: first those of processes whose lease expired (suspects apart), then
    /// those that are ready, then those with a timer due at `now` (epoch milliseconds), as `due` says.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when this process was itself taken over; when the database fails.
    pub async fn claim_runs(
        &self,
        lease: &Lease,
        now: i64,
        limit: i64,
        due: &Due,
    ) -> Result<Vec<ClaimedRun>, CommitError> {
        let mut transaction = self.fenced(lease).await?;
        mark_expired(&mut transaction, lease).await?;
        let mut claimed = take_over(&mut transaction, lease, limit).await?;
        let left = |claimed: &[ClaimedRun]| limit - i64::try_from(claimed.len()).unwrap_or(limit);
        claimed.extend(take_ready(&mut transaction, lease, left(&claimed)).await?);
        match due {
            Due::Soonest => claimed.extend(take_due(&mut transaction, lease, now, left(&claimed)).await?),
            Due::InTurn(shares) => {
                for share in shares {
                    let most = share.most.min(left(&claimed));
                    let organization_id = &share.organization_id;
                    let taken = take_due_of(&mut transaction, lease, now, (organization_id, most));
                    claimed.extend(taken.await?);
                }
            }
        }
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
}

async fn take_over(session: &mut Session, lease: &Lease, limit: i64) -> Result<Vec<ClaimedRun>, StoreError> {
    let dialect = session.dialect();
    let (lock, at_work, suspect) = (dialect.skip_locked(), at_work("runs", dialect), suspect(dialect));
    let sql = format!(
        "UPDATE runs SET process_id = $1, crashes = crashes + CASE WHEN {at_work} THEN 1 ELSE 0 END
         WHERE id IN (SELECT r.id FROM runs r WHERE {LOST} AND NOT ({suspect}) LIMIT $2{lock})
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

/// As `take_due`, of one organization.
async fn take_due_of(
    session: &mut Session,
    lease: &Lease,
    now: i64,
    (organization_id, most): (&str, i64),
) -> Result<Vec<ClaimedRun>, StoreError> {
    let lock = session.dialect().skip_locked();
    let sql = format!(
        "UPDATE runs SET process_id = $1, parked = FALSE WHERE id IN (
             SELECT r.id FROM timers t JOIN runs r ON r.id = t.run_id
             WHERE t.organization_id = $4 AND t.due_at <= $3 AND r.parked AND r.process_id IS NULL
             ORDER BY t.due_at LIMIT $2{lock})
         RETURNING {RUN_COLUMNS}"
    );
    claim(
        session,
        sql,
        &values![&lease.process_id, most, now, organization_id],
        most,
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
