//! Ends of runs that somebody has to be told of: written in the commit of the end, kept until they are dealt with.
//!
//! A run that succeeds and that nobody waits for leaves nothing here; a failure does when its organization has an error
//! trigger deployed.

use std::collections::HashSet;

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::deployment::{LIVE_TABLES, LiveWorkflow, live_columns};
use super::dialect::{BatchStatement, Kind};
use super::run_batch::{CreateOutcome, NewRun, RunChange};
use super::value::{Row, Value, values};
use super::wake::NextWake;
use super::{Store, StoreError};
use crate::failpoint::Boundary;

/// The end of a run, as part of the commit that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEnding {
    /// The attempt that ended.
    pub attempt: i64,
    /// The place of the end in its journal.
    pub seq: i64,
    /// The run's organization.
    pub organization_id: String,
    /// What there is to tell, as the runtime wrote it.
    pub notice: Vec<u8>,
    /// It is only to be told to error triggers, and forgotten when the organization has none.
    pub for_error_triggers: bool,
}

/// An end that somebody has to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// `run_`
    pub run_id: String,
    /// The attempt that ended.
    pub attempt: i64,
    /// The place of the end in its journal.
    pub seq: i64,
    /// The run's organization.
    pub organization_id: String,
    /// What there is to tell.
    pub notice: Vec<u8>,
}

/// An error trigger of a deployed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTrigger {
    /// The node.
    pub node_id: i64,
    /// The workflows it reacts to, as a JSON array; an empty one is all of the organization.
    pub workflow_ids: Vec<u8>,
}

/// A live workflow and its error trigger.
#[derive(Debug, Clone)]
pub struct ErrorListener {
    /// The workflow.
    pub workflow: LiveWorkflow,
    /// Its trigger.
    pub trigger: ErrorTrigger,
}

const INSERT: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("attempt", Kind::Integer),
        ("seq", Kind::Integer),
        ("organization_id", Kind::Text),
        ("notice", Kind::Bytes),
        ("for_error_triggers", Kind::Boolean),
    ],
    tail: "INSERT INTO endings (run_id, attempt, seq, organization_id, notice, wake_at)
           SELECT v.run_id, v.attempt, v.seq, v.organization_id, v.notice, 0 FROM v
           WHERE NOT v.for_error_triggers
               OR EXISTS (SELECT 1 FROM error_triggers t WHERE t.organization_id = v.organization_id)
           ON CONFLICT (run_id, attempt, seq) DO NOTHING",
};

/// Writes the ends of a batch. Gives whether somebody has to be told of any.
pub(super) async fn insert_endings(
    session: &mut Session,
    created: &[&NewRun],
    changes: &[&RunChange],
) -> Result<bool, StoreError> {
    let first = created.iter().map(|run| (&run.id, &run.ending));
    let further = changes.iter().map(|change| (&change.run_id, &change.ending));
    let mut rows: Vec<Value<'_>> = Vec::new();
    for (run_id, ending) in first.chain(further) {
        let Some(ending) = ending else { continue };
        rows.extend(values![
            run_id,
            ending.attempt,
            ending.seq,
            &ending.organization_id,
            &ending.notice,
            ending.for_error_triggers
        ]);
    }
    Ok(session.batch(&INSERT, &rows).await? > 0)
}

/// Refuses runs whose waiting run has ended: who tells of that end may have looked for them before. One that goes on
/// cannot end before this transaction does.
pub(super) async fn refuse_orphans(
    session: &mut Session,
    creates: &[NewRun],
    outcomes: &mut [CreateOutcome],
) -> Result<(), StoreError> {
    let mut parents: Vec<&str> = creates
        .iter()
        .filter_map(|run| run.parent_run_id.as_deref())
        .collect();
    if parents.is_empty() {
        return Ok(());
    }
    parents.sort_unstable();
    parents.dedup();
    let (one_of, lock) = (session.dialect().one_of(1), session.dialect().for_share());
    let sql = format!("SELECT id FROM runs WHERE id {one_of} AND finished_at IS NULL ORDER BY id{lock}");
    let rows = session
        .rows(AssertSqlSafe(sql), &[Value::Texts(&parents)])
        .await?;
    let going_on = rows
        .iter()
        .map(|row| row.get("id"))
        .collect::<Result<HashSet<String>, _>>()?;
    for (run, outcome) in creates.iter().zip(outcomes) {
        let is_orphan = run
            .parent_run_id
            .as_ref()
            .is_some_and(|parent| !going_on.contains(parent));
        if is_orphan && *outcome == CreateOutcome::Created {
            *outcome = CreateOutcome::ParentEnded;
        }
    }
    Ok(())
}

