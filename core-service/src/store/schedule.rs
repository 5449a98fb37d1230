//! Schedules: how far the recurrence of each workflow has come.
//!
//! A row moves from instant to instant. Each move names the revision and the instant it moves from, so of several
//! processes that try one moves; a run for an instant is created in the transaction that moves on from it. All times are
//! the database's own, so that nodes whose clocks differ agree on what is due. Absent on purpose: what a recurrence
//! means; a schedule whose next instant is not known yet is handed out to have it computed.

use std::collections::{HashMap, HashSet};

use sqlx::AssertSqlSafe;

use super::activity::{Trouble, record_trouble};
use super::database::Session;
use super::deployment::{LIVE_TABLES, LiveWorkflow, live_columns};
use super::dialect::{BatchStatement, Kind};
use super::run_batch::{CreateOutcome, NewRun};
use super::value::{Row, Value, values};
use super::wake::NextWake;
use super::{Store, StoreError, Topic, Workflow};
use crate::failpoint::Boundary;

/// A schedule that somebody has to look at, and the workflow it runs.
#[derive(Debug, Clone)]
pub struct DueSchedule {
    /// What runs.
    pub workflow: LiveWorkflow,
    /// When, as the contract's JSON.
    pub recurrence: Vec<u8>,
    /// Rises when what is above may have changed.
    pub revision: i64,
    /// When the recurrence was set; epoch milliseconds, as all times here.
    pub anchor: i64,
    /// Instants up to this one are dealt with.
    pub after: i64,
    /// The instant it stands at; unknown until somebody has computed it.
    pub due_at: Option<i64>,
    /// The database's time.
    pub now: i64,
}

/// The instant of a schedule that a run is for. Creating the run moves the schedule on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The schedule's, as it was read.
    pub revision: i64,
    /// The instant, in epoch milliseconds.
    pub instant: i64,
    /// The instant after it.
    pub next: Option<i64>,
    /// Leaves the instant out while a run of an earlier one is unfinished.
    pub skip_if_running: bool,
}

/// A move of a schedule that starts no run.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// Its instants up to this one are dealt with.
    pub after: i64,
    /// The instant it stands at then.
    pub next: Option<i64>,
    /// Why nothing ran; recorded when it was not so at the instant before.
    pub trouble: Option<Trouble<'a>>,
}

/// The outcome of an instant that nothing kept from running.
const TAKEN: &str = "taken";

/// What decides when a workflow runs by itself.
#[derive(PartialEq, Eq)]
pub(super) struct Plan {
    recurrence: Option<Vec<u8>>,
    acts: bool,
}

impl Plan {
    pub(super) fn of(workflow: &Workflow) -> Self {
        Self {
            recurrence: workflow.recurrence.clone(),
            acts: workflow.recurrence.is_some() && workflow.active && workflow.deployment.is_some(),
        }
    }
}

/// Lets a workflow's schedule follow a change of the workflow, in the same transaction. Gives whether it changed.
pub(super) async fn follow(
    session: &mut Session,
    workflow: &Workflow,
    before: &Plan,
) -> Result<bool, StoreError> {
    let after = Plan::of(workflow);
    if *before == after {
        return Ok(false);
    }
    let clock = session.dialect().clock_ms();
    let sql = format!(
        "INSERT INTO schedules (workflow_id, revision, anchor, after_at, due_at, wake_at, outcome)
         VALUES ($1, 1, {clock}, {clock}, NULL, CASE WHEN $2 THEN 0 END, 'none')
         ON CONFLICT (workflow_id) DO UPDATE SET revision = schedules.revision + 1,
             anchor = CASE WHEN $3 THEN excluded.anchor ELSE schedules.anchor END,
             after_at = CASE WHEN schedules.after_at > excluded.after_at THEN schedules.after_at
                 ELSE excluded.after_at END,
             due_at = NULL, wake_at = excluded.wake_at, outcome = excluded.outcome"
    );
    let is_other = before.recurrence != after.recurrence;
    session
        .execute(AssertSqlSafe(sql), &values![&workflow.id, after.acts, is_other])
        .await?;
    Ok(true)
}

