//! Deletes what is past its time: ended runs with everything that hangs on them, and entries of the feed.
//!
//! A call is one small transaction, so that nobody who writes waits long; whoever calls goes on until nothing is left. A
//! run goes in two steps: first its row, so that it is gone for everybody, then, in pieces, what hung on it. Of several
//! processes one deletes at a time.

use std::time::{Duration, Instant};

use sqlx::AssertSqlSafe;

use super::database::Transaction;
use super::dialect::{BatchStatement, Dialect, Kind};
use super::value::{Row, Value, values};
use super::{Store, StoreError, payload};

/// How long an organization's runs and the entries of its feed are kept, as its plan says. Nothing is for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRule {
    /// The organization.
    pub organization_id: String,
    /// Days a run is kept after its end.
    pub days: Option<i64>,
    /// Ended runs kept: those that ended last.
    pub runs: Option<i64>,
    /// Days an entry of the activity feed is kept.
    pub activity_days: Option<i64>,
}

/// What a transaction of deletions did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Rows that are gone. Fewer than were asked for means that there are no more.
    pub deleted: u64,
    /// How long it kept others from writing to SQLite.
    pub took: Duration,
}

/// A transaction of deletions.
pub(super) struct Sweep {
    pub(super) transaction: Transaction,
    began: Instant,
}

impl Sweep {
    pub(super) async fn done(self, deleted: u64) -> Result<Swept, StoreError> {
        self.transaction.commit().await?;
        Ok(Swept {
            deleted,
            took: self.began.elapsed(),
        })
    }
}

/// The advisory lock of the process that deletes ("sweeping" as a number).
const LOCK: i64 = 0x7377_6565_7069_6e67;

/// Runs that may go. Not one that somebody has to be told of, nor one whose result another run still waits for, nor one
/// that a process has just taken up again: written so that PostgreSQL asks that again of a row that changed meanwhile.
const MAY_GO: &str = "r.organization_id = $1 AND r.finished_at IS NOT NULL AND r.finished_at < $2
     AND NOT EXISTS (SELECT 1 FROM endings e WHERE e.run_id = r.id)
     AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.id = r.parent_run_id AND p.finished_at IS NULL)
     AND (r.process_id IS NULL OR NOT EXISTS (SELECT 1 FROM processes o WHERE o.id = r.process_id AND o.alive))";

const LEAVE_REMAINS: BatchStatement = BatchStatement {
    columns: &[("run_id", Kind::Text)],
    tail: "INSERT INTO run_remains (run_id) SELECT v.run_id FROM v",
};

