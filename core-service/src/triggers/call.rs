//! What `run_workflow` does: starts a run of another workflow, once, however often the node is executed.
//!
//! A node that waits needs no memory: its run is parked, and the end of the other run, which names it, wakes it
//! (`ending.rs`). The run is found again by a key made of the waiting run, its attempt, the node, the time at which
//! that began and its attempt, so a crash between its start and the parking starts no second one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::failure::NodeError;
use engine::graph::Graph;
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};
use tokio::sync::SetOnce;
use tokio::time::sleep;

use super::key::{KEY_LIFETIME_MS, service_key};
use crate::clock;
use crate::functions::{DraftOf, freeze};
use crate::nodes::{
    BoxFuture, CallMode, CalledVersion, Executed, Execution, Executor, Registry, WorkflowCall,
};
use crate::runtime::{
    End, GraphRef, Lineage, Parent, ReportError, Runtime, StartRun, StartRunError, Started, Trigger,
};
use crate::store::{IdempotencyKey, Organization, Store, StoreError};

/// How many runs may call one another: the one that nobody called, and so many below it.
pub const MAX_DEPTH: u32 = 16;
/// The code of a node whose run failed, was cancelled or could not start.
const CHILD_FAILED: &str = "CHILD_FAILED";
const DEPTH_LIMIT: &str = "DEPTH_LIMIT";
/// The code of what is no fault of the workflow.
const ENGINE_ERROR: &str = "ENGINE_ERROR";
/// Before a start that was refused for the moment is tried again; the node's time-out ends that.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Executes `run_workflow`, once it knows the runtime that executes it.
#[derive(Clone, Default)]
pub struct WorkflowCalls {
    /// Not owned: the runtime that is reached owns the executors, this one too.
    reach: Arc<SetOnce<Weak<Reach>>>,
}

/// What calls reach.
pub(super) struct Reach {
    pub(super) store: Store,
    pub(super) runtime: Runtime,
    pub(super) registry: Arc<Registry>,
}

impl WorkflowCalls {
    /// Lets calls that wait for it begin.
    pub(super) fn serve(&self, reach: &Arc<Reach>) {
        // It is set once, when the process starts.
        let _first = self.reach.set(Arc::downgrade(reach));
    }
}

impl Executor for WorkflowCalls {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            match self.reach.wait().await.upgrade() {
                Some(reach) => reach.call(execution).await,
                // The process ends; whoever takes the run over calls.
                None => std::future::pending().await,
            }
        })
    }
}

/// Why a node has no result yet, or never will.
enum Obstacle {
    /// The database cannot be reached, or too much is under way.
    Passing,
    /// The node fails.
    Failed(NodeError),
}

impl Reach {
    /// Calls, however long that is impossible for the moment; the time-out of the attempt ends it.
    async fn call(&self, execution: Execution) -> Result<Executed, NodeError> {
        let call: WorkflowCall = serde_json::from_value(execution.request.clone())
            .map_err(|error| NodeError::expression(format!("the parameters cannot be used: {error}")))?;
        loop {
            match self.try_call(&execution, &call).await {
                Ok(executed) => return Ok(executed),
                Err(Obstacle::Failed(error)) => return Err(error),
                Err(Obstacle::Passing) => sleep(TRY_AGAIN_AFTER).await,
            }
        }
    }

    async fn try_call(&self, execution: &Execution, call: &WorkflowCall) -> Result<Executed, Obstacle> {
        let organization_id = &*execution.organization_id;
        let key = call_key(execution);
        let before = self
            .store
            .idempotent_run(organization_id, &call.workflow_id, &key)
            .await?;
        let run_id = match before {
            Some(before) => before.run_id,
            None => match self.start(execution, call, key).await? {
                Started {
                    ended: Some(state),
                    run_id,
                    ..
                } if call.mode == CallMode::Wait => return ended(&run_id, End::of(&state)),
                started => started.run_id,
            },
        };
        match call.mode {
            CallMode::Fire => Ok(Executed::Output(fired(&run_id))),
            CallMode::Wait => self.park(organization_id, &run_id, call.patience_ms).await,
        }
    }

    /// Lets the node wait for a run, unless that has ended already: then nobody tells of it any more.
    async fn park(
        &self,
        organization_id: &str,
        run_id: &str,
        patience_ms: Option<u64>,
    ) -> Result<Executed, Obstacle> {
        let run = self.store.run(organization_id, run_id).await?;
        if run.status.is_terminal() {
            let report = self.runtime.report(organization_id, run_id).await?;
            return ended(run_id, End::of(&report.state));
        }
        let due_at_ms = patience_ms.map(|patience| clock::now_ms().saturating_add_unsigned(patience));
        Ok(Executed::Parked { due_at_ms })
    }

    async fn start(
        &self,
        execution: &Execution,
        call: &WorkflowCall,
        key: String,
    ) -> Result<Started, Obstacle> {
        let lineage = self.lineage(execution, call.mode).await?;
        let run = self.run(execution, call, lineage, key).await?;
        self.runtime.start_run(run).await.map_err(|error| match error {
            StartRunError::Overloaded | StartRunError::Unavailable => Obstacle::Passing,
            error => failed(format!("the workflow cannot be run: {error}")).into(),
        })
    }

