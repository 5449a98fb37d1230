//! Triggers that poll: what each has dealt with, and when it asks next.
//!
//! Which items are new is told by what is known here; that each starts one run, by an idempotency key in the transaction
//! that creates the run. So this may lag behind, after a crash say, and nothing runs twice. Times are the database's own.
//! Absent on purpose: asking, and what tells one item from another.

use sqlx::AssertSqlSafe;

use super::activity::{Trouble, record_trouble};
use super::database::Session;
use super::deployment::{LIVE_TABLES, LiveWorkflow, live_columns};
use super::value::{Row, Value, values};
use super::wake::NextWake;
use super::{Store, StoreError, Topic};

/// A trigger of a version to be deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPoll {
    /// The trigger.
    pub node_id: i64,
    /// Tells what it asks. With another question it begins anew, with the same it goes on.
    pub question: Vec<u8>,
}

/// A trigger whose time has come, and the workflow it is of.
#[derive(Debug, Clone)]
pub struct DuePoll {
    /// What runs.
    pub workflow: LiveWorkflow,
    /// The trigger.
    pub node_id: i64,
    /// Digests of the items it has dealt with; none until it has asked once.
    pub known: Option<Vec<u8>>,
    revision: i64,
}

/// What came of asking.
#[derive(Debug, Clone, Copy)]
pub struct Polled<'a> {
    /// Digests of the items that are dealt with; what is known already when absent.
    pub known: Option<&'a [u8]>,
    /// Milliseconds until it asks again.
    pub pause_ms: i64,
    /// Why nothing or not all came of it; recorded when it was not so the time before.
    pub trouble: Option<Trouble<'a>>,
}

const ASKED: &str = "asked";

/// Writes the triggers of the version that is deployed now.
pub(super) async fn write_polls(
    session: &mut Session,
    workflow_id: &str,
    active: bool,
    polls: &[NewPoll],
) -> Result<(), StoreError> {
    let rows = session
        .rows(
            "SELECT node_id FROM polls WHERE workflow_id = $1",
            &values![workflow_id],
        )
        .await?;
    for row in &rows {
        let node_id: i64 = row.get("node_id")?;
        if !polls.iter().any(|poll| poll.node_id == node_id) {
            let sql = "DELETE FROM polls WHERE workflow_id = $1 AND node_id = $2";
            session.execute(sql, &values![workflow_id, node_id]).await?;
        }
    }
    let clock = session.dialect().clock_ms();
    let sql = format!(
        "INSERT INTO polls (workflow_id, node_id, question, revision, known, wake_at, outcome)
         VALUES ($1, $2, $3, 1, NULL, CASE WHEN $4 THEN {clock} END, 'none')
         ON CONFLICT (workflow_id, node_id) DO UPDATE SET revision = polls.revision + 1,
             known = CASE WHEN polls.question = excluded.question THEN polls.known END,
             question = excluded.question, wake_at = excluded.wake_at"
    );
    for poll in polls {
        let row = values![workflow_id, poll.node_id, &poll.question, active];
        session.execute(AssertSqlSafe(sql.clone()), &row).await?;
    }
    Ok(())
}

/// Lets the triggers of a workflow follow a change of its being active. They begin anew: what came while it was not active
/// starts nothing.
pub(super) async fn follow(session: &mut Session, workflow_id: &str, active: bool) -> Result<(), StoreError> {
    let clock = session.dialect().clock_ms();
    let sql = format!(
        "UPDATE polls SET revision = revision + 1, known = NULL, wake_at = CASE WHEN $2 THEN {clock} END
         WHERE workflow_id = $1"
    );
    let row = values![workflow_id, active];
    session.execute(AssertSqlSafe(sql), &row).await?;
    Ok(())
}

impl DuePoll {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            workflow: LiveWorkflow::from_row(row)?,
            node_id: row.get("node_id")?,
            known: row.get("known")?,
            revision: row.get("revision")?,
        })
    }
}

impl Store {
    /// Wakes whoever polls. The change stands anyway: it is found by looking.
    pub(super) async fn announce_polls(&self) {
        if let Err(error) = self.notify(Topic::Polls, "").await {
            tracing::debug!(%error, "nobody was told of a changed trigger");
        }
    }

    /// When the next trigger has to ask, if any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_poll(&self) -> Result<Option<NextWake>, StoreError> {
        NextWake::earliest(&self.database, "polls r WHERE r.wake_at IS NOT NULL").await
    }

    /// Gives up to `limit` triggers whose time has come, those that waited longest first. Others are not given them for
    /// `claim_ms` milliseconds, or until they have asked. A claim only keeps processes from doing the same work.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_polls(&self, claim_ms: i64, limit: i64) -> Result<Vec<DuePoll>, StoreError> {
        let mut transaction = self.database.write().await?;
        let (clock, lock) = (
            transaction.dialect().clock_ms(),
            transaction.dialect().skip_locked(),
        );
        let sql = format!(
            "UPDATE polls SET wake_at = {clock} + $1 WHERE (workflow_id, node_id) IN (
                 SELECT r.workflow_id, r.node_id FROM polls r WHERE r.wake_at <= {clock}
                 ORDER BY r.wake_at LIMIT $2{lock})
             RETURNING workflow_id, node_id"
        );
        let claimed = transaction
            .rows(AssertSqlSafe(sql), &values![claim_ms, limit])
            .await?;
        let sql = format!(
            "SELECT q.node_id AS node_id, q.known AS known, q.revision AS revision, {}
             FROM {LIVE_TABLES} JOIN polls q ON q.workflow_id = w.id
             WHERE q.workflow_id = $1 AND q.node_id = $2 AND w.version_no IS NOT NULL",
            live_columns()
        );
        let mut due = Vec::with_capacity(claimed.len());
        for row in &claimed {
            let (workflow_id, node_id): (String, i64) = (row.get("workflow_id")?, row.get("node_id")?);
            let place = values![&workflow_id, node_id];
            let found = transaction.row(AssertSqlSafe(sql.clone()), &place).await?;
            due.extend(found.as_ref().map(DuePoll::from_row).transpose()?);
        }
        transaction.commit().await?;
        Ok(due)
    }

    /// Notes what came of asking. Gives whether the trigger was still as it was read: of several that ask at
    /// the same time, the first has its say.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn polled(&self, due: &DuePoll, polled: &Polled<'_>) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let (clock, lock) = (
            transaction.dialect().clock_ms(),
            transaction.dialect().for_update(),
        );
        let place = values![&due.workflow.id, due.node_id, due.revision];
        let sql = format!(
            "SELECT outcome FROM polls WHERE workflow_id = $1 AND node_id = $2 AND revision = $3{lock}"
        );
        let Some(row) = transaction.row(AssertSqlSafe(sql), &place).await? else {
            transaction.rollback().await?;
            return Ok(false);
        };
        let before: String = row.get("outcome")?;
        let sql = format!(
            "UPDATE polls SET revision = revision + 1, known = COALESCE($3, known), wake_at = {clock} + $4,
                 outcome = $5
             WHERE workflow_id = $1 AND node_id = $2"
        );
        let outcome = polled.trouble.map_or(ASKED, |trouble| trouble.action);
        let known = Value::Bytes(polled.known);
        let row = values![&due.workflow.id, due.node_id, known, polled.pause_ms, outcome];
        transaction.execute(AssertSqlSafe(sql), &row).await?;
        if let Some(trouble) = polled.trouble.filter(|trouble| trouble.action != before) {
            record_trouble(&mut transaction, due.workflow.troubled(), trouble).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}
