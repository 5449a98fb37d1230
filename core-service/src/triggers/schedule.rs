//! Fires schedules: whatever process looks first takes an instant, and the run it starts is created in the transaction
//! that moves the schedule on. So an instant has one run at most, however many processes look and whenever they die.
//!
//! A claim only keeps processes from doing the same work; nothing depends on it but speed.

use std::sync::Arc;

use engine::schedule::{Recurrence, Schedule, Turn};
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};

use super::Shared;
use super::due::Worker;
use super::metrics::count;
use crate::runtime::{GraphRef, Lineage, PlanError, StartRun, StartRunError, Trigger};
use crate::store::{DueSchedule, NextWake, Pass, StoreError, Tick, Topic, Trouble};

/// How long a schedule is left to the process that claimed it, in milliseconds. Well below what passes as punctual.
const CLAIM_MS: i64 = 5_000;

/// Activities that tell why an instant did not run.
const MISSED: &str = "workflow.schedule_missed";
const REFUSED: &str = "workflow.schedule_refused";

/// Fires what is due.
pub(super) struct Scheduler {
    pub(super) shared: Arc<Shared>,
}

impl Worker for Scheduler {
    type Due = DueSchedule;
    const TOPIC: Topic = Topic::Schedules;
    // Many at the same time, so that their runs are committed together.
    const AT_ONCE: usize = 64;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn next(&self) -> Result<Option<NextWake>, StoreError> {
        self.shared.store.next_schedule().await
    }

    async fn claim(&self, limit: i64) -> Result<Vec<DueSchedule>, StoreError> {
        self.shared.store.claim_schedules(CLAIM_MS, limit).await
    }

    async fn deal_with(&self, due: DueSchedule) {
        if let Err(error) = move_on(&self.shared, &due).await {
            tracing::warn!(%error, workflow_id = due.workflow.id, "a schedule could not be moved on; it will be tried again");
        }
    }
}

/// Moves a schedule on by one instant, or computes where it stands.
async fn move_on(shared: &Arc<Shared>, due: &DueSchedule) -> Result<(), StoreError> {
    let Some(schedule) = read(due) else {
        let never = Pass {
            after: due.after,
            next: None,
            trouble: None,
        };
        return shared.store.pass_schedule(due, &never).await.map(drop);
    };
    let Some(instant) = due.due_at else {
        let first = Pass {
            after: due.after,
            next: schedule.next_after(due.after, due.anchor),
            trouble: None,
        };
        return shared.store.pass_schedule(due, &first).await.map(drop);
    };
    match schedule.turn(instant, due.anchor, due.now) {
        Turn::Wait => Ok(()),
        Turn::Missed { count, last, next } => missed(shared, due, count, last, next).await,
        Turn::Run { next } => {
            let tick = Tick {
                revision: due.revision,
                instant,
                next,
                skip_if_running: schedule.skip_if_running(),
            };
            fire(shared, due, tick).await
        }
    }
}

/// The recurrence, which was checked when it was set.
fn read(due: &DueSchedule) -> Option<Schedule> {
    let stored: Value = serde_json::from_slice(&due.recurrence).unwrap_or_default();
    match Recurrence::parse(&stored).and_then(|recurrence| recurrence.validate()) {
        Ok(schedule) => Some(schedule),
        Err(problems) => {
            tracing::error!(
                workflow_id = due.workflow.id,
                ?problems,
                "a stored recurrence cannot be followed"
            );
            None
        }
    }
}

async fn missed(
    shared: &Shared,
    due: &DueSchedule,
    number: u64,
    last: i64,
    next: Option<i64>,
) -> Result<(), StoreError> {
    let reason = format!("{number} instants were noticed too late to be run");
    let pass = Pass {
        after: last,
        next,
        trouble: Some(trouble(MISSED, &reason)),
    };
    if shared.store.pass_schedule(due, &pass).await? {
        count(&shared.counters.ticks_missed, number);
        tracing::warn!(
            workflow_id = due.workflow.id,
            missed = number,
            "instants of a schedule were noticed too late to be run"
        );
    }
    Ok(())
}

