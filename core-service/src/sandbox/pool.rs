//! Hands workers out. A worker belongs to the first organization it serves, until it ends.
//!
//! Callers take turns by organization, as executions do: whatever one organization has waiting, it takes no more than
//! its share of the workers. A few workers without an organization are
//! kept ready, so that nobody waits for a process to start.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use engine::event::LogLine;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use super::frame;
use super::message::{Answer, Call, End, Failure, MAX_REQUEST, Outcome, Request};
use super::process::{Keeper, Worker};
use crate::turns::{Share, TooManyWait, Turns};

/// How much later than a worker this process notices that a call takes too long.
const GRACE: Duration = Duration::from_millis(50);
/// A worker that has been running calls for so long is replaced: its processor time is limited for life.
const LONG_ENOUGH: Duration = Duration::from_secs(300);
/// How often idle workers are looked through.
const LOOK_THROUGH: Duration = Duration::from_secs(10);

/// How many workers there are, and which program they are.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// This binary, which has the hidden subcommand.
    pub program: PathBuf,
    /// Calls that run at once (twice the cores, at least 8).
    pub workers: usize,
    /// Calls of one organization that run at once (a quarter of them, at least 2).
    pub workers_per_organization: usize,
    /// Workers kept ready for organizations that have none (2).
    pub spares: usize,
    /// How long a worker is kept that nobody uses (30 s).
    pub keep_idle: Duration,
}

impl SandboxConfig {
    /// The defaults on this machine.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            program,
            workers: 0,
            workers_per_organization: 0,
            spares: 2,
            keep_idle: Duration::from_secs(30),
        }
        .with_workers((2 * cores).max(8))
    }

    /// With so many calls at once, and the share of them that an organization gets.
    #[must_use]
    pub fn with_workers(self, workers: usize) -> Self {
        Self {
            workers,
            workers_per_organization: (workers / 4).max(2),
            ..self
        }
    }
}

/// A sandbox that cannot run anything.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No worker can be started.
    #[error("no process for user code can be started")]
    Start(#[from] io::Error),
    /// Too many calls wait.
    #[error(transparent)]
    Busy(#[from] TooManyWait),
}

/// Runs code of users. Cheap to clone; all clones are the same sandbox.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    config: SandboxConfig,
    keeper: Keeper,
    turns: Turns,
    resting: Mutex<Resting>,
}

/// Workers that run nothing.
#[derive(Default)]
struct Resting {
    /// The one that was used last is the last.
    bound: Vec<Bound>,
    spares: Vec<Worker>,
    /// Spares being started.
    awaited: usize,
}

/// A worker of an organization.
struct Bound {
    organization_id: Arc<str>,
    worker: Worker,
    since: Instant,
}

impl Sandbox {
    /// Starts the first workers and says what of their confinement this kernel does not have.
    ///
    /// # Errors
    /// When no worker can be started.
    pub async fn start(config: SandboxConfig) -> Result<Self, SandboxError> {
        let keeper = Keeper::new(config.program.clone())?;
        let (first, missing) = keeper.start().await?;
        for missing in missing {
            tracing::warn!(missing, "user code runs with less confinement than it should");
        }
        let resting = Resting {
            spares: vec![first],
            ..Resting::default()
        };
        let shared = Arc::new(Shared {
            // There are no more callers than executions, steps and trials under way.
            turns: Turns::new(
                config.workers,
                Share::of_each(config.workers_per_organization),
                usize::MAX,
            ),
            config,
            keeper,
            resting: Mutex::new(resting),
        });
        tokio::spawn(look_through(Arc::downgrade(&shared)));
        shared.top_up();
        Ok(Self { shared })
    }

    /// Runs a call for an organization. What the code writes to the console is heard as it comes, within bounds.
    /// Dropping the future kills what runs.
    ///
    /// # Errors
    /// When there is no worker to run it; what the code does wrong is part of the outcome.
    pub async fn call(
        &self,
        organization_id: &str,
        call: Call,
        mut hear: impl FnMut(LogLine) + Send,
    ) -> Result<Outcome, SandboxError> {
        let mut outcomes = self.run(organization_id, &[call], &mut hear).await?;
        Ok(outcomes
            .pop()
            .unwrap_or_else(|| Failure::error("the code did not run").into()))
    }

    /// Runs calls that do not depend on each other, one after the other. Gives an outcome for each, in order. Nobody
    /// hears what they write to the console. Dropping the future kills what runs.
    ///
    /// # Errors
    /// When there is no worker to run them.
    pub async fn call_all(
        &self,
        organization_id: &str,
        calls: &[Call],
    ) -> Result<Vec<Outcome>, SandboxError> {
        self.run(organization_id, calls, &mut |_line| {}).await
    }

    async fn run(
        &self,
        organization_id: &str,
        calls: &[Call],
        hear: Hear<'_>,
    ) -> Result<Vec<Outcome>, SandboxError> {
        let calls: Vec<Encoded> = calls.iter().map(Encoded::of).collect();
        let _turn = self.shared.turns.turn(organization_id).await?;
        let mut outcomes = Vec::with_capacity(calls.len());
        while outcomes.len() < calls.len() {
            let worker = self.shared.worker(organization_id).await?;
            if let Some(worker) = work(worker, &calls[outcomes.len()..], &mut outcomes, hear).await {
                self.shared.rest(organization_id, worker);
            }
        }
        Ok(outcomes)
    }
}

