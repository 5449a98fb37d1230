//! Starting runs.
//!
//! The first step runs in the caller's task, before anything is written. A run that ends in it, or has only to wait
//! after it, is one row and one segment; any other goes on in a task of its own once those are durable.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::start::Start;
use engine::state::RunState;
use engine::step::{Command, Input, StepError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Shared;
use super::calls::Calls;
use super::context::RunContext;
use super::drive::{LiveRun, Place, Settled};
use super::ending::ending;
use super::error::StartRunError;
use super::execute::Executions;
use super::journal::{Record, Write, WriteError};
use super::lease::Held;
use super::limits::Counted;
use super::metrics::count;
use super::plans::GraphRef;
use super::progress::{Next, Progress, StepFailure, credits, summary};
use super::record::{From as StoredFrom, Lineage, StartRecord, Trigger};
use super::timers::Timers;
use crate::store::{Actor, CreateOutcome, Driver, IdempotencyKey, NewRun, RunActivity, StoreError, Tick};
use crate::turns::Turn;
use crate::{clock, id};

/// A run to start.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The organization it is for.
    pub organization_id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// The workflow's name, for `$workflow.name`.
    pub workflow_name: String,
    /// The graph it follows.
    pub graph: GraphRef,
    /// The deployed version it runs; absent for a draft.
    pub version_no: Option<i64>,
    /// Where it begins and with what. `timeout_ms` is the workflow's execution time-out.
    pub start: Start,
    /// What started it.
    pub trigger: Trigger,
    /// Makes a repeated start find the first run.
    pub idempotency: Option<IdempotencyKey>,
    /// The instant of the workflow's schedule that it is for.
    pub tick: Option<Tick>,
    /// What led to it.
    pub lineage: Lineage,
    /// The user who started it.
    pub created_by: Option<String>,
    /// The organization has limited credits: the start holds one.
    pub metered: bool,
    /// The member who asks for it, for the activity feed; nothing for what starts by itself.
    pub actor: Option<Actor>,
}

/// A start that is durable.
pub struct Started {
    /// The run; when `replayed`, the one that the first such request started.
    pub run_id: String,
    /// The idempotency key was used before, by the same request.
    pub replayed: bool,
    /// The whole run, when it ended in its first step: see [`RunState::finished`], [`RunState::last_output`].
    pub ended: Option<RunState>,
}

/// A run after its first step, nothing of which is durable yet.
struct Newborn {
    context: RunContext,
    state: RunState,
    timers: Timers,
    commands: Vec<Command>,
    next: Next,
    record: Record,
}

