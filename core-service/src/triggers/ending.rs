//! Tells of the ends of runs: nodes that wait for them, runs that nobody waits for any more, and error triggers.
//!
//! The row that says so is written in the commit of the end and deleted when all have been told. Telling twice does no
//! harm: a node takes one answer, and an error trigger's run has a key.

use std::sync::Arc;
use std::time::Duration;

use engine::start::{Start, StartFrom};
use serde_json::json;

use super::Shared;
use super::call;
use super::due::Worker;
use super::key::{KEY_LIFETIME_MS, service_key};
use super::metrics::count;
use crate::clock;
use crate::runtime::{
    End, GraphRef, Lineage, Notice, Parent, PlanError, ReportError, RequestError, StartRun, StartRunError,
    Trigger,
};
use crate::store::{Ending, ErrorListener, IdempotencyKey, NextWake, StoreError, Topic};

/// How long an end is left to the process that claimed it, in milliseconds.
const CLAIM_MS: i64 = 5_000;

/// Tells of ends.
pub(super) struct Teller {
    pub(super) shared: Arc<Shared>,
}

/// Somebody could not be told; the end stays to be told again.
enum Obstacle {
    Store(StoreError),
    Passing,
}

impl From<StoreError> for Obstacle {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Worker for Teller {
    type Due = Ending;
    const TOPIC: Topic = Topic::Endings;
    const AT_ONCE: usize = 64;
    const LOOK_EVERY: Duration = Duration::from_secs(2);

    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn next(&self) -> Result<Option<NextWake>, StoreError> {
        self.shared.store.next_ending().await
    }

    async fn claim(&self, limit: i64) -> Result<Vec<Ending>, StoreError> {
        self.shared.store.claim_endings(CLAIM_MS, limit).await
    }