/// Hears the console output of calls.
type Hear<'a> = &'a mut (dyn FnMut(LogLine) + Send);

/// A call as it is sent.
struct Encoded {
    /// Nothing when it cannot be sent.
    json: Option<Box<RawValue>>,
    limit_ms: u64,
}

impl Encoded {
    fn of(call: &Call) -> Self {
        let json = to_raw_value(call)
            .ok()
            .filter(|json| json.get().len() <= MAX_REQUEST);
        Self {
            json,
            limit_ms: call.limit_ms,
        }
    }

    fn size(&self) -> usize {
        self.json.as_ref().map_or(0, |json| json.get().len())
    }
}

/// Lets a worker run calls, as many as fit into one request. Gives it back if it may go on with others.
async fn work(
    mut worker: Worker,
    calls: &[Encoded],
    outcomes: &mut Vec<Outcome>,
    hear: Hear<'_>,
) -> Option<Worker> {
    let mut room = MAX_REQUEST;
    let fitting = calls.iter().take_while(|call| {
        let fits = call.json.is_some() && call.size() <= room;
        room = room.saturating_sub(call.size());
        fits
    });
    let batch = &calls[..fitting.count()];
    let request = Request {
        calls: batch.iter().filter_map(|call| call.json.as_ref()).collect(),
    };
    let Some(frame) = frame::of(&request).ok().filter(|_| !batch.is_empty()) else {
        outcomes.push(too_much().into());
        return Some(worker);
    };
    let mut unsent = Some(frame);
    for call in batch {
        let began = Instant::now();
        let within = Duration::from_millis(call.limit_ms) + GRACE;
        let answered = timeout(within, async {
            if let Some(frame) = unsent.take() {
                worker.send(&frame).await?;
            }
            worker.answer(hear).await
        });
        let answered = answered.await;
        worker.busy += began.elapsed();
        match answered {
            Ok(Ok(answer)) => {
                let is_last = answer.is_last;
                outcomes.push(outcome(answer, worker.process_id()));
                if is_last || worker.busy > LONG_ENOUGH {
                    return None;
                }
            }
            Ok(Err(error)) => {
                outcomes.push(worker.cause_of_death(&error, call.limit_ms).await.into());
                return None;
            }
            Err(_elapsed) => {
                outcomes.push(Failure::timeout(call.limit_ms).into());
                return None;
            }
        }
    }
    Some(worker)
}

fn outcome(answer: Answer<Box<RawValue>>, process_id: Option<u32>) -> Outcome {
    let result = match answer.end {
        End::Failed(failure) => Err(failure),
        End::Returned(json) => serde_json::from_str(json.get())
            .map_err(|error| Failure::error(format!("the result cannot be used as JSON: {error}"))),
    };
    Outcome { result, process_id }
}

fn too_much() -> Failure {
    Failure::error(format!(
        "the code and what it sees are larger than {MAX_REQUEST} bytes; hand less to it"
    ))
}

impl Shared {
    /// A worker of the organization: one that rests, a spare, or a new one.
    async fn worker(self: &Arc<Self>, organization_id: &str) -> Result<Worker, SandboxError> {
        let (mut found, superfluous) = {
            let mut resting = self.resting();
            let own = resting
                .bound
                .iter()
                .rposition(|bound| &*bound.organization_id == organization_id);
            match own {
                Some(own) => (Some(resting.bound.remove(own).worker), None),
                None => {
                    let crowded = self.turns.taken() + resting.bound.len() > self.config.workers;
                    let superfluous = crowded.then(|| resting.bound.remove(0));
                    (resting.spares.pop(), superfluous)
                }
            }
        };
        drop(superfluous);
        self.top_up();
        // The machine may have killed it since.
        match found.take_if(Worker::is_alive) {
            Some(worker) => Ok(worker),
            None => Ok(self.keeper.start().await?.0),
        }
    }

    /// Keeps a worker for the organization's next call.
    fn rest(&self, organization_id: &str, worker: Worker) {
        let bound = Bound {
            organization_id: organization_id.into(),
            worker,
            since: Instant::now(),
        };
        self.resting().bound.push(bound);
    }

    /// Starts spares that are missing, in the background.
    fn top_up(self: &Arc<Self>) {
        let mut resting = self.resting();
        while resting.spares.len() + resting.awaited < self.config.spares {
            resting.awaited += 1;
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                let started = shared.keeper.start().await;
                let mut resting = shared.resting();
                resting.awaited -= 1;
                match started {
                    Ok((worker, _)) => resting.spares.push(worker),
                    Err(error) => tracing::warn!(%error, "a process for user code cannot be started"),
                }
            });
        }
    }

    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends workers that nobody has used for long.
async fn look_through(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(LOOK_THROUGH).await;
        let Some(shared) = shared.upgrade() else { return };
        let keep_idle = shared.config.keep_idle;
        let idle: Vec<Bound> = {
            let mut resting = shared.resting();
            let idle = |bound: &mut Bound| bound.since.elapsed() > keep_idle;
            resting.bound.extract_if(.., idle).collect()
        };
        drop(idle);
    }
}