impl DueSchedule {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            workflow: LiveWorkflow::from_row(row)?,
            recurrence: row.get("recurrence")?,
            revision: row.get("revision")?,
            anchor: row.get("anchor")?,
            after: row.get("after_at")?,
            due_at: row.get("due_at")?,
            now: row.get("now")?,
        })
    }
}

impl Store {
    /// Wakes whoever looks after schedules, when they have changed. The change stands anyway: it is found by looking.
    pub(super) async fn announce_schedules(&self, changed: bool) {
        if !changed {
            return;
        }
        if let Err(error) = self.notify(Topic::Schedules, "").await {
            tracing::debug!(%error, "nobody was told of a changed schedule");
        }
    }

    /// When the next schedule has to be looked at, if any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_schedule(&self) -> Result<Option<NextWake>, StoreError> {
        NextWake::earliest(&self.database, "schedules r WHERE r.wake_at IS NOT NULL").await
    }

    /// Gives up to `limit` schedules that have to be looked at, those that waited longest first. Others are not given
    /// them for `claim_ms` milliseconds, or until they are moved on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_schedules(&self, claim_ms: i64, limit: i64) -> Result<Vec<DueSchedule>, StoreError> {
        let mut transaction = self.database.write().await?;
        let (clock, lock) = (
            transaction.dialect().clock_ms(),
            transaction.dialect().skip_locked(),
        );
        let sql = format!(
            "UPDATE schedules SET wake_at = {clock} + $1 WHERE workflow_id IN (
                 SELECT r.workflow_id FROM schedules r WHERE r.wake_at <= {clock}
                 ORDER BY r.wake_at LIMIT $2{lock})
             RETURNING workflow_id"
        );
        let rows = transaction
            .rows(AssertSqlSafe(sql), &values![claim_ms, limit])
            .await?;
        let ids = rows
            .iter()
            .map(|row| row.get("workflow_id"))
            .collect::<Result<Vec<String>, _>>()?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let one_of = transaction.dialect().one_of(1);
        let sql = format!(
            "SELECT s.revision AS revision, s.anchor AS anchor, s.after_at AS after_at, s.due_at AS due_at,
                 w.recurrence AS recurrence, {clock} AS now, {}
             FROM {LIVE_TABLES} JOIN schedules s ON s.workflow_id = w.id
             WHERE s.workflow_id {one_of} AND w.recurrence IS NOT NULL AND w.version_no IS NOT NULL",
            live_columns()
        );
        let rows = transaction
            .rows(AssertSqlSafe(sql), &[Value::Texts(&ids)])
            .await?;
        let due = rows.iter().map(DueSchedule::from_row).collect::<Result<_, _>>()?;
        transaction.commit_at(&[Boundary::ClaimSchedules]).await?;
        Ok(due)
    }

    /// Moves a schedule on without starting a run. Gives whether it still stood where it was read.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pass_schedule(&self, due: &DueSchedule, pass: &Pass<'_>) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let sql = format!(
            "SELECT outcome FROM schedules WHERE workflow_id = $1 AND revision = $2 AND {STANDS}{lock}"
        );
        let place = values![&due.workflow.id, due.revision, due.due_at];
        let Some(row) = transaction.row(AssertSqlSafe(sql), &place).await? else {
            transaction.rollback().await?;
            return Ok(false);
        };
        let before: String = row.get("outcome")?;
        let outcome = pass.trouble.map_or(TAKEN, |trouble| trouble.action);
        transaction
            .execute(
                "UPDATE schedules SET due_at = $2, wake_at = $2, after_at = $3, outcome = $4 WHERE workflow_id = $1",
                &values![&due.workflow.id, pass.next, pass.after, outcome],
            )
            .await?;
        if let Some(trouble) = pass.trouble.filter(|trouble| trouble.action != before) {
            record_trouble(&mut transaction, due.workflow.troubled(), trouble).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Notes why the run of an instant could not start that a commit has dealt with.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn trouble_schedule(&self, due: &DueSchedule, trouble: Trouble<'_>) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let changed = transaction
            .execute(
                "UPDATE schedules SET outcome = $3 WHERE workflow_id = $1 AND revision = $2 AND outcome <> $3",
                &values![&due.workflow.id, due.revision, trouble.action],
            )
            .await?;
        if changed > 0 {
            record_trouble(&mut transaction, due.workflow.troubled(), trouble).await?;
        }
        transaction.commit().await
    }
}