async fn fire(shared: &Arc<Shared>, due: &DueSchedule, tick: Tick) -> Result<(), StoreError> {
    let workflow_id = &due.workflow.id;
    if let Some(refusal) = due.workflow.organization.refusal() {
        return refused(shared, due, &tick, refusal.sentence()).await;
    }
    let trigger_node = match trigger_node(shared, due).await {
        Ok(trigger_node) => trigger_node,
        Err(PlanError::Store(error)) if error.is_temporary() => return Ok(()),
        Err(error) => return refused(shared, due, &tick, &error.to_string()).await,
    };
    match shared.runtime.start_run(start(due, &tick, trigger_node)).await {
        Ok(started) => {
            count(&shared.counters.ticks_fired, 1);
            tracing::debug!(workflow_id, run_id = started.run_id, "a schedule started a run");
        }
        Err(StartRunError::StillRunning) => {
            count(&shared.counters.ticks_skipped, 1);
            tracing::debug!(workflow_id, "an instant is left out: an earlier run goes on");
        }
        Err(StartRunError::OutOfCredits) => {
            count(&shared.counters.ticks_refused, 1);
            tracing::warn!(workflow_id, "a scheduled run was refused: no credits are left");
            let trouble = trouble(REFUSED, "no credits are left");
            shared.store.trouble_schedule(due, trouble).await?;
        }
        // Another process was quicker, or the schedule was changed.
        Err(StartRunError::NotDue) => {}
        // It is tried again once the claim is over, until it is too late.
        Err(StartRunError::Overloaded | StartRunError::Unavailable | StartRunError::Internal) => {}
        Err(StartRunError::Plan(PlanError::Store(error))) if error.is_temporary() => {}
        Err(error) => return refused(shared, due, &tick, &error.to_string()).await,
    }
    Ok(())
}

/// Passes over an instant whose run cannot start.
async fn refused(shared: &Shared, due: &DueSchedule, tick: &Tick, why: &str) -> Result<(), StoreError> {
    let pass = Pass {
        after: tick.instant,
        next: tick.next,
        trouble: Some(trouble(REFUSED, why)),
    };
    if shared.store.pass_schedule(due, &pass).await? {
        count(&shared.counters.ticks_refused, 1);
        tracing::warn!(workflow_id = due.workflow.id, why, "a scheduled run was refused");
    }
    Ok(())
}

fn trouble<'a>(action: &'a str, reason: &'a str) -> Trouble<'a> {
    Trouble {
        action,
        node_id: None,
        reason,
    }
}

/// The schedule trigger of the deployed version; one without starts as it would by hand.
const TRIGGER_KIND: &str = "schedule_trigger";

async fn trigger_node(shared: &Shared, due: &DueSchedule) -> Result<Option<i64>, PlanError> {
    let workflow = &due.workflow;
    let plan = shared
        .runtime
        .plan(&workflow.organization.id, &workflow.deployment.content_hash)
        .await?;
    let nodes = plan.start_nodes(&StartFrom::Kind(TRIGGER_KIND.to_owned()));
    // That there is nothing to start is found by the start.
    let first = nodes.unwrap_or_default().into_iter().next();
    Ok(first.filter(|id| plan.node(*id).is_some_and(|node| node.is_trigger)))
}

fn start(due: &DueSchedule, tick: &Tick, node_id: Option<i64>) -> StartRun {
    let workflow = &due.workflow;
    let input = json!({ "scheduledAt": iso(tick.instant), "firedAt": iso(due.now) });
    StartRun {
        organization_id: workflow.organization.id.clone(),
        workflow_id: workflow.id.clone(),
        workflow_name: workflow.name.clone(),
        graph: GraphRef::Stored(workflow.deployment.content_hash.clone()),
        version_no: Some(workflow.deployment.version_no),
        start: Start {
            attempt: 1,
            from: StartFrom::Kind(TRIGGER_KIND.to_owned()),
            input: Arc::new(input),
            seeds: Vec::new(),
            timeout_ms: workflow.execution_timeout_ms.map(i64::unsigned_abs),
        },
        trigger: Trigger {
            kind: "schedule".to_owned(),
            node_id,
            ..Trigger::default()
        },
        idempotency: None,
        tick: Some(tick.clone()),
        lineage: Lineage::default(),
        created_by: None,
        metered: workflow.organization.is_metered(),
        actor: None,
    }
}

/// ISO-8601 with milliseconds.
fn iso(epoch_ms: i64) -> String {
    let instant = jiff::Timestamp::from_millisecond(epoch_ms).unwrap_or_default();
    format!("{instant:.3}")
}
