//! Drives runs: starts them, makes what happens in them durable, and carries out what the engine decides.
//!
//! The engine is a pure fold; here are the clock, the tasks and the database around it. Events are durable before any
//! command they led to is carried out, and before anybody is told of them; only what does nothing but compute may begin
//! sooner (`drive`).
//!
//! - `ending`: what there is to tell of the end of a run.
//! - `start`: the first step of a run, in the caller's task. `drive`, `take_in`, `settle`: the task of a run that goes
//!   on; `people`: whom it asks. `take_up`: a run that was claimed. `request`: what is asked of runs from outside;
//!   `watch`: waiting for them; `follow`: waiting for what they say.
//! - `journal`: the one writer, which commits what all runs have to say in batches.
//! - `lease`, `claim`: which runs are this process's, and finding those that are nobody's; `trial`: those that processes
//!   may have died of.
//! - `plans`, `surroundings`: what runs follow and what they reach; `calls`: the custom functions that they call.
//!   `limits`, `pace`: what keeps one organization, or one workflow that computes for long, from holding up the others.
//!
//! Everything that queues is bounded, and shared evenly among organizations (`limits`): starts under way (beyond, they wait
//! for their turn), starts that wait and live runs (beyond, starts are refused), writes (each start under way and each
//! live run waits for the one it has), executions (beyond, they wait for their turn; there are no more than live runs
//! bring), callers who wait for a run's answer (beyond, they are refused before anything starts), requests to one run (32;
//! beyond, callers wait at most `remote_patience`), notifications (the store's; what is missed is found by looking), plans (the least used are
//! forgotten), runs that are claimed at once. Runs that only wait are rows, not memory.
//!
//! Absent on purpose: permissions and billing (services), what nodes do (`nodes`), what starts runs by itself
//! (`triggers`).

mod backlog;
mod calls;
mod claim;
mod config;
mod context;
mod drive;
mod ending;
mod error;
mod execute;
mod follow;
mod journal;
mod lease;
mod limits;
mod live;
mod metrics;
mod pace;
mod people;
mod plans;
mod progress;
mod rebuild;
mod record;
mod report;
mod request;
mod settle;
mod start;
mod surroundings;
mod take_in;
mod take_up;
mod timers;
mod trial;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use engine::failure::NodeError;
use engine::plan::Plan;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, watch as channel};
use tokio::time::{Instant, timeout};

pub use calls::{Calls, FunctionAnswer, FunctionCall};
pub use config::RuntimeConfig;
pub use ending::{End, Notice};
pub use error::{PlanError, ReportError, RequestError, RuntimeError, StartRunError};
pub use follow::Followed;
pub use limits::WaitingPlace;
pub use metrics::MetricsSnapshot;
pub use people::OpenQuestion;
pub use plans::GraphRef;
pub use rebuild::Events;
pub use record::{Lineage, Parent, Trigger};
pub use report::Report;
pub use request::{Done, Waiting};
pub use start::{StartRun, Started};
pub use surroundings::{NoSurroundings, Surroundings, SurroundingsError, SurroundingsSource};
pub use watch::Watch;

use crate::nodes::{Executed, Execution, Registry};
use crate::store::{Actor, Store, Topic};
use claim::Alarm;
use journal::Journal;
use lease::LeaseCell;
use limits::Limits;
use live::LiveRuns;
use metrics::Metrics;
use plans::Plans;
use request::{Answer, Ask};
use watch::Watchers;

/// Drives the runs of this process. Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

/// What the tasks of a runtime share.
struct Shared {
    store: Store,
    registry: Arc<Registry>,
    surroundings: Arc<dyn SurroundingsSource>,
    config: RuntimeConfig,
    plans: Plans,
    lease: LeaseCell,
    journal: Journal,
    live: Arc<LiveRuns>,
    limits: Limits,
    metrics: Metrics,
    alarm: Alarm,
    /// Places of claimed runs until they are written.
    take_ups: Arc<Semaphore>,
    /// Wakes the task that claims runs.
    claims: Notify,
    /// The one place for a run that is tried.
    trial: Arc<Semaphore>,
    /// Runs of before have been claimed at least once.
    recovered: AtomicBool,
    watchers: Arc<Watchers>,
    draining: channel::Sender<bool>,
    /// Those who wait for runs are to go.
    dismissed: channel::Sender<bool>,
    /// A worker has panicked.
    broken: channel::Sender<bool>,
}