/// Replaces what is known of the error triggers of a workflow's deployed version.
pub(super) async fn write_error_triggers(
    session: &mut Session,
    organization_id: &str,
    workflow_id: &str,
    triggers: &[ErrorTrigger],
) -> Result<(), StoreError> {
    session
        .execute(
            "DELETE FROM error_triggers WHERE workflow_id = $1",
            &values![workflow_id],
        )
        .await?;
    for trigger in triggers {
        session
            .execute(
                "INSERT INTO error_triggers (workflow_id, node_id, organization_id, workflow_ids)
                 VALUES ($1, $2, $3, $4)",
                &values![
                    workflow_id,
                    trigger.node_id,
                    organization_id,
                    &trigger.workflow_ids
                ],
            )
            .await?;
    }
    Ok(())
}

impl Ending {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            run_id: row.get("run_id")?,
            attempt: row.get("attempt")?,
            seq: row.get("seq")?,
            organization_id: row.get("organization_id")?,
            notice: row.get("notice")?,
        })
    }
}

impl Store {
    /// When the next end has to be dealt with, if any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_ending(&self) -> Result<Option<NextWake>, StoreError> {
        NextWake::earliest(&self.database, "endings r").await
    }

    /// Gives up to `limit` ends that nobody deals with. Others are not given them for `claim_ms` milliseconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_endings(&self, claim_ms: i64, limit: i64) -> Result<Vec<Ending>, StoreError> {
        let mut transaction = self.database.write().await?;
        let (clock, lock) = (
            transaction.dialect().clock_ms(),
            transaction.dialect().skip_locked(),
        );
        let sql = format!(
            "UPDATE endings SET wake_at = {clock} + $1 WHERE (run_id, attempt, seq) IN (
                 SELECT r.run_id, r.attempt, r.seq FROM endings r WHERE r.wake_at <= {clock}
                 ORDER BY r.wake_at LIMIT $2{lock})
             RETURNING run_id, attempt, seq, organization_id, notice"
        );
        let rows = transaction
            .rows(AssertSqlSafe(sql), &values![claim_ms, limit])
            .await?;
        let endings = rows.iter().map(Ending::from_row).collect::<Result<_, _>>()?;
        transaction.commit_at(&[Boundary::ClaimEndings]).await?;
        Ok(endings)
    }

    /// Forgets an end that has been dealt with.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_ending(&self, ending: &Ending) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "DELETE FROM endings WHERE run_id = $1 AND attempt = $2 AND seq = $3",
                &values![&ending.run_id, ending.attempt, ending.seq],
            )
            .await?;
        transaction.commit_at(&[Boundary::Told]).await
    }

    /// The error triggers of an organization's live workflows, by workflow and node.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn error_listeners(&self, organization_id: &str) -> Result<Vec<ErrorListener>, StoreError> {
        let sql = format!(
            "SELECT t.node_id AS node_id, t.workflow_ids AS workflow_ids, {}
             FROM {LIVE_TABLES} JOIN error_triggers t ON t.workflow_id = w.id
             WHERE t.organization_id = $1 AND w.active AND w.version_no IS NOT NULL
             ORDER BY t.workflow_id, t.node_id",
            live_columns()
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id])
            .await?;
        let listener = |row: &Row| {
            Ok(ErrorListener {
                workflow: LiveWorkflow::from_row(row)?,
                trigger: ErrorTrigger {
                    node_id: row.get("node_id")?,
                    workflow_ids: row.get("workflow_ids")?,
                },
            })
        };
        rows.iter().map(listener).collect()
    }

    /// The unfinished runs that nodes of a run wait for.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unfinished_children(
        &self,
        organization_id: &str,
        run_id: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id FROM runs WHERE parent_run_id = $1 AND organization_id = $2 AND finished_at IS NULL",
                &values![run_id, organization_id],
            )
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
    }
}
