//! Taking up a run that was claimed: its state is rebuilt from the journal, and it goes on from there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::state::RunState;
use engine::step::Input;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::Shared;
use super::calls::Calls;
use super::claim::SIGNALS;
use super::context::RunContext;
use super::drive::{Arrival, ENGINE_PANICKED, LiveRun, Panicked, Place, Settled, Stretch};
use super::error::PlanError;
use super::execute::Executions;
use super::lease::Held;
use super::limits::Counted;
use super::live::Seat;
use super::plans::GraphRef;
use super::progress::credits;
use super::rebuild::{RebuildError, fold, rebuild};
use super::record::StartRecord;
use super::request::Request;
use super::settle::{RowToFail, engine_failure};
use super::surroundings::SurroundingsError;
use super::timers::Timers;
use super::trial::{OnTrial, is_beyond_reading, is_deadly};
use crate::store::{ClaimCause, Run, Segment, Signal, StoreError};
use crate::turns::on_behalf_of;

const DEADLY: &str = "the server stopped repeatedly while it executed this run";
const PAUSE: Duration = Duration::from_millis(200);

/// Why a run is taken up.
pub(super) enum Reason {
    /// It was claimed.
    Claimed(Claimed),
    /// Somebody asks something of it.
    Asked(Box<Request>),
}

/// How a run was claimed.
pub(super) struct Claimed {
    pub(super) cause: ClaimCause,
    pub(super) admission: Admission,
    pub(super) counted: Counted,
    /// Its journal, if it was read already.
    pub(super) journal: Option<Vec<Segment>>,
}

/// What lets a claimed run in.
pub(super) enum Admission {
    /// It takes nobody's place.
    Free,
    /// One of the places for being taken up, held until the run is written again.
    Place(OwnedSemaphorePermit),
    /// The only place for runs that processes may have died of.
    Trial(OnTrial),
}

/// Why a run cannot be taken up.
enum Obstacle {
    /// The database cannot be reached.
    Passing,
    /// It never can: its journal, its graph or its row is damaged.
    Lasting(String),
}

impl Admission {
    /// The same for one that waits first.
    pub(super) fn without_place(self) -> Self {
        match self {
            Self::Place(_) => Self::Free,
            other => other,
        }
    }
}

impl LiveRun {
    /// Drives a claimed run on, or carries out a request to it.
    pub(super) async fn take_up(shared: Arc<Shared>, held: Held, seat: Seat, run: Run, reason: Reason) {
        let (claimed, request) = match reason {
            Reason::Claimed(claimed) => (Some(claimed), None),
            Reason::Asked(request) => (None, Some(*request)),
        };
        let (cause, admission, counted, journal) = match claimed {
            Some(Claimed {
                cause,
                admission,
                counted,
                journal,
            }) => (Some(cause), admission, counted, journal),
            None => {
                let counted = shared.limits.resume_live(&run.organization_id.as_str().into());
                (None, Admission::Free, counted, None)
            }
        };
        let (mut place, on_trial) = match admission {
            Admission::Free => (None, None),
            Admission::Place(place) => (Some(place), None),
            Admission::Trial(on_trial) => (None, Some(on_trial)),
        };
        if cause == Some(ClaimCause::TakenOver) && is_beyond_reading(&run, &shared.config) {
            return give_up(&shared, &held, &run, DEADLY).await;
        }
        let loaded = loop {
            let organization_id = run.organization_id.as_str().into();
            let loading = load(&shared, &run, journal.as_deref());
            match on_behalf_of(organization_id, loading).await {
                Ok(loaded) => break loaded,
                Err(Obstacle::Passing) => {
                    // Others may have no obstacle.
                    place = None;
                    tokio::select! {
                        () = sleep(PAUSE) => {}
                        () = shared.lease.ended(held.generation) => return,
                    }
                }
                Err(Obstacle::Lasting(why)) => return give_up(&shared, &held, &run, &why).await,
            }
        };
        let Loaded {
            context,
            state,
            place: journal,
            signals,
        } = loaded;
        let deadly = cause == Some(ClaimCause::TakenOver) && is_deadly(&run, &shared.config, &state);
        let mut live = Self {
            shared,
            held,
            context: Arc::new(context),
            state,
            timers: Timers::default(),
            journal,
            signals_seen: HashSet::new(),
            broken: false,
            executions: Executions::default(),
            held_back: VecDeque::new(),
            questions: HashMap::new(),
            seat,
            _counted: counted,
            _on_trial: on_trial,
        };
        let input = if deadly {
            Input::Fail(engine_failure(DEADLY))
        } else {
            Input::Resume
        };
        let mut stretch = Stretch::default();
        let settled = match live.take_in_first(&mut stretch, input, signals, request).await {
            Ok(()) => live.settle(stretch).await,
            Err(Panicked) => Settled::Broken(ENGINE_PANICKED),
        };
        drop(place);
        live.drive(settled).await;
    }

