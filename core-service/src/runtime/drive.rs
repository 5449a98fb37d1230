//! A run in memory: takes in what reaches it, makes what follows from that durable, and only then carries it out.
//!
//! Each live run is one task, so its inputs are in one order and a cancel beats whatever comes after it. What is ready
//! at the same time becomes one segment of the journal. A run that has only to wait leaves memory.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use engine::event::{Failure, RunStarted};
use engine::state::{NodeStatus, RunState, RunStatus};
use engine::step::{Command, Input, StepError};
use engine::timer::TimerKey;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Shared;
use super::context::RunContext;
use super::error::RequestError;
use super::execute::{ENGINE_ERROR, Ended, Executions};
use super::journal::{Record, Refusal, Write, WriteError};
use super::lease::Held;
use super::limits::Counted;
use super::live::Seat;
use super::progress::{Next, Progress, StepFailure, credits, summary};
use super::request::{Answer, Ask, Request};
use super::timers::{ALARM, Timers};
use crate::clock;
use crate::nodes::Executed;
use crate::store::{self, RunChange, RunSummary};

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
    progress: Progress,
    answers: Vec<(
        oneshot::Sender<Result<(), RequestError>>,
        Result<(), RequestError>,
    )>,
    signals_done: Vec<String>,
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
}

/// The engine panicked.
pub(super) struct Panicked;

