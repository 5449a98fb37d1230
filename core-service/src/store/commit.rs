//! The engine's only way to write: everything that many runs have to say, as one transaction.
//!
//! The transaction first checks the process's own lease and keeps it from being taken over until the end; a batch of a
//! process that was taken over is refused as a whole. Statements cover all rows of a batch at once.

use std::collections::{BTreeMap, HashSet};

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::payload::{Payload, insert_payloads};
use super::process::Lease;
use super::run_batch::{BatchOutcome, ChangeOutcome, CreateOutcome, NewRun, RunBatch, RunChange};
use super::value::Value;
use super::{Store, StoreError, Topic, activity, credit, ending, human_request, idempotency, schedule};
use crate::failpoint::Boundary;

/// A refused or failed commit. Nothing of the batch was written, except that after
/// [`StoreError::Unavailable`] during the commit itself the outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another process took this one's runs over. Stop driving them; register anew.
    #[error("this process's lease was taken over by another process")]
    LeaseLost,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Commits a batch of run writes; when it returns, they are on stable storage.
    ///
    /// # Errors
    /// [`CommitError::LeaseLost`] when this process was taken over; when the database fails.
    pub async fn commit_runs(&self, lease: &Lease, batch: &RunBatch) -> Result<BatchOutcome, CommitError> {
        let mut transaction = self.fenced(lease).await?;
        let mut outcome = batch.accepted();
        leave_to_others(&mut transaction, lease, &batch.changes, &mut outcome.changes).await?;
        schedule::take_ticks(&mut transaction, &batch.creates, &mut outcome.creates).await?;
        idempotency::claim_keys(&mut transaction, &batch.creates, &mut outcome.creates).await?;
        ending::refuse_orphans(&mut transaction, &batch.creates, &mut outcome.creates).await?;
        let held = credit::settle(&mut transaction, batch, &mut outcome).await?;
        idempotency::release_keys(&mut transaction, &batch.creates, &mut outcome.creates).await?;
        schedule::succeed(&mut transaction, &batch.creates, &outcome.creates).await?;

        let created = created(batch, &outcome);
        let changed = changed(batch, &outcome);
        insert_payloads(&mut transaction, &referred(batch, &created, &changed)).await?;
        insert_runs(&mut transaction, lease, &created, &held).await?;
        insert_segments(&mut transaction, &created, &changed).await?;
        write_timers(&mut transaction, &created, &changed).await?;
        human_request::write(&mut transaction, &changed).await?;
        finish_signals(&mut transaction, &changed).await?;
        update_summaries(&mut transaction, lease, &changed).await?;
        let first = created.iter().map(|run| (&run.id, &run.activity));
        let further = changed.iter().map(|change| (&change.run_id, &change.activity));
        activity::record_of_runs(&mut transaction, first.chain(further)).await?;
        let has_endings = ending::insert_endings(&mut transaction, &created, &changed).await?;
        transaction.commit_at(&boundaries(&created, &changed)).await?;
        if has_endings {
            self.notifier.wake_own(Topic::Endings);
        }
        Ok(outcome)
    }
}

fn created<'a>(batch: &'a RunBatch, outcome: &BatchOutcome) -> Vec<&'a NewRun> {
    let outcomes = batch.creates.iter().zip(&outcome.creates);
    outcomes
        .filter(|(_, outcome)| **outcome == CreateOutcome::Created)
        .map(|(run, _)| run)
        .collect()
}

fn changed<'a>(batch: &'a RunBatch, outcome: &BatchOutcome) -> Vec<&'a RunChange> {
    let outcomes = batch.changes.iter().zip(&outcome.changes);
    outcomes
        .filter(|(_, outcome)| **outcome == ChangeOutcome::Written)
        .map(|(change, _)| change)
        .collect()
}