/// A schedule that stands at the instant of parameter `$3`, or at none yet.
const STANDS: &str = "(due_at = $3 OR (due_at IS NULL AND CAST($3 AS BIGINT) IS NULL))";

const TAKE: BatchStatement = BatchStatement {
    columns: &[
        ("workflow_id", Kind::Text),
        ("revision", Kind::Integer),
        ("instant", Kind::Integer),
        ("next", Kind::Integer),
    ],
    tail: "UPDATE schedules SET due_at = v.next, wake_at = v.next, after_at = v.instant
           FROM v WHERE schedules.workflow_id = v.workflow_id AND schedules.revision = v.revision
               AND schedules.due_at = v.instant
           RETURNING schedules.workflow_id AS workflow_id, EXISTS (SELECT 1 FROM runs WHERE
               runs.workflow_id = schedules.workflow_id AND runs.scheduled_at IS NOT NULL
               AND runs.finished_at IS NULL) AS is_running",
};

/// Moves the schedules on that new runs are for. A run whose schedule has moved on already gets its outcome, and so
/// does one that is left out because an earlier one goes on; of the latter the instant is taken all the same.
pub(super) async fn take_ticks(
    session: &mut Session,
    creates: &[NewRun],
    outcomes: &mut [CreateOutcome],
) -> Result<(), StoreError> {
    let ticks = creates.iter().filter_map(|run| Some((run, run.tick.as_ref()?)));
    let rows: Vec<Value<'_>> = ticks
        .flat_map(|(run, tick)| values![&run.workflow_id, tick.revision, tick.instant, tick.next])
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut running: HashMap<String, bool> = HashMap::new();
    for row in session.batch_returning(&TAKE, &rows).await? {
        running.insert(row.get("workflow_id")?, row.get("is_running")?);
    }
    // Of several runs for one instant in a batch, the first has it.
    let mut given = HashSet::new();
    for (run, outcome) in creates.iter().zip(outcomes) {
        let Some(tick) = &run.tick else { continue };
        match running.get(&run.workflow_id) {
            Some(true) if tick.skip_if_running => *outcome = CreateOutcome::StillRunning,
            Some(_) if given.insert(&run.workflow_id) => {}
            _ => *outcome = CreateOutcome::NotDue,
        }
    }
    Ok(())
}

const SUCCEED: BatchStatement = BatchStatement {
    columns: &[("workflow_id", Kind::Text)],
    tail: "UPDATE schedules SET outcome = 'taken' FROM v
           WHERE schedules.workflow_id = v.workflow_id AND schedules.outcome <> 'taken'",
};

/// Notes that nothing keeps the runs of instants from starting any more.
pub(super) async fn succeed(
    session: &mut Session,
    creates: &[NewRun],
    outcomes: &[CreateOutcome],
) -> Result<(), StoreError> {
    let ticking = creates.iter().zip(outcomes).filter(|(run, outcome)| {
        run.tick.is_some() && matches!(outcome, CreateOutcome::Created | CreateOutcome::StillRunning)
    });
    let rows: Vec<Value<'_>> = ticking.map(|(run, _)| Value::from(&run.workflow_id)).collect();
    session.batch(&SUCCEED, &rows).await?;
    Ok(())
}