const ENGINE_PANICKED: &str = "the engine failed in this run";
const NOT_RECORDED: &str = "what happened in this run could not be recorded";
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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
        loop {
            let idle = self.executions.is_empty();
            tokio::select! {
                biased;
                () = self.shared.lease.ended(generation) => return None,
                request = self.seat.mailbox.recv() => return request.map(Arrival::Request),
                executed = self.executions.next() => return Some(executed.into()),
                key = due(&mut self.timers) => return Some(Arrival::Input(Input::TimerFired(key))),
                // Nothing is running: whoever comes next takes the run up where it is.
                () = self.shared.drained(), if idle => return None,
            }
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

    pub(super) fn take_in(&mut self, stretch: &mut Stretch, arrival: Arrival) -> Result<(), Panicked> {
        match arrival {
            Arrival::Input(input) => match self.step(stretch, input) {
                Err(StepFailure::Panicked) => Err(Panicked),
                // Only requests can be refused.
                Ok(()) | Err(StepFailure::Refused(_)) => Ok(()),
            },
            Arrival::Request(request) => self.take_in_request(stretch, request),
        }
    }

    fn take_in_request(&mut self, stretch: &mut Stretch, request: Request) -> Result<(), Panicked> {
        if let Some(signal_id) = request.signal_id {
            if !self.signals_seen.insert(signal_id.clone()) {
                return Ok(());
            }
            stretch.signals_done.push(signal_id);
        }
        let stepped = match request.ask {
            Ask::Cancel if self.state.finished().is_some() => Ok(Err(RequestError::Terminal)),
            Ask::Cancel => self.step(stretch, Input::Cancel).map(Ok),
            Ask::Answer(answer) => self.take_answer(stretch, answer),
            Ask::RetryNode(node) => self.step(stretch, Input::RetryNode(node)).map(Ok),
            Ask::Rerun => self.begin_again(stretch),
        };
        let answer = match stepped {
            Ok(answer) => answer,
            Err(StepFailure::Panicked) => return Err(Panicked),
            Err(StepFailure::Refused(refused)) => Err(match refused {
                StepError::NotFinished => RequestError::NotTerminal,
                StepError::NotFailed(node) => RequestError::NotFailed(node),
                StepError::Start(_) => RequestError::Internal,
            }),
        };
        stretch.answers.extend(request.reply.map(|reply| (reply, answer)));
        Ok(())
    }

    /// Completes a node that waits for an answer. The first answer wins.
    fn take_answer(
        &mut self,
        stretch: &mut Stretch,
        answer: Answer,
    ) -> Result<Result<(), RequestError>, StepFailure> {
        let Answer { key, output } = answer;
        let node = key.node;
        let known = self
            .state
            .nodes()
            .find(|known| known.node.id == node && *known.iteration == key.iteration);
        let Some(known) = known else {
            return Ok(Err(RequestError::NotWaiting(node)));
        };
        let (attempt, module) = (known.attempt, known.node);
        // A wait of the engine's own is for its time, not for an answer.
        if self
            .shared
            .registry
            .executor(&module.app_id, &module.module_slug)
            .is_none()
        {
            return Ok(Err(RequestError::NotWaiting(node)));
        }
        let is_answered = match known.status {
            NodeStatus::Waiting if self.state.finished().is_none() => false,
            NodeStatus::Waiting | NodeStatus::Completed | NodeStatus::Failed | NodeStatus::Cancelled => true,
            _ => return Ok(Err(RequestError::NotWaiting(node))),
        };
        if is_answered {
            return Ok(Err(RequestError::Answered(node)));
        }
        self.step(
            stretch,
            Input::NodeFinished {
                key,
                attempt,
                result: Ok(output),
            },
        )
        .map(Ok)
    }

    /// Starts the next attempt of a run that has ended.
    fn begin_again(&mut self, stretch: &mut Stretch) -> Result<Result<(), RequestError>, StepFailure> {
        // An end that is not durable yet is none.
        if self.state.finished().is_none() || !stretch.progress.events.is_empty() {
            return Ok(Err(RequestError::NotTerminal));
        }
        let Some(started) = &self.journal.started else {
            return Ok(Err(RequestError::Internal));
        };
        let attempt = started.attempt + 1;
        let start = engine::start::Start {
            attempt,
            from: self.context.record.from.clone().into_start(),
            input: Arc::clone(&started.input),
            seeds: started.seeds.clone(),
            timeout_ms: started.timeout_ms,
        };
        self.context = Arc::new(self.context.at_attempt(attempt));
        self.state = RunState::new(Arc::clone(&self.context.plan));
        self.journal.next_seq = 0;
        self.journal.credits_before += self.journal.credits_recorded;
        self.journal.credits_recorded = 0;
        self.step(stretch, Input::Start(start)).map(Ok)
    }

    fn step(&mut self, stretch: &mut Stretch, input: Input) -> Result<(), StepFailure> {
        stretch
            .progress
            .step(&mut self.state, input, &self.context, &mut self.timers)
    }

    /// Makes a stretch durable, then answers those who asked for it.
    pub(super) async fn settle(&mut self, stretch: Stretch) -> Settled {
        let Stretch {
            progress,
            answers,
            signals_done,
        } = stretch;
        let next = progress.next(&self.state, &self.timers, self.shared.config.keep_waiting);
        if progress.events.is_empty() && signals_done.is_empty() && next == Next::Drive {
            answer(answers);
            return Settled::On(progress.commands);
        }
        let record = self.record(&progress, next, signals_done);
        match self.commit(record).await {
            Committed::Yes => {}
            Committed::LeaseLost => return Settled::Left,
            Committed::Refused => return Settled::Broken(NOT_RECORDED),
        }
        self.journal.next_seq += i64::from(!progress.events.is_empty());
        self.journal.credits_recorded = credits(&self.state);
        self.journal.has_alarm = matches!(next, Next::Sleep(Some(_)));
        answer(answers);
        if !progress.events.is_empty() {
            self.shared.metrics.finished(self.state.status());
        }
        match next {
            Next::Drive => Settled::On(progress.commands),
            Next::Over => Settled::Left,
            Next::Sleep(alarm) => {
                self.shared.alarm_set(alarm);
                Settled::Left
            }
        }
    }

    fn record(&self, progress: &Progress, next: Next, signals_done: Vec<String>) -> Record {
        let (segments, payloads) = progress.segment(&self.context, self.journal.next_seq);
        let set_timers = next.alarm();
        let clears_alarm = self.journal.has_alarm && set_timers.is_empty();
        let change = RunChange {
            run_id: self.context.run_id.to_string(),
            segments,
            summary: Some(summary(&self.state, self.journal.credits_before, next)),
            metered: self.context.metered,
            credits_spent: credits(&self.state) - self.journal.credits_recorded,
            set_timers,
            clear_timers: clears_alarm.then(|| ALARM.to_owned()).into_iter().collect(),
            signals_done,
        };
        Record {
            write: Write::Change(Box::new(change)),
            payloads,
        }
    }

    /// Commits a record, however long the database cannot be reached.
    async fn commit(&self, mut record: Record) -> Committed {
        let mut pause = FIRST_PAUSE;
        let mut may_be_there = false;
        loop {
            match self.shared.journal.change(self.held.generation, record).await {
                Ok(_) => return Committed::Yes,
                Err(WriteError::LeaseLost | WriteError::Full) => return Committed::LeaseLost,
                // A segment has one writer, so the one that is there is this one.
                Err(WriteError::Refused(Refusal::Duplicate)) if may_be_there => return Committed::Yes,
                Err(WriteError::Refused(_)) => return Committed::Refused,
                Err(WriteError::Unknown(again)) => {
                    may_be_there = true;
                    record = again;
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Fails the run from its last durable state; when even that is impossible, in its row alone.
    async fn fail_from_journal(&mut self, why: &'static str) -> Option<Stretch> {
        tracing::error!(run_id = &*self.context.run_id, why, "a run is failed");
        self.executions.abort();
        self.timers.clear();
        let first_time = !std::mem::replace(&mut self.broken, true);
        if first_time && self.reload().await.is_ok() {
            let mut stretch = Stretch::default();
            let failed = self.take_in(&mut stretch, Arrival::Input(Input::Fail(engine_failure(why))));
            if failed.is_ok() {
                return Some(stretch);
            }
        }
        let run = RowToFail {
            run_id: &self.context.run_id,
            attempt: i64::from(self.context.attempt),
            credits_used: self.journal.credits_before + self.journal.credits_recorded,
            metered: self.context.metered,
        };
        run.fail(&self.shared, self.held.generation, why).await;
        None
    }
}

enum Committed {
    Yes,
    LeaseLost,
    Refused,
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

fn answer(
    answers: Vec<(
        oneshot::Sender<Result<(), RequestError>>,
        Result<(), RequestError>,
    )>,
) {
    for (reply, answer) in answers {
        // The caller may have gone.
        let _gone = reply.send(answer);
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

/// A failure that is no fault of the workflow.
pub(super) fn engine_failure(why: &str) -> Failure {
    Failure {
        code: ENGINE_ERROR.to_owned(),
        message: why.to_owned(),
    }
}

/// Whether a run that was taken over is to be failed because it seems to be what its processes died of.
pub(super) fn is_deadly(crashes: i64, limit: i64, state: &RunState) -> bool {
    crashes >= limit && state.status() == RunStatus::Running
}

/// A run that can only be failed in its row: its journal cannot be read or written.
pub(super) struct RowToFail<'a> {
    pub(super) run_id: &'a str,
    pub(super) attempt: i64,
    pub(super) credits_used: i64,
    pub(super) metered: bool,
}

impl RowToFail<'_> {
    pub(super) async fn fail(&self, shared: &Shared, generation: u64, why: &str) {
        let mut pause = FIRST_PAUSE;
        loop {
            let summary = RunSummary {
                status: store::RunStatus::Failed,
                attempt_number: self.attempt,
                finished_at: Some(clock::now_ms()),
                error: Some(engine_failure(why).to_string()),
                credits_used: self.credits_used,
                driver: store::Driver::Nobody,
            };
            let change = RunChange {
                run_id: self.run_id.to_owned(),
                summary: Some(summary),
                metered: self.metered,
                clear_timers: vec![ALARM.to_owned()],
                ..RunChange::default()
            };
            let record = Record {
                write: Write::Change(Box::new(change)),
                payloads: Vec::new(),
            };
            match shared.journal.change(generation, record).await {
                Err(WriteError::Unknown(_)) => sleep(pause).await,
                Ok(_) => return shared.metrics.finished(RunStatus::Failed),
                Err(_) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