/// Passes over what this process has to say of runs that it does not drive any more. A segment that is written again is
/// found to be there; a change without one, whose commit was in doubt, must not undo what others have done since.
async fn leave_to_others(
    session: &mut Session,
    lease: &Lease,
    changes: &[RunChange],
    outcomes: &mut [ChangeOutcome],
) -> Result<(), StoreError> {
    let bare = |change: &&RunChange| change.segments.is_empty() && !change.restarts;
    let ids: Vec<&str> = changes
        .iter()
        .filter(bare)
        .map(|change| &*change.run_id)
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let (one_of, lock) = (session.dialect().one_of(1), session.dialect().for_update());
    let sql = format!("SELECT id FROM runs WHERE id {one_of} AND process_id = $2 ORDER BY id{lock}");
    let values = [Value::Texts(&ids), Value::from(&lease.process_id)];
    let rows = session.rows(AssertSqlSafe(sql), &values).await?;
    let driven = rows
        .iter()
        .map(|row| row.get("id"))
        .collect::<Result<HashSet<String>, _>>()?;
    for (change, outcome) in changes.iter().zip(outcomes) {
        if bare(&change) && !driven.contains(&change.run_id) {
            *outcome = ChangeOutcome::NotDriven;
        }
    }
    Ok(())
}

/// The payloads of what is written.
fn referred<'a>(batch: &'a RunBatch, created: &[&NewRun], changed: &[&RunChange]) -> Vec<&'a Payload> {
    if batch.payloads.is_empty() {
        return Vec::new();
    }
    let first = created.iter().map(|run| run.id.as_str());
    let further = changed.iter().map(|change| change.run_id.as_str());
    let written: HashSet<&str> = first.chain(further).collect();
    let payloads = batch.payloads.iter();
    payloads
        .filter(|payload| written.contains(payload.run_id.as_str()))
        .collect()
}

/// What the commit of a batch makes durable. Nobody asks in a release build.
fn boundaries(created: &[&NewRun], changed: &[&RunChange]) -> Vec<Boundary> {
    if !cfg!(debug_assertions) {
        return Vec::new();
    }
    let of_start = |run: &&NewRun| {
        let begins = if run.tick.is_some() {
            Boundary::Fire
        } else {
            Boundary::Start
        };
        let further = [
            (run.summary.finished_at.is_some(), Boundary::End),
            (run.ending.is_some(), Boundary::Ending),
            (!run.timers.is_empty(), Boundary::Sleep),
        ];
        [(true, begins)].into_iter().chain(further)
    };
    let of_change = |change: &&RunChange| {
        let ends = change
            .summary
            .as_ref()
            .is_some_and(|summary| summary.finished_at.is_some());
        let answers = !change.requests_closed.is_empty() || !change.signals_done.is_empty();
        [
            (!ends && !change.segments.is_empty(), Boundary::Segment),
            (!change.set_timers.is_empty(), Boundary::Sleep),
            (!change.requests_opened.is_empty(), Boundary::Ask),
            (answers, Boundary::Answer),
            (ends, Boundary::End),
            (change.ending.is_some(), Boundary::Ending),
            (change.restarts, Boundary::Restart),
        ]
    };
    let crossed = created
        .iter()
        .flat_map(of_start)
        .chain(changed.iter().flat_map(of_change));
    crossed
        .filter_map(|(is_crossed, boundary)| is_crossed.then_some(boundary))
        .collect()
}

const INSERT_RUNS: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("organization_id", Kind::Text),
        ("workflow_id", Kind::Text),
        ("status", Kind::Text),
        ("attempt_number", Kind::Integer),
        ("created_at", Kind::Integer),
        ("finished_at", Kind::Integer),
        ("error", Kind::Bytes),
        ("credits_used", Kind::Integer),
        ("version_no", Kind::Integer),
        ("graph_hash", Kind::Text),
        ("start_input", Kind::Bytes),
        ("created_by", Kind::Text),
        ("process_id", Kind::Text),
        ("parked", Kind::Boolean),
        ("metered", Kind::Boolean),
        ("credit_held", Kind::Boolean),
        ("scheduled_at", Kind::Integer),
        ("parent_run_id", Kind::Text),
    ],
    tail: "INSERT INTO runs (id, organization_id, workflow_id, status, attempt_number, created_at, finished_at, error,
               credits_used, version_no, graph_hash, start_input, created_by, process_id, parked, metered, credit_held,
               scheduled_at, parent_run_id, crashes, pending_signals)
           SELECT v.*, 0, 0 FROM v",
};