    async fn deal_with(&self, due: Ending) {
        tell_all(&self.shared, due).await;
    }
}

async fn tell_all(shared: &Shared, ending: Ending) {
    let told = match serde_json::from_slice(&ending.notice) {
        Ok(notice) => tell(shared, &ending, &notice).await,
        Err(error) => {
            tracing::error!(%error, run_id = ending.run_id, "the end of a run cannot be read; nobody is told");
            Ok(())
        }
    };
    let done = match told {
        Ok(()) => shared.store.delete_ending(&ending).await,
        Err(Obstacle::Store(error)) => Err(error),
        Err(Obstacle::Passing) => return,
    };
    if let Err(error) = done {
        tracing::warn!(%error, run_id = ending.run_id, "not all could be told of a run's end; it will be tried again");
    }
}

async fn tell(shared: &Shared, ending: &Ending, notice: &Notice) -> Result<(), Obstacle> {
    tell_parent(shared, ending, notice).await?;
    if notice.has_children {
        give_up_children(shared, ending, notice.ended_at_ms).await?;
    }
    match &notice.end {
        End::Failed { .. } if !notice.lineage.by_error => tell_error_triggers(shared, ending, notice).await,
        _ => Ok(()),
    }
}

async fn tell_parent(shared: &Shared, ending: &Ending, notice: &Notice) -> Result<(), Obstacle> {
    let Some(parent) = &notice.lineage.parent else {
        return Ok(());
    };
    let outcome = call::outcome(&ending.run_id, notice.end.clone());
    let told = shared
        .runtime
        .tell_parent(&ending.organization_id, parent, outcome)
        .await;
    is_told(told)
}

/// Cancels the runs that nodes of an ended run waited for. Those that it has started since, begun again, are another matter.
async fn give_up_children(shared: &Shared, ending: &Ending, ended_at_ms: i64) -> Result<(), Obstacle> {
    let organization_id = &ending.organization_id;
    for run_id in shared
        .store
        .unfinished_children(organization_id, &ending.run_id)
        .await?
    {
        let lineage = match shared.runtime.lineage(organization_id, &run_id).await {
            Ok(lineage) => lineage,
            Err(ReportError::Store(error)) if error.is_temporary() => return Err(error.into()),
            // It is gone, or nobody can tell whose it is.
            Err(_) => continue,
        };
        let waits = |parent: &Parent| parent.started_at_ms <= ended_at_ms;
        if !lineage.parent.as_ref().is_some_and(waits) {
            continue;
        }
        is_told(shared.runtime.give_up(organization_id, &run_id).await)?;
    }
    Ok(())
}

/// A run that has ended or waits no more needs not to be told.
fn is_told(told: Result<(), RequestError>) -> Result<(), Obstacle> {
    match told {
        Err(RequestError::Unavailable | RequestError::Internal) => Err(Obstacle::Passing),
        _ => Ok(()),
    }
}

/// Starts a run of each live workflow with an error trigger for the failed run's workflow.
async fn tell_error_triggers(shared: &Shared, ending: &Ending, notice: &Notice) -> Result<(), Obstacle> {
    let listeners = shared.store.error_listeners(&ending.organization_id).await?;
    let mut told = None;
    for listener in listeners
        .iter()
        .filter(|listener| listens(listener, &notice.workflow_id))
    {
        // Of several triggers of a workflow, the first counts. They come by workflow.
        if told.replace(&listener.workflow.id) == Some(&listener.workflow.id) {
            continue;
        }
        start(shared, ending, notice, listener).await?;
    }
    Ok(())
}

/// Whether an error trigger names a workflow. One that names none is for all but its own.
fn listens(listener: &ErrorListener, workflow_id: &str) -> bool {
    let named: Option<Vec<String>> = serde_json::from_slice(&listener.trigger.workflow_ids).ok();
    named.is_some_and(|named| match named.as_slice() {
        [] => listener.workflow.id != workflow_id,
        named => named.iter().any(|named| named == workflow_id),
    })
}

async fn start(
    shared: &Shared,
    ending: &Ending,
    notice: &Notice,
    listener: &ErrorListener,
) -> Result<(), Obstacle> {
    let workflow_id = &listener.workflow.id;
    let refused = |why: &str| {
        count(&shared.counters.errors_refused, 1);
        tracing::warn!(workflow_id, why, "a run of an error trigger was refused");
    };
    if let Some(refusal) = listener.workflow.organization.refusal() {
        refused(refusal.sentence());
        return Ok(());
    }
    match shared
        .runtime
        .start_run(error_run(ending, notice, listener))
        .await
    {
        Ok(started) => {
            count(&shared.counters.errors_fired, u64::from(!started.replayed));
            Ok(())
        }
        Err(StartRunError::Overloaded | StartRunError::Unavailable | StartRunError::Internal) => {
            Err(Obstacle::Passing)
        }
        Err(StartRunError::Plan(PlanError::Store(error))) if error.is_temporary() => Err(Obstacle::Passing),
        Err(error) => {
            refused(&error.to_string());
            Ok(())
        }
    }
}

fn error_run(ending: &Ending, notice: &Notice, listener: &ErrorListener) -> StartRun {
    let workflow = &listener.workflow;
    let (node_id, code, message) = match &notice.end {
        End::Failed {
            node_id,
            code,
            message,
        } => (*node_id, code.as_str(), message.as_str()),
        End::Succeeded { .. } | End::Cancelled => (None, "", ""),
    };
    let input = json!({
        "runId": ending.run_id,
        "workflowId": notice.workflow_id,
        "nodeId": node_id,
        "error": { "code": code, "message": message },
    });
    let key = service_key(&format!(
        "error {} {} {}",
        ending.run_id, ending.attempt, ending.seq
    ));
    StartRun {
        organization_id: workflow.organization.id.clone(),
        workflow_id: workflow.id.clone(),
        workflow_name: workflow.name.clone(),
        graph: GraphRef::Stored(workflow.deployment.content_hash.clone()),
        version_no: Some(workflow.deployment.version_no),
        start: Start {
            attempt: 1,
            from: StartFrom::Trigger(listener.trigger.node_id),
            input: Arc::new(input),
            seeds: Vec::new(),
            timeout_ms: workflow.execution_timeout_ms.map(i64::unsigned_abs),
        },
        trigger: Trigger {
            kind: "error".to_owned(),
            node_id: Some(listener.trigger.node_id),
            parent_run_id: Some(ending.run_id.clone()),
            ..Trigger::default()
        },
        idempotency: Some(IdempotencyKey {
            key,
            body_hash: Vec::new(),
            expires_at: clock::now_ms() + KEY_LIFETIME_MS,
        }),
        tick: None,
        lineage: Lineage {
            by_error: true,
            ..Lineage::default()
        },
        created_by: None,
        metered: workflow.organization.is_metered(),
        actor: None,
    }
}