    async fn lineage(&self, execution: &Execution, mode: CallMode) -> Result<Lineage, Obstacle> {
        let (organization_id, run_id) = (&*execution.organization_id, &*execution.run_id);
        let own = self.runtime.lineage(organization_id, run_id).await?;
        if own.depth >= MAX_DEPTH {
            let message = format!("runs call one another at most {MAX_DEPTH} levels deep");
            return Err(NodeError::new(DEPTH_LIMIT, message).into());
        }
        let parent = Parent {
            run_id: run_id.to_owned(),
            node: execution.key.node,
            iteration: execution.key.iteration.to_string(),
            started_at_ms: execution.started_at_ms,
            attempt: execution.attempt,
        };
        Ok(Lineage {
            depth: own.depth + 1,
            by_error: own.by_error,
            parent: (mode == CallMode::Wait).then_some(parent),
        })
    }

    /// The run to start, or why there is none.
    async fn run(
        &self,
        execution: &Execution,
        call: &WorkflowCall,
        lineage: Lineage,
        key: String,
    ) -> Result<StartRun, Obstacle> {
        let callee = self.callee(&execution.organization_id, call).await?;
        if let Some(refusal) = callee.organization.refusal() {
            return Err(failed(refusal.sentence()).into());
        }
        let input = match &call.input {
            Value::Null => json!({}),
            input => input.clone(),
        };
        Ok(StartRun {
            organization_id: callee.organization.id.clone(),
            workflow_id: call.workflow_id.clone(),
            workflow_name: callee.name,
            graph: callee.graph,
            version_no: callee.version_no,
            start: Start {
                attempt: 1,
                from: StartFrom::Kind("workflow_trigger".to_owned()),
                input: Arc::new(input),
                seeds: Vec::new(),
                timeout_ms: callee.execution_timeout_ms.map(i64::unsigned_abs),
            },
            trigger: Trigger {
                kind: "workflow".to_owned(),
                parent_run_id: Some(execution.run_id.to_string()),
                ..Trigger::default()
            },
            idempotency: Some(IdempotencyKey {
                key,
                body_hash: Vec::new(),
                expires_at: clock::now_ms() + KEY_LIFETIME_MS,
            }),
            tick: None,
            lineage,
            created_by: None,
            metered: callee.organization.is_metered(),
            actor: None,
        })
    }

    async fn callee(&self, organization_id: &str, call: &WorkflowCall) -> Result<Callee, Obstacle> {
        let workflow_id = &call.workflow_id;
        let unknown = |error| match error {
            StoreError::NotFound(_) => failed(format!("there is no workflow {workflow_id}")).into(),
            error => Obstacle::from(error),
        };
        if call.version == CalledVersion::Draft {
            let workflow = self
                .store
                .workflow(organization_id, workflow_id)
                .await
                .map_err(unknown)?;
            let organization = self.store.organization(organization_id).await?;
            let draft: Graph = serde_json::from_slice(&workflow.draft.graph)
                .map_err(|_| failed(format!("the draft of {workflow_id} cannot be read")))?;
            let of = DraftOf {
                organization_id,
                workflow_id,
            };
            let kinds = self.registry.of(organization_id).await?;
            let frozen = freeze(&self.store, &kinds, of, &draft, &workflow.draft.graph).await?;
            return Ok(Callee {
                name: workflow.name,
                graph: GraphRef::Frozen(frozen),
                version_no: None,
                execution_timeout_ms: workflow.execution_timeout_ms,
                organization,
            });
        }
        let live = self.store.live_workflow(organization_id, workflow_id).await;
        let workflow = live
            .map_err(unknown)?
            .ok_or_else(|| failed(format!("workflow {workflow_id} is not deployed")))?;
        if !workflow.active {
            return Err(failed(format!("workflow {workflow_id} is not active")).into());
        }
        Ok(Callee {
            name: workflow.name,
            graph: GraphRef::Stored(workflow.deployment.content_hash),
            version_no: Some(workflow.deployment.version_no),
            execution_timeout_ms: workflow.execution_timeout_ms,
            organization: workflow.organization,
        })
    }
}

/// What is to run.
struct Callee {
    name: String,
    graph: GraphRef,
    version_no: Option<i64>,
    execution_timeout_ms: Option<i64>,
    organization: Organization,
}

/// The key of the run that one attempt at a node starts.
fn call_key(execution: &Execution) -> String {
    let (started, attempt) = (execution.started_at_ms, execution.attempt);
    service_key(&format!(
        "call {} {started} {attempt}",
        execution.idempotency_key()
    ))
}

/// What a node that does not wait outputs.
fn fired(run_id: &str) -> Value {
    json!({ "runId": run_id, "status": "queued", "output": null })
}

fn ended(run_id: &str, end: Option<End>) -> Result<Executed, Obstacle> {
    let end = end.ok_or_else(|| failed(format!("run {run_id} has not ended")))?;
    Ok(Executed::Output(outcome(run_id, end)?))
}

/// What a node that waited is told of the run.
pub(super) fn outcome(run_id: &str, end: End) -> Result<Value, NodeError> {
    match end {
        End::Succeeded { output } => Ok(json!({ "runId": run_id, "status": "succeeded", "output": output })),
        End::Failed { code, message, .. } => Err(failed(format!("{run_id} failed: {code}: {message}"))),
        End::Cancelled => Err(failed(format!("{run_id} was cancelled"))),
    }
}

fn failed(message: impl Into<String>) -> NodeError {
    NodeError::new(CHILD_FAILED, message)
}

impl From<NodeError> for Obstacle {
    fn from(error: NodeError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Obstacle {
    fn from(error: StoreError) -> Self {
        if error.is_temporary() {
            return Self::Passing;
        }
        tracing::error!(%error, "a workflow could not be called");
        Self::Failed(NodeError::new(ENGINE_ERROR, "the workflow could not be called"))
    }
}

impl From<ReportError> for Obstacle {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Store(error) => error.into(),
            error => Self::Failed(NodeError::new(ENGINE_ERROR, error.to_string())),
        }
    }
}
