//! A run in memory: takes in what reaches it, makes what follows from that durable, and only then carries it out.
//!
//! Each live run is one task, so its inputs are in one order and a cancel beats whatever comes after it. What is ready
//! at the same time becomes one segment of the journal, and so does a chain of nodes that only compute. A run that has
//! only to wait leaves memory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::event::{NodeKey, RunStarted};
use engine::scope::Environment as _;
use engine::state::RunState;
use engine::step::{Command, Input, STEP_BUDGET};
use engine::timer::TimerKey;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::context::RunContext;
use super::execute::{Ended, Executions};
use super::lease::Held;
use super::limits::Counted;
use super::live::Seat;
use super::people::OpenQuestion;
use super::progress::Progress;
use super::request::{Answered, Done, Reply, Request};
use super::timers::Timers;
use super::trial::OnTrial;
use crate::clock;
use crate::store::{Actor, RunActivity, SignalDone};
use crate::turns::Turn;

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
    /// What waits for answers of custom functions.
    pub(super) held_back: VecDeque<HeldBack>,
    /// What nodes ask people, until that they are parked is committed.
    pub(super) questions: HashMap<NodeKey, OpenQuestion>,
    pub(super) seat: Seat,
    pub(super) _counted: Counted,
    /// Of a run that may be what its processes died of.
    pub(super) _on_trial: Option<OnTrial>,
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
    /// Written with it.
    pub(super) activity: Vec<RunActivity>,
    /// It starts the run again, which may be refused; nothing more belongs to it then.
    pub(super) restart: Option<Restart>,
}

impl Stretch {
    /// Whether nothing is to be done but what may begin before the stretch is durable, with what is `under_way`.
    fn asks_only_to_compute(&self, under_way: bool) -> bool {
        let commands = &self.progress.commands;
        let only_computes =
            |command: &Command| matches!(command, Command::Execute(execute) if execute.only_computes);
        (under_way || !commands.is_empty())
            && commands.iter().all(only_computes)
            && self.answers.is_empty()
            && self.signals_done.is_empty()
            && self.restart.is_none()
            && self.progress.events.len() < STEP_BUDGET
    }
}

/// A run that had ended is to go on.
pub(super) struct Restart {
    /// Who asked for it.
    pub(super) reply: Option<Reply>,
    /// What they are told.
    pub(super) done: Done,
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
    Request(Request),
    Ended(Box<Ended>),
    HeldBack(Box<HeldBack>),
}

/// An input that could not be taken in before custom functions had answered.
pub(super) struct HeldBack {
    pub(super) input: Input,
    pub(super) asked: Option<Asked>,
}