impl Shared {
    /// Starts a run. When it returns a run, that is durable.
    pub(super) async fn start_run(self: &Arc<Self>, start: StartRun) -> Result<Started, StartRunError> {
        let held = self.lease.current().filter(|_| !self.is_draining());
        let held = held.ok_or(StartRunError::Unavailable)?;
        let turn = self.limits.start(&start.organization_id).await;
        let turn = turn.map_err(|_too_many_wait| self.overloaded())?;
        let newborn = self.first_step(start).await?;
        let run_id = newborn.context.run_id.to_string();
        if newborn.next == Next::Drive {
            let outcome = match self.limits.begin_live(&newborn.context.organization_id) {
                Some(counted) => self.start_live(held, newborn, counted, turn).await?,
                // Its parent makes room by waiting for it, so it must not wait for room.
                None if newborn.context.record.lineage.depth > 0 => {
                    self.start_unclaimed(&held, newborn.record, turn).await?
                }
                None => return Err(self.overloaded()),
            };
            return self.started(outcome, run_id, None);
        }
        let Newborn {
            state, next, record, ..
        } = newborn;
        let outcome = match self.journal.create(held.generation, record, turn).await {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.not_started(&error)),
        };
        if outcome == CreateOutcome::Created {
            match next {
                Next::Sleep(alarm) => self.alarm_set(alarm),
                _ => self.metrics.finished(state.status()),
            }
        }
        self.started(outcome, run_id, (next == Next::Over).then_some(state))
    }

    async fn first_step(&self, start: StartRun) -> Result<Newborn, StartRunError> {
        let compiled = self.plans.get(&start.organization_id, &start.graph).await?;
        let surroundings = self
            .surroundings
            .load(
                &start.organization_id,
                &start.workflow_id,
                &compiled.functions,
                compiled.reads_variables,
            )
            .await;
        let surroundings = surroundings.map_err(|error| {
            tracing::warn!(%error, "the surroundings of a run could not be loaded");
            StartRunError::Unavailable
        })?;
        let record = StartRecord {
            from: StoredFrom::of(&start.start.from),
            lineage: start.lineage,
            timeout_ms: start.start.timeout_ms,
            trigger: start.trigger,
            workflow_name: start.workflow_name,
        };
        let start_input = serde_json::to_vec(&record).map_err(|_| StartRunError::Internal)?;
        let run_id = id::new(id::Kind::Run);
        let context = RunContext {
            run_id: run_id.as_str().into(),
            organization_id: start.organization_id.as_str().into(),
            workflow_id: start.workflow_id.as_str().into(),
            created_at: clock::now_ms(),
            attempt: 1,
            metered: start.metered,
            record,
            plan: compiled.plan,
            apps: compiled.apps,
            pace: compiled.pace,
            calls_workflows: compiled.calls_workflows,
            surroundings,
            calls: (!compiled.functions.is_empty()).then(Calls::default),
            roots: OnceLock::new(),
        };
        let mut state = RunState::new(Arc::clone(&context.plan));
        let mut timers = Timers::default();
        let mut progress = Progress::default();
        let slow_steps = &self.limits.slow_steps;
        let _turn = context.pace.turn(slow_steps, &context.organization_id).await;
        let input = Input::Start(Start {
            attempt: 1,
            ..start.start
        });
        progress
            .step(&mut state, input, &context, &mut timers)
            .map_err(|failure| match failure {
                StepFailure::Refused(StepError::Start(refused)) => StartRunError::Start(refused),
                StepFailure::Refused(_) | StepFailure::Unanswered(_) | StepFailure::Panicked => {
                    StartRunError::Internal
                }
            })?;
        let next = progress.next(&state, &timers, self.config.keep_waiting);
        let (segments, payloads) = progress.segment(&context, 0);
        let activity = start.actor.map(|actor| RunActivity {
            organization_id: start.organization_id.clone(),
            actor,
            action: "run.started",
        });
        let run = NewRun {
            id: run_id,
            organization_id: start.organization_id,
            workflow_id: start.workflow_id,
            version_no: start.version_no,
            graph_hash: start.graph.into_content_hash(),
            start_input,
            created_by: start.created_by,
            created_at: context.created_at,
            summary: summary(&state, 0, next),
            metered: start.metered,
            idempotency: start.idempotency,
            tick: start.tick,
            parent_run_id: parent_run_id(&context),
            ending: ending(&context, &state, &progress.events, 0),
            segments,
            timers: next.alarm(),
            activity: activity.into_iter().collect(),
        };
        let record = Record {
            organization_id: Arc::clone(&context.organization_id),
            write: Write::Create(Box::new(run)),
            payloads,
        };
        Ok(Newborn {
            context,
            state,
            timers,
            commands: progress.commands,
            next,
            record,
        })
    }

    /// Starts a run that goes on in memory. From here on it does not depend on the caller.
    async fn start_live(
        self: &Arc<Self>,
        held: Held,
        newborn: Newborn,
        counted: Counted,
        turn: Turn,
    ) -> Result<CreateOutcome, StartRunError> {
        let Newborn {
            context,
            state,
            timers,
            commands,
            record,
            ..
        } = newborn;
        let seat = self
            .live
            .enter(&context.run_id)
            .map_err(|_taken| StartRunError::Internal)?;
        let journal = Place {
            next_seq: 1,
            credits_before: 0,
            credits_recorded: credits(&state),
            has_alarm: false,
            started: None,
        };
        let live = LiveRun {
            shared: Arc::clone(self),
            held,
            context: Arc::new(context),
            state,
            timers,
            journal,
            signals_seen: HashSet::new(),
            broken: false,
            executions: Executions::default(),
            held_back: VecDeque::new(),
            questions: HashMap::new(),
            seat,
            _counted: counted,
            _on_trial: None,
        };
        let (reply, outcome) = oneshot::channel();
        tokio::spawn(live.begin(record, commands, turn, reply));
        outcome.await.unwrap_or(Err(StartRunError::Internal))
    }

    /// Starts a run as a row, for whichever process has room first.
    async fn start_unclaimed(
        &self,
        held: &Held,
        mut record: Record,
        turn: Turn,
    ) -> Result<CreateOutcome, StartRunError> {
        if let Write::Create(run) = &mut record.write {
            run.summary.driver = Driver::Anyone;
        }
        let outcome = self.journal.create(held.generation, record, turn).await;
        self.claims.notify_one();
        outcome.map_err(|error| self.not_started(&error))
    }

    fn started(
        &self,
        outcome: CreateOutcome,
        run_id: String,
        ended: Option<RunState>,
    ) -> Result<Started, StartRunError> {
        match outcome {
            CreateOutcome::Created => {
                count(&self.metrics.runs_started);
                Ok(Started {
                    run_id,
                    replayed: false,
                    ended,
                })
            }
            CreateOutcome::Replayed { run_id } => {
                count(&self.metrics.runs_replayed);
                Ok(Started {
                    run_id,
                    replayed: true,
                    ended: None,
                })
            }
            CreateOutcome::KeyReused => Err(StartRunError::KeyReused),
            CreateOutcome::OutOfCredits => Err(StartRunError::OutOfCredits),
            CreateOutcome::NotDue => Err(StartRunError::NotDue),
            CreateOutcome::StillRunning => Err(StartRunError::StillRunning),
            CreateOutcome::ParentEnded => Err(StartRunError::ParentEnded),
        }
    }

    fn not_started(&self, error: &WriteError) -> StartRunError {
        match error {
            WriteError::LeaseLost | WriteError::Unknown(_) => StartRunError::Unavailable,
            WriteError::Refused(_) => StartRunError::Internal,
        }
    }

    fn overloaded(&self) -> StartRunError {
        count(&self.metrics.starts_refused);
        StartRunError::Overloaded
    }
}