impl Runtime {
    /// Registers this process, begins to claim what nobody drives, and accepts starts from now on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn start(
        store: Store,
        registry: Arc<Registry>,
        surroundings: Arc<dyn SurroundingsSource>,
        config: RuntimeConfig,
    ) -> Result<Self, RuntimeError> {
        let (journal, entries) = Journal::new(&config);
        let shared = Arc::new(Shared {
            plans: Plans::new(
                store.clone(),
                Arc::clone(&registry),
                Arc::clone(&surroundings),
                config.plans,
            ),
            lease: LeaseCell::new(),
            journal,
            live: Arc::default(),
            limits: Limits::new(&config),
            metrics: Metrics::default(),
            take_ups: claim::take_ups(),
            alarm: Alarm::default(),
            claims: Notify::new(),
            trial: Arc::new(Semaphore::new(1)),
            recovered: AtomicBool::new(false),
            watchers: Arc::default(),
            draining: channel::Sender::new(false),
            dismissed: channel::Sender::new(false),
            broken: channel::Sender::new(false),
            store,
            registry,
            surroundings,
            config,
        });
        let confirmed = Instant::now();
        shared.register().await?;
        shared.employ("journal", journal::write(Arc::clone(&shared), entries));
        shared.employ("lease", lease::keep(Arc::clone(&shared), confirmed));
        shared.employ("claim", claim::run(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Starts a run. When this returns, the run is on stable storage, and goes on by itself whatever becomes of the
    /// caller.
    ///
    /// # Errors
    /// [`StartRunError`]; nothing was started, except that after `Unavailable` it may have been.
    pub async fn start_run(&self, start: StartRun) -> Result<Started, StartRunError> {
        self.shared.start_run(start).await
    }

    /// Cancels a run, whichever process drives it. When this returns, the cancel is committed: nothing follows it.
    ///
    /// # Errors
    /// `NotFound`, `Terminal`; `Unavailable` when the process that drives the run did not act in time: it still will.
    pub async fn cancel(
        &self,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
    ) -> Result<(), RequestError> {
        let asked = self.shared.ask(actor, organization_id, run_id, Ask::Cancel);
        asked.await.map(drop)
    }

    /// Gives a node that waits for an answer its output. Returns once that is committed; of two answers, the first wins,
    /// and none is taken for another attempt's.
    ///
    /// # Errors
    /// `NotFound`, `NotWaiting`, `Answered`, `Terminal`; `Unavailable` when the outcome is not known in time.
    pub async fn answer(
        &self,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
        waiting: Waiting,
        output: Value,
    ) -> Result<Done, RequestError> {
        let ask = Ask::Answer(Answer::by_person(waiting, output));
        self.shared.ask(actor, organization_id, run_id, ask).await
    }

    /// Gives a node that waits for another run what came of that. Returns once that is committed, or certain to be.
    ///
    /// # Errors
    /// As `answer`; `NotFound`, `NotWaiting`, `Answered` and `Terminal` mean that the node waits no more.
    pub async fn tell_parent(
        &self,
        organization_id: &str,
        parent: &Parent,
        result: Result<Value, NodeError>,
    ) -> Result<(), RequestError> {
        let answer = Answer::by_run(parent, result).ok_or(RequestError::NotWaiting(parent.node))?;
        self.shared
            .tell(organization_id, &parent.run_id, Ask::Answer(answer))
            .await
            .map(drop)
    }

    /// Cancels a run that nobody waits for any more. Returns once that is committed, or certain to be.
    ///
    /// # Errors
    /// As `cancel`.
    pub async fn give_up(&self, organization_id: &str, run_id: &str) -> Result<(), RequestError> {
        let told = self.shared.tell(organization_id, run_id, Ask::Cancel);
        told.await.map(drop)
    }

    /// What led to a run.
    ///
    /// # Errors
    /// [`ReportError`]
    pub async fn lineage(&self, organization_id: &str, run_id: &str) -> Result<Lineage, ReportError> {
        self.shared.lineage(organization_id, run_id).await
    }

    /// Runs a failed node of a run that has ended again, and all below it. Returns once that is committed. With
    /// `metered`, the organization has limited credits and this holds one, as a start does.
    ///
    /// # Errors
    /// `NotFound`, `NotTerminal`, `NotFailed`, `OutOfCredits`, `Unavailable`.
    pub async fn retry_node(
        &self,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
        node: i64,
        metered: bool,
    ) -> Result<(), RequestError> {
        let ask = Ask::RetryNode { node, metered };
        self.shared
            .ask(actor, organization_id, run_id, ask)
            .await
            .map(drop)
    }

    /// Begins the next attempt of a run that has ended, with the same input. Returns once that is committed. With
    /// `metered`, the organization has limited credits and this holds one, as a start does.
    ///
    /// # Errors
    /// `NotFound`, `NotTerminal`, `OutOfCredits`, `Unavailable`.
    pub async fn rerun(
        &self,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
        metered: bool,
    ) -> Result<(), RequestError> {
        let ask = Ask::Rerun { metered };
        self.shared
            .ask(actor, organization_id, run_id, ask)
            .await
            .map(drop)
    }

    /// A run and what happened in it, as far as it is durable.
    ///
    /// # Errors
    /// [`ReportError`]
    pub async fn report(&self, organization_id: &str, run_id: &str) -> Result<Report, ReportError> {
        self.shared.report(organization_id, run_id).await
    }

    /// What happened in an attempt of a run from a segment of its journal on, as far as it is durable. The caller has
    /// seen that the run is the organization's.
    ///
    /// # Errors
    /// [`ReportError`]
    pub async fn events(
        &self,
        organization_id: &str,
        run_id: &str,
        attempt: i64,
        from_seq: i64,
    ) -> Result<Events, ReportError> {
        let store = &self.shared.store;
        Ok(rebuild::events(store, organization_id, run_id, attempt, from_seq).await?)
    }

    /// Watches a run. Make this first and read the run then, so that no change is missed in between.
    #[must_use]
    pub fn watch(&self, run_id: &str) -> Watch {
        self.shared
            .watchers
            .watch(run_id, self.shared.config.poll_interval)
    }

    /// Executes a node outside of any run, when its organization's turn comes. Nothing of it is recorded.
    ///
    /// # Errors
    /// Why the execution failed.
    pub async fn execute(&self, execution: Execution) -> Result<Executed, NodeError> {
        let (result, _turn) = execute::run(Arc::clone(&self.shared), None, execution).await;
        result
    }

    /// The compiled plan of a stored graph.
    ///
    /// # Errors
    /// [`PlanError`]
    pub async fn plan(&self, organization_id: &str, content_hash: &str) -> Result<Arc<Plan>, PlanError> {
        let graph = GraphRef::Stored(content_hash.to_owned());
        Ok(self.shared.plans.get(organization_id, &graph).await?.plan)
    }

    /// Whether runs can be started: a lease is held, what was left behind is being recovered, and no stop is under way.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let shared = &self.shared;
        let works = !shared.is_draining() && !self.is_broken();
        shared.recovered.load(Relaxed) && shared.lease.current().is_some() && works
    }

    /// Whether a worker has panicked.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        *self.shared.broken.borrow()
    }

    /// Returns when a worker has panicked. The process should end then: what is durable goes on elsewhere or after a
    /// restart, and without its worker nothing goes on here.
    pub async fn broken(&self) {
        // The sender is part of the runtime, so the channel cannot close first.
        let mut broken = self.shared.broken.subscribe();
        let _broken = broken.wait_for(|broken| *broken).await;
    }

    /// Runs a worker beside the runtime's own for as long as the process lives. One that panics breaks the runtime.
    pub fn employ(&self, name: &'static str, worker: impl Future<Output = ()> + Send + 'static) {
        self.shared.employ(name, worker);
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining()
    }

    /// Returns when a stop is asked for.
    pub async fn drained(&self) {
        self.shared.drained().await;
    }

    /// Stops: nothing new is started, executions under way finish within `patience` or are given up, and every
    /// unfinished run is released, so that another process or the next start takes it up at once.
    pub async fn drain(&self, patience: Duration) {
        let shared = &self.shared;
        shared.draining.send_replace(true);
        if timeout(patience, shared.live.emptied()).await.is_err() {
            tracing::warn!(
                runs = shared.live.len(),
                "runs are released in the middle of an execution"
            );
        }
        let Some(held) = shared.lease.current() else {
            return;
        };
        if let Err(error) = shared.store.retire_process(&held.lease).await {
            tracing::warn!(%error, "the process could not be retired; its lease will expire");
        }
        shared.lease.end(held.generation);
        if let Err(error) = shared.store.notify(Topic::Ready, "").await {
            tracing::debug!(%error, "nobody was told of the released runs");
        }
    }

    /// The figures of this moment.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        let shared = &self.shared;
        let (starts_waiting, writes_queued) = (shared.limits.starts_waiting(), shared.journal.queued());
        shared
            .metrics
            .snapshot(starts_waiting, shared.live.len(), writes_queued)
    }
}

impl Shared {
    fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until a stop is asked for.
    async fn drained(&self) {
        // The sender is part of this, so the channel cannot close first.
        let mut draining = self.draining.subscribe();
        let _draining = draining.wait_for(|draining| *draining).await;
    }

    /// Runs a worker for as long as the process lives, and tells when it does not live that long.
    fn employ(self: &Arc<Self>, name: &'static str, worker: impl Future<Output = ()> + Send + 'static) {
        let worker = tokio::spawn(worker);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            if worker.await.is_err_and(|error| error.is_panic()) {
                tracing::error!(
                    worker = name,
                    "a worker of the runtime panicked; the process cannot go on"
                );
                shared.broken.send_replace(true);
            }
        });
    }

    fn recovered(&self) {
        self.recovered.store(true, Relaxed);
    }
}