    /// What a run that is taken up begins with. Its signals belong to that: one that has only to wait is left again
    /// before anything else can reach it, and would be claimed for the same signals for ever.
    async fn take_in_first(
        &mut self,
        stretch: &mut Stretch,
        input: Input,
        signals: Vec<Signal>,
        request: Option<Request>,
    ) -> Result<(), Panicked> {
        let _turn = self.turn().await;
        self.take_in(stretch, Arrival::Input(input))?;
        for signal in signals {
            match Request::from_signal(signal) {
                Ok(request) => self.take_in(stretch, Arrival::Request(request))?,
                Err(refused) => stretch.signals_done.push(refused),
            }
        }
        match request {
            Some(request) => self.take_in(stretch, Arrival::Request(request)),
            None => Ok(()),
        }
    }

    /// The last durable state again.
    pub(super) async fn reload(&mut self) -> Result<(), RebuildError> {
        let context = &self.context;
        let plan = Arc::clone(&context.plan);
        let attempt = i64::from(context.attempt);
        let store = &self.shared.store;
        let rebuilt = loop {
            match rebuild(
                store,
                &context.organization_id,
                &context.run_id,
                attempt,
                Arc::clone(&plan),
            )
            .await
            {
                Err(RebuildError::Store(error)) if error.is_temporary() => sleep(PAUSE).await,
                other => break other?,
            }
        };
        self.state = rebuilt.state;
        self.journal.next_seq = rebuilt.next_seq;
        self.journal.credits_recorded = credits(&self.state);
        Ok(())
    }
}

async fn give_up(shared: &Shared, held: &Held, run: &Run, why: &str) {
    tracing::error!(run_id = run.id, why, "a run cannot be taken up");
    if run.finished_at.is_some() {
        return;
    }
    let record: Option<StartRecord> = serde_json::from_slice(&run.start_input).ok();
    let row = RowToFail {
        run_id: &run.id,
        organization_id: &run.organization_id,
        workflow_id: run.workflow_id.as_deref().unwrap_or_default(),
        lineage: record.as_ref().map(|record| &record.lineage),
        attempt: run.attempt_number,
        credits_used: run.credits_used,
        metered: run.metered,
    };
    row.fail(shared, held.generation, why).await;
}

/// What the database knows of a run that is taken up.
struct Loaded {
    context: RunContext,
    state: RunState,
    place: Place,
    /// Those that nobody has acted upon.
    signals: Vec<Signal>,
}

async fn load(shared: &Shared, run: &Run, journal: Option<&[Segment]>) -> Result<Loaded, Obstacle> {
    let record: StartRecord = serde_json::from_slice(&run.start_input)
        .map_err(|error| Obstacle::Lasting(format!("the run's start cannot be read: {error}")))?;
    let workflow_id = run.workflow_id.as_deref().unwrap_or_default();
    let graph = GraphRef::Stored(run.graph_hash.clone());
    let compiled = shared.plans.get(&run.organization_id, &graph).await?;
    let surroundings = shared
        .surroundings
        .load(
            &run.organization_id,
            workflow_id,
            &compiled.functions,
            compiled.reads_variables,
        )
        .await?;
    let plan = Arc::clone(&compiled.plan);
    let (store, organization_id) = (&shared.store, &run.organization_id);
    let rebuilt = match journal {
        Some(journal) => fold(store, organization_id, journal, plan).await?,
        None => rebuild(store, organization_id, &run.id, run.attempt_number, plan).await?,
    };
    let place = Place {
        next_seq: rebuilt.next_seq,
        credits_before: run.credits_used - credits(&rebuilt.state),
        credits_recorded: credits(&rebuilt.state),
        // Perhaps it was never there; clearing it again does no harm.
        has_alarm: true,
        started: Some(rebuilt.started),
    };
    let context = RunContext {
        run_id: run.id.as_str().into(),
        organization_id: run.organization_id.as_str().into(),
        workflow_id: workflow_id.into(),
        created_at: run.created_at,
        attempt: rebuilt.state.attempt(),
        metered: run.metered,
        record,
        plan: compiled.plan,
        apps: compiled.apps,
        pace: compiled.pace,
        calls_workflows: compiled.calls_workflows,
        surroundings,
        calls: (!compiled.functions.is_empty()).then(Calls::default),
        roots: OnceLock::new(),
    };
    Ok(Loaded {
        context,
        state: rebuilt.state,
        place,
        signals: match run.pending_signals {
            0 => Vec::new(),
            _ => store.pending_signals_of(&run.id, SIGNALS).await?,
        },
    })
}

impl From<StoreError> for Obstacle {
    fn from(error: StoreError) -> Self {
        if error.is_temporary() {
            Self::Passing
        } else {
            Self::Lasting(error.to_string())
        }
    }
}

impl From<SurroundingsError> for Obstacle {
    fn from(error: SurroundingsError) -> Self {
        if error.is_temporary() {
            Self::Passing
        } else {
            Self::Lasting(error.to_string())
        }
    }
}

impl From<PlanError> for Obstacle {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Store(error) if error.is_temporary() => Self::Passing,
            other => Self::Lasting(other.to_string()),
        }
    }
}

impl From<RebuildError> for Obstacle {
    fn from(error: RebuildError) -> Self {
        match error {
            RebuildError::Store(error) => error.into(),
            RebuildError::Damaged(what) => Self::Lasting(format!("the run's journal is damaged: {what}")),
        }
    }
}