async fn insert_runs(
    session: &mut Session,
    lease: &Lease,
    created: &[&NewRun],
    held: &HashSet<&str>,
) -> Result<(), StoreError> {
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(created.len() * INSERT_RUNS.columns.len());
    for run in created {
        let summary = &run.summary;
        rows.extend([
            Value::from(&run.id),
            Value::from(&run.organization_id),
            Value::from(&run.workflow_id),
            Value::from(summary.status.as_word()),
            Value::from(summary.attempt_number),
            Value::from(run.created_at),
            Value::from(summary.finished_at),
            Value::Bytes(summary.error.as_deref().map(str::as_bytes)),
            Value::from(summary.credits_used),
            Value::from(run.version_no),
            Value::from(&run.graph_hash),
            Value::from(&run.start_input),
            Value::from(&run.created_by),
            Value::from(summary.process_id(lease)),
            Value::from(summary.parked()),
            Value::from(run.metered),
            Value::from(held.contains(run.id.as_str())),
            Value::from(run.tick.as_ref().map(|tick| tick.instant)),
            Value::from(&run.parent_run_id),
        ]);
    }
    session.batch(&INSERT_RUNS, &rows).await?;
    Ok(())
}

const INSERT_SEGMENTS: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("attempt", Kind::Integer),
        ("seq", Kind::Integer),
        ("events", Kind::Bytes),
    ],
    tail: "INSERT INTO segments (run_id, attempt, seq, events) SELECT v.* FROM v",
};

async fn insert_segments(
    session: &mut Session,
    created: &[&NewRun],
    changes: &[&RunChange],
) -> Result<(), StoreError> {
    let first = created.iter().map(|run| (&run.id, &run.segments));
    let further = changes.iter().map(|change| (&change.run_id, &change.segments));
    let mut rows: Vec<Value<'_>> = Vec::new();
    for (run_id, segments) in first.chain(further) {
        for segment in segments {
            rows.extend([
                Value::from(run_id),
                Value::from(segment.attempt),
                Value::from(segment.seq),
                Value::from(&segment.events),
            ]);
        }
    }
    session.batch(&INSERT_SEGMENTS, &rows).await?;
    Ok(())
}

const UPDATE_SUMMARIES: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("status", Kind::Text),
        ("attempt_number", Kind::Integer),
        ("finished_at", Kind::Integer),
        ("error", Kind::Bytes),
        ("credits_used", Kind::Integer),
        ("process_id", Kind::Text),
        ("parked", Kind::Boolean),
    ],
    // A signal that arrived meanwhile keeps the run from being parked past it. A run that sleeps is past whatever its
    // processes may have died of.
    tail: "UPDATE runs SET status = v.status, attempt_number = v.attempt_number, finished_at = v.finished_at,
               error = v.error, credits_used = v.credits_used, process_id = v.process_id,
               parked = v.parked AND runs.pending_signals = 0,
               crashes = CASE WHEN v.parked THEN 0 ELSE runs.crashes END,
               on_trial = runs.on_trial AND v.process_id IS NOT NULL
           FROM v WHERE runs.id = v.id",
};