impl Store {
    /// The rules of organizations whose plan says any, by organization from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn retention_rules(&self, after: &str, limit: i64) -> Result<Vec<RetentionRule>, StoreError> {
        let sql = "SELECT o.id AS organization_id, p.retention_days AS days, p.retention_runs AS runs,
                       p.activity_days AS activity_days
                   FROM organizations o JOIN plans p ON p.id = o.plan_id
                   WHERE o.id > $1
                       AND COALESCE(p.retention_days, p.retention_runs, p.activity_days) IS NOT NULL
                   ORDER BY o.id LIMIT $2";
        let mut session = self.database.read().await?;
        let rows = session.rows(sql, &values![after, limit]).await?;
        rows.iter().map(RetentionRule::from_row).collect()
    }

    /// When the oldest of an organization's `runs` newest ended runs ended, in epoch milliseconds; nothing when there are
    /// fewer. What ended before it is too many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_of_oldest_kept(
        &self,
        organization_id: &str,
        runs: i64,
    ) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT finished_at FROM runs WHERE organization_id = $1 AND finished_at IS NOT NULL
                   ORDER BY finished_at DESC LIMIT 1 OFFSET $2";
        let mut session = self.database.read().await?;
        let row = session
            .row(sql, &values![organization_id, runs.saturating_sub(1)])
            .await?;
        row.map(|row| row.get("finished_at")).transpose()
    }

    /// Deletes up to `limit` runs of an organization that ended before an instant (epoch milliseconds), the oldest
    /// first. What hung on them is left to [`Store::delete_remains`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_runs(
        &self,
        organization_id: &str,
        ended_before: i64,
        limit: i64,
    ) -> Result<Swept, StoreError> {
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let transaction = &mut sweep.transaction;
        let lock = transaction.dialect().skip_locked();
        let sql = format!(
            "DELETE FROM runs WHERE id IN (
                 SELECT r.id FROM runs r WHERE {MAY_GO} ORDER BY r.finished_at LIMIT $3{lock})
             RETURNING id"
        );
        let rows = transaction
            .rows(AssertSqlSafe(sql), &values![organization_id, ended_before, limit])
            .await?;
        let ids: Vec<String> = rows.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
        let remains: Vec<Value<'_>> = ids.iter().map(Value::from).collect();
        transaction.batch(&LEAVE_REMAINS, &remains).await?;
        sweep.done(ids.len() as u64).await
    }

    /// Deletes about `limit` rows of what hung on deleted runs. Gives none when there are no more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_remains(&self, limit: i64) -> Result<Swept, StoreError> {
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let transaction = &mut sweep.transaction;
        let rows = transaction
            .rows(
                "SELECT run_id FROM run_remains ORDER BY run_id LIMIT $1",
                &values![limit],
            )
            .await?;
        let ids: Vec<String> = rows
            .iter()
            .map(|row| row.get("run_id"))
            .collect::<Result<_, _>>()?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut deleted = payload::delete_uses(transaction, &ids, (limit / ROWS_A_PAYLOAD).max(1)).await?;
        if deleted == 0 {
            deleted = delete_segments(transaction, &ids, limit).await?;
        }
        if deleted == 0 {
            for table in ["timers", "signals", "run_remains"] {
                let one_of = transaction.dialect().one_of(1);
                let sql = format!("DELETE FROM {table} WHERE run_id {one_of}");
                deleted += transaction
                    .execute(AssertSqlSafe(sql), &[Value::Texts(&ids)])
                    .await?;
            }
        }
        sweep.done(deleted).await
    }

    /// Deletes up to `limit` entries of an organization's feed from before an instant (epoch milliseconds), the oldest
    /// first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_activity(
        &self,
        organization_id: &str,
        before: i64,
        limit: i64,
    ) -> Result<Swept, StoreError> {
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let sql = "DELETE FROM activity WHERE id IN (
                       SELECT id FROM activity WHERE organization_id = $1 AND ts < $2 ORDER BY ts LIMIT $3)";
        let deleted = sweep
            .transaction
            .execute(sql, &values![organization_id, before, limit])
            .await?;
        sweep.done(deleted).await
    }

    /// A transaction of deletions; nothing while another process has one.
    pub(super) async fn sweep(&self) -> Result<Option<Sweep>, StoreError> {
        let mut transaction = self.database.write().await?;
        let began = Instant::now();
        if transaction.dialect() == Dialect::Postgres {
            let sql = "SELECT pg_try_advisory_xact_lock($1) AS is_ours";
            let row = transaction.row(sql, &values![LOCK]).await?;
            if !row.map_or(Ok(false), |row| row.get("is_ours"))? {
                transaction.rollback().await?;
                return Ok(None);
            }
        }
        Ok(Some(Sweep { transaction, began }))
    }
}

/// A payload has more than 256 KiB; so many segments are deleted in the time that one takes.
const ROWS_A_PAYLOAD: i64 = 32;

async fn delete_segments(
    transaction: &mut Transaction,
    run_ids: &[&str],
    limit: i64,
) -> Result<u64, StoreError> {
    let one_of = transaction.dialect().one_of(1);
    let sql = format!(
        "DELETE FROM segments WHERE (run_id, attempt, seq) IN (
             SELECT run_id, attempt, seq FROM segments WHERE run_id {one_of} LIMIT $2)"
    );
    transaction
        .execute(AssertSqlSafe(sql), &[Value::Texts(run_ids), Value::from(limit)])
        .await
}

impl RetentionRule {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            organization_id: row.get("organization_id")?,
            days: row.get("days")?,
            runs: row.get("runs")?,
            activity_days: row.get("activity_days")?,
        })
    }
}