/// Who asked for an input, and what follows for them once it is taken in.
pub(super) struct Asked {
    pub(super) actor: Actor,
    /// What the activity feed calls it; nothing when it does not tell of it.
    pub(super) action: Option<&'static str>,
    /// It lets a run that had ended go on.
    pub(super) restarts: bool,
    /// Nobody waits for the answer to a signal.
    pub(super) reply: Option<Reply>,
    /// The signal that brought it.
    pub(super) signal_id: Option<String>,
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
        let goes_on = goes_on || !self.held_back.is_empty();
        let first = if goes_on && !self.shared.is_draining() {
            self.next_due().await?
        } else {
            self.next_arrival().await?
        };
        let mut stretch = Stretch::default();
        let mut taken = self.take_in_all(&mut stretch, first).await;
        if taken.is_ok() {
            taken = self.compute_ahead(&mut stretch).await;
        }
        Some(taken.map(|()| stretch))
    }

    /// The turn of the run's next steps among all that are slow.
    pub(super) async fn turn(&self) -> Option<Turn> {
        let slow_steps = &self.shared.limits.slow_steps;
        let organization_id = &self.context.organization_id;
        self.context.pace.turn(slow_steps, organization_id).await
    }

    /// Takes in something that reached the run, and what else has by now.
    async fn take_in_all(&mut self, stretch: &mut Stretch, first: Arrival) -> Result<(), Panicked> {
        let _turn = self.turn().await;
        let mut arrival = Some(first);
        while let Some(next) = arrival {
            self.take_in(stretch, next)?;
            // Until functions have answered, nothing else is taken in: the run's clock stands still.
            arrival = match stretch.restart.is_some() || self.context.lacks_answers() {
                true => None,
                false => self.ready_arrival(),
            };
        }
        Ok(())
    }

    /// Lets executions that only compute begin before the stretch is durable, and adds what comes of them to it: a chain
    /// of them is one write, and their run keeps its turn among all that are executed meanwhile. Nobody can tell, except
    /// that after a crash they are computed again; so it goes on for a short time only.
    async fn compute_ahead(&mut self, stretch: &mut Stretch) -> Result<(), Panicked> {
        let until = Instant::now() + self.shared.config.compute_ahead;
        while self.state.finished().is_none()
            && stretch.asks_only_to_compute(self.executions.compute())
            && !self.shared.is_draining()
        {
            for command in std::mem::take(&mut stretch.progress.commands) {
                if let Command::Execute(execute) = command {
                    self.executions.begin(&self.shared, &self.context, execute);
                }
            }
            self.executions.yield_turn();
            let arrival = timeout_at(until, self.next_arrival()).await;
            let Ok(Some(arrival)) = arrival else { break };
            self.take_in_all(stretch, arrival).await?;
        }
        self.executions.yield_turn();
        Ok(())
    }

    /// What is to be done at once; a request may come before the answers of custom functions that it needs.
    async fn next_due(&mut self) -> Option<Arrival> {
        let generation = self.held.generation;
        // A run that is about to begin again has no state that a request could be about.
        let restarts = |held_back: &HeldBack| held_back.asked.as_ref().is_some_and(|asked| asked.restarts);
        let is_restarting = self.held_back.iter().any(restarts);
        if self.context.lacks_answers() {
            let over_at_ms = self.timers.due_at(&TimerKey::Run);
            tokio::select! {
                biased;
                () = self.shared.lease.ended(generation) => return None,
                request = self.seat.mailbox.recv(), if !is_restarting => return request.map(Arrival::Request),
                () = self.shared.drained() => return None,
                () = reached(over_at_ms), if !is_restarting => {
                    self.timers.cancel(&TimerKey::Run);
                    self.context.give_up_calls();
                    return Some(Arrival::Input(Input::TimerFired(TimerKey::Run)));
                }
                () = self.context.bring_answers() => {}
            }
        } else {
            // Other runs come first now and then.
            tokio::task::yield_now().await;
        }
        Some(match self.held_back.pop_front() {
            Some(held_back) => Arrival::HeldBack(Box::new(held_back)),
            None => Arrival::Input(Input::Continue),
        })
    }

    async fn next_arrival(&mut self) -> Option<Arrival> {
        let generation = self.held.generation;
        let idle = self.executions.is_empty();
        tokio::select! {
            biased;
            () = self.shared.lease.ended(generation) => None,
            request = self.seat.mailbox.recv() => request.map(Arrival::Request),
            ended = self.executions.next() => Some(Arrival::Ended(Box::new(ended))),
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
            return Some(Arrival::Ended(Box::new(executed)));
        }
        let key = self.timers.take_due(clock::now_ms())?;
        Some(Arrival::Input(Input::TimerFired(key)))
    }
}

/// Returns at an instant in epoch milliseconds; never when there is none.
async fn reached(at_ms: Option<i64>) {
    let Some(at_ms) = at_ms else {
        return std::future::pending().await;
    };
    loop {
        match u64::try_from(at_ms.saturating_sub(clock::now_ms())) {
            Ok(left_ms) if left_ms > 0 => sleep(Duration::from_millis(left_ms)).await,
            _ => return,
        }
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