async fn update_summaries(
    session: &mut Session,
    lease: &Lease,
    changes: &[&RunChange],
) -> Result<(), StoreError> {
    let mut rows: Vec<Value<'_>> = Vec::new();
    for change in changes {
        let Some(summary) = &change.summary else { continue };
        rows.extend([
            Value::from(&change.run_id),
            Value::from(summary.status.as_word()),
            Value::from(summary.attempt_number),
            Value::from(summary.finished_at),
            Value::Bytes(summary.error.as_deref().map(str::as_bytes)),
            Value::from(summary.credits_used),
            Value::from(summary.process_id(lease)),
            Value::from(summary.parked()),
        ]);
    }
    session.batch(&UPDATE_SUMMARIES, &rows).await?;
    Ok(())
}

const CLEAR_TIMERS: BatchStatement = BatchStatement {
    columns: &[("run_id", Kind::Text), ("key", Kind::Text)],
    tail: "DELETE FROM timers WHERE (run_id, key) IN (SELECT v.run_id, v.key FROM v)",
};

const SET_TIMERS: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("key", Kind::Text),
        ("due_at", Kind::Integer),
        ("kind", Kind::Text),
    ],
    tail: "INSERT INTO timers (run_id, key, due_at, kind, organization_id)
           SELECT v.run_id, v.key, v.due_at, v.kind, r.organization_id FROM v JOIN runs r ON r.id = v.run_id WHERE TRUE
           ON CONFLICT (run_id, key) DO UPDATE SET due_at = excluded.due_at, kind = excluded.kind",
};

async fn write_timers(
    session: &mut Session,
    created: &[&NewRun],
    changes: &[&RunChange],
) -> Result<(), StoreError> {
    let cleared: Vec<Value<'_>> = changes
        .iter()
        .flat_map(|change| change.clear_timers.iter().map(move |key| (&change.run_id, key)))
        .flat_map(|(run_id, key)| [Value::from(run_id), Value::from(key)])
        .collect();
    session.batch(&CLEAR_TIMERS, &cleared).await?;

    let first = created.iter().map(|run| (&run.id, &run.timers));
    let further = changes.iter().map(|change| (&change.run_id, &change.set_timers));
    let mut set: Vec<Value<'_>> = Vec::new();
    for (run_id, timers) in first.chain(further) {
        for timer in timers {
            set.extend([
                Value::from(run_id),
                Value::from(&timer.key),
                Value::from(timer.due_at),
                Value::from(&timer.kind),
            ]);
        }
    }
    session.batch(&SET_TIMERS, &set).await?;
    Ok(())
}

const FINISH_SIGNALS: BatchStatement = BatchStatement {
    columns: &[("id", Kind::Text), ("outcome", Kind::Bytes)],
    tail: "UPDATE signals SET outcome = v.outcome FROM v WHERE signals.id = v.id AND signals.outcome IS NULL
           RETURNING run_id",
};

const COUNT_SIGNALS_DONE: BatchStatement = BatchStatement {
    columns: &[("run_id", Kind::Text), ("done", Kind::Integer)],
    tail: "UPDATE runs SET pending_signals = runs.pending_signals - v.done FROM v WHERE runs.id = v.run_id",
};

/// A signal that was done before counts no more.
async fn finish_signals(session: &mut Session, changes: &[&RunChange]) -> Result<(), StoreError> {
    let outcomes = changes.iter().flat_map(|change| &change.signals_done);
    let outcomes: Vec<Value<'_>> = outcomes
        .flat_map(|done| [Value::from(&done.id), Value::from(&done.outcome)])
        .collect();
    let mut done: BTreeMap<String, i64> = BTreeMap::new();
    for row in session.batch_returning(&FINISH_SIGNALS, &outcomes).await? {
        *done.entry(row.get("run_id")?).or_default() += 1;
    }
    let counts = done
        .iter()
        .flat_map(|(run_id, done)| [Value::from(run_id), Value::from(*done)]);
    session
        .batch(&COUNT_SIGNALS_DONE, &counts.collect::<Vec<_>>())
        .await?;
    Ok(())
}
