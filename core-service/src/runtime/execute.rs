//! Executions outside the engine: when their turn comes, for as long as they may take, and whatever becomes of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::event::{LogLine, NodeKey};
use engine::failure::NodeError;
use engine::step::Execute;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::timeout;

use super::Shared;
use super::context::RunContext;
use super::metrics::count;
use super::surroundings::Surroundings;
use crate::nodes::{Executed, Execution, Log};
use crate::secret::Hide;
use crate::turns::{Turn, on_behalf_of};

/// The code of failures that are the service's own.
pub(super) const ENGINE_ERROR: &str = "ENGINE_ERROR";

/// An execution that ended.
pub(super) struct Ended {
    pub(super) key: NodeKey,
    pub(super) attempt: u32,
    pub(super) started_at_ms: i64,
    pub(super) result: Result<Executed, NodeError>,
    pub(super) lines: Vec<LogLine>,
}

/// The executions of one run. Dropping gives them up.
#[derive(Default)]
pub(super) struct Executions {
    tasks: JoinSet<Returned>,
    begun: HashMap<Id, Begun>,
    /// The turn of one that has ended, for the next one to begin.
    turn: Option<Turn>,
}

/// An execution under way.
struct Begun {
    key: NodeKey,
    attempt: u32,
    started_at_ms: i64,
    only_computes: bool,
    log: Log,
    task: AbortHandle,
}

/// What came of an execution, and its turn if it had one.
type Returned = (Result<Executed, NodeError>, Option<Turn>);

impl Executions {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Whether any of those under way only computes.
    pub(super) fn compute(&self) -> bool {
        self.begun.values().any(|begun| begun.only_computes)
    }

    /// Begins one, in the turn of one that has just ended if there is one, else in its own.
    pub(super) fn begin(&mut self, shared: &Arc<Shared>, context: &RunContext, execute: Execute) {
        let (key, attempt, started_at_ms) = (execute.key.clone(), execute.attempt, execute.started_at_ms);
        let only_computes = execute.only_computes;
        let execution = execution(context, execute);
        let log = execution.log.clone();
        let turn = self.turn.take();
        let task = self.tasks.spawn(run(Arc::clone(shared), turn, execution));
        let begun = Begun {
            key,
            attempt,
            started_at_ms,
            only_computes,
            log,
            task,
        };
        self.begun.insert(begun.task.id(), begun);
    }

    /// What those under way have written so far, by node and attempt. It is told once.
    pub(super) fn written(&self) -> Vec<(NodeKey, u32, Vec<LogLine>)> {
        let written = self
            .begun
            .values()
            .map(|begun| (begun.key.clone(), begun.attempt, begun.log.take()));
        written.filter(|(_, _, lines)| !lines.is_empty()).collect()
    }

    /// Lets others have the turn of one that has ended.
    pub(super) fn yield_turn(&mut self) {
        self.turn = None;
    }

    /// Gives one of them up. Its result is not reported.
    pub(super) fn abort_one(&mut self, key: &NodeKey) {
        self.begun.retain(|_, begun| {
            let stays = begun.key != *key;
            if !stays {
                begun.task.abort();
            }
            stays
        });
    }

    /// Gives all of them up. Their results are not reported.
    pub(super) fn abort(&mut self) {
        self.begun.clear();
        self.tasks.abort_all();
        self.tasks.detach_all();
    }

    /// The next result. Pends for ever while nothing is being executed. Safe to drop while waiting.
    pub(super) async fn next(&mut self) -> Ended {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(joined) => {
                    if let Some(ended) = self.ended(joined) {
                        return ended;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    /// A result that is already there.
    pub(super) fn try_next(&mut self) -> Option<Ended> {
        loop {
            let joined = self.tasks.try_join_next_with_id()?;
            if let Some(ended) = self.ended(joined) {
                return Some(ended);
            }
        }
    }

    fn ended(&mut self, joined: Result<(Id, Returned), JoinError>) -> Option<Ended> {
        let (id, result) = match joined {
            Ok((id, (result, turn))) => {
                self.turn = turn;
                (id, result)
            }
            Err(error) => (
                error.id(),
                Err(NodeError::new(ENGINE_ERROR, "the node's executor failed")),
            ),
        };
        let begun = self.begun.remove(&id)?;
        Some(Ended {
            key: begun.key,
            attempt: begun.attempt,
            started_at_ms: begun.started_at_ms,
            result,
            lines: begun.log.take(),
        })
    }
}

fn execution(context: &RunContext, execute: Execute) -> Execution {
    let node = context.plan.node(execute.key.node);
    let text = |of: fn(&engine::plan::PlanNode) -> &String| node.map(of).cloned().unwrap_or_default();
    Execution {
        organization_id: Arc::clone(&context.organization_id),
        workflow_id: Arc::clone(&context.workflow_id),
        run_id: Arc::clone(&context.run_id),
        run_attempt: execute.run_attempt,
        app_id: text(|node| &node.app_id),
        module_slug: text(|node| &node.module_slug),
        credential_id: node.and_then(|node| node.credential_id.clone()),
        connection_id: node.and_then(|node| node.connection_id.clone()),
        apps: context.apps.clone(),
        key: execute.key,
        attempt: execute.attempt,
        started_at_ms: execute.started_at_ms,
        request: execute.request,
        timeout_ms: execute.timeout_ms,
        hide: hide(Arc::clone(&context.surroundings)),
        log: Log::default(),
    }
}

fn hide(surroundings: Arc<dyn Surroundings>) -> Hide {
    Hide::by(move |text| surroundings.mask_text(text))
}

/// Executes a node in a turn that is there already, or in its own.
pub(super) async fn run(shared: Arc<Shared>, turn: Option<Turn>, execution: Execution) -> Returned {
    let _pending = Pending::new(Arc::clone(&shared));
    let executor = shared
        .registry
        .executor(&execution.app_id, &execution.module_slug);
    let Some(executor) = executor else {
        let message = format!(
            "this server cannot execute {}/{}",
            execution.app_id, execution.module_slug
        );
        return (Err(NodeError::new(ENGINE_ERROR, message)), turn);
    };
    let turn = match turn {
        Some(turn) => Ok(turn),
        None => shared.limits.executions.turn(&execution.organization_id).await,
    };
    let Ok(turn) = turn else {
        return (
            Err(NodeError::new(ENGINE_ERROR, "too much is waiting to be executed")),
            None,
        );
    };
    count(&shared.metrics.executions_started);
    let timeout_ms = execution.timeout_ms;
    let organization_id = Arc::clone(&execution.organization_id);
    let executed = on_behalf_of(organization_id, executor.execute(execution));
    let result = timeout(Duration::from_millis(timeout_ms), executed).await;
    let result = result.unwrap_or_else(|_elapsed| Err(NodeError::timeout(timeout_ms)));
    (result, Some(turn))
}

/// Counts an execution for as long as it is under way.
struct Pending(Arc<Shared>);

impl Pending {
    fn new(shared: Arc<Shared>) -> Self {
        count(&shared.metrics.executions_pending);
        Self(shared)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.metrics.executions_pending.fetch_sub(1, Relaxed);
    }
}
