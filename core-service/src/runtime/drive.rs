//! A run in memory: takes in what reaches it, makes what follows from that durable, and only then carries it out.
//!
//! Each live run is one task, so its inputs are in one order and a cancel beats whatever comes after it. What is ready
//! at the same time becomes one segment of the journal. A run that has only to wait leaves memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use engine::event::{NodeKey, RunStarted};
use engine::state::RunState;
use engine::step::{Command, Input};
use engine::timer::TimerKey;
use tokio::time::sleep;

use super::Shared;
use super::context::RunContext;
use super::execute::{Ended, Executions};
use super::lease::Held;
use super::limits::Counted;
use super::live::Seat;
use super::progress::Progress;
use super::request::{Answered, Reply, Request};
use super::timers::Timers;
use crate::clock;
use crate::form::Question;
use crate::nodes::Executed;
use crate::store::SignalDone;

pub(super) struct LiveRun {
    pub(super) shared: Arc<Shared>,
    pub(super) held: Held,
    pub(super) context: Arc<RunContext>,
    pub(super) state: RunState,
    pub(super) timers: Timers,
    pub(super) journal: Place,
    /// Signals taken in; the database shows them until that is committed.
    pub(super) signals_seen: HashSet<String>,
    /// The engine or the database gave up on the run once: the next time it is failed without them.
    pub(super) broken: bool,
    pub(super) executions: Executions,
    pub(super) seat: Seat,
    pub(super) _counted: Counted,
}

/// How far the database knows the run.
pub(super) struct Place {
    pub(super) next_seq: i64,
    /// What earlier attempts cost.
    pub(super) credits_before: i64,
    /// What this attempt cost, as recorded.
    pub(super) credits_recorded: i64,
    /// A timer row is there.
    pub(super) has_alarm: bool,
    /// How the attempt began; known of runs that were read from the journal.
    pub(super) started: Option<RunStarted>,
}

/// What happened since the last commit.
#[derive(Default)]
pub(super) struct Stretch {
    pub(super) progress: Progress,
    /// Sent once it is durable.
    pub(super) answers: Vec<(Reply, Answered)>,
    pub(super) signals_done: Vec<SignalDone>,
    /// What nodes asked people when they were parked.
    pub(super) asked: HashMap<NodeKey, Box<Question>>,
}

/// What became of a stretch.
pub(super) enum Settled {
    /// It is durable: carry these out and go on.
    On(Vec<Command>),
    /// The run is no longer this task's.
    Left,
    /// The state in memory cannot be used any more.
    Broken(&'static str),
}

/// Something that reached the run.
pub(super) enum Arrival {
    Input(Input),
    /// A node is parked, and people are asked.
    Asked(NodeKey, Box<Question>, Input),
    Request(Request),
}

/// The engine panicked.
pub(super) struct Panicked;

/// Why a run is failed whose step panicked.
pub(super) const ENGINE_PANICKED: &str = "the engine failed in this run";

impl LiveRun {
    /// Drives the run until it ends, sleeps, or is another's.
    pub(super) async fn drive(mut self, mut settled: Settled) {
        loop {
            let stretch = match settled {
                Settled::On(commands) => {
                    let goes_on = self.carry_out(commands);
                    match self.next_stretch(goes_on).await {
                        Some(stretch) => stretch,
                        None => return,
                    }
                }
                Settled::Left => return,
                Settled::Broken(why) => match self.fail_from_journal(why).await {
                    Some(stretch) => Ok(stretch),
                    None => return,
                },
            };
            settled = match stretch {
                Ok(stretch) => self.settle(stretch).await,
                Err(Panicked) => Settled::Broken(ENGINE_PANICKED),
            };
        }
    }

    /// Begins what was asked for. Gives whether the engine has more to do at once.
    fn carry_out(&mut self, commands: Vec<Command>) -> bool {
        let mut goes_on = false;
        for command in commands {
            match command {
                // What is durable is begun by whoever drives the run next.
                Command::Execute(_) if self.shared.is_draining() => {}
                Command::Execute(execute) => self.executions.begin(&self.shared, &self.context, execute),
                Command::AbortExecution(key) => self.executions.abort_one(&key),
                Command::AbortExecutions => self.executions.abort(),
                Command::Continue => goes_on = true,
                // Timers are set when they are decided; the end is seen in the state.
                Command::SetTimer { .. }
                | Command::CancelTimer(_)
                | Command::CancelTimers
                | Command::Finish { .. } => {}
            }
        }
        goes_on
    }

    /// Waits for something to happen and takes in all that has. Nothing when the run is to be left.
    async fn next_stretch(&mut self, goes_on: bool) -> Option<Result<Stretch, Panicked>> {
        let first = if goes_on && !self.shared.is_draining() {
            // Other runs come first now and then.
            tokio::task::yield_now().await;
            Arrival::Input(Input::Continue)
        } else {
            self.next_arrival().await?
        };
        let (shared, pace) = (Arc::clone(&self.shared), self.context.pace.clone());
        let _turn = pace.turn(&shared.slow_steps).await;
        let mut stretch = Stretch::default();
        let mut arrival = Some(first);
        while let Some(next) = arrival {
            if self.take_in(&mut stretch, next).is_err() {
                return Some(Err(Panicked));
            }
            arrival = self.ready_arrival();
        }
        Some(Ok(stretch))
    }

    async fn next_arrival(&mut self) -> Option<Arrival> {
        let generation = self.held.generation;
        let idle = self.executions.is_empty();
        tokio::select! {
            biased;
            () = self.shared.lease.ended(generation) => None,
            request = self.seat.mailbox.recv() => request.map(Arrival::Request),
            ended = self.executions.next() => Some(ended.into()),
            key = due(&mut self.timers) => Some(Arrival::Input(Input::TimerFired(key))),
            // Nothing is running: whoever comes next takes the run up where it is.
            () = self.shared.drained(), if idle => None,
        }
    }

    fn ready_arrival(&mut self) -> Option<Arrival> {
        if let Ok(request) = self.seat.mailbox.try_recv() {
            return Some(Arrival::Request(request));
        }
        if let Some(executed) = self.executions.try_next() {
            return Some(executed.into());
        }
        let key = self.timers.take_due(clock::now_ms())?;
        Some(Arrival::Input(Input::TimerFired(key)))
    }
}

impl From<Ended> for Arrival {
    fn from(ended: Ended) -> Self {
        let Ended { key, attempt, result } = ended;
        Self::Input(match result {
            Ok(Executed::Parked { due_at_ms }) => Input::NodeParked {
                key,
                attempt,
                due_at_ms,
            },
            Ok(Executed::Asked { question, due_at_ms }) => {
                let parked = Input::NodeParked {
                    key: key.clone(),
                    attempt,
                    due_at_ms,
                };
                return Self::Asked(key, question, parked);
            }
            Ok(Executed::Output(output)) => Input::NodeFinished {
                key,
                attempt,
                result: Ok(output),
            },
            Err(error) => Input::NodeFinished {
                key,
                attempt,
                result: Err(error),
            },
        })
    }
}

/// The next timer, when it is due.
async fn due(timers: &mut Timers) -> TimerKey {
    loop {
        let now_ms = clock::now_ms();
        if let Some(key) = timers.take_due(now_ms) {
            return key;
        }
        match timers.next_due() {
            Some(due_at_ms) => sleep(Duration::from_millis(due_at_ms.abs_diff(now_ms))).await,
            None => std::future::pending().await,
        }
    }
}