fn parent_run_id(context: &RunContext) -> Option<String> {
    let parent = context.record.lineage.parent.as_ref();
    parent.map(|parent| parent.run_id.clone())
}

/// How often a run whose start may have been committed is looked for.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

impl LiveRun {
    /// Makes the run durable and drives it on.
    async fn begin(
        self,
        record: Record,
        commands: Vec<Command>,
        turn: Turn,
        reply: oneshot::Sender<Result<CreateOutcome, StartRunError>>,
    ) {
        let journal = &self.shared.journal;
        let outcome = journal.create(self.held.generation, record, turn).await;
        let is_created = match &outcome {
            Ok(outcome) => *outcome == CreateOutcome::Created,
            Err(_) => false,
        };
        let is_unknown = matches!(outcome, Err(WriteError::Unknown(_)));
        // The caller may have gone; the run goes on all the same.
        let _gone = reply.send(outcome.map_err(|error| self.shared.not_started(&error)));
        if is_created || (is_unknown && self.was_created().await) {
            self.drive(Settled::On(commands)).await;
        }
    }

    /// Whether the start was committed although the database failed meanwhile. Asks until it answers.
    async fn was_created(&self) -> bool {
        while self.shared.lease.of(self.held.generation).is_some() {
            sleep(LOOK_AGAIN_AFTER).await;
            match self
                .shared
                .store
                .run(&self.context.organization_id, &self.context.run_id)
                .await
            {
                Ok(_) => return true,
                Err(StoreError::NotFound(_)) => return false,
                Err(_) => {}
            }
        }
        false
    }
}
