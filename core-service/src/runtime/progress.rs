//! What steps of a run decided and what its rows become by that, before any of it is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use engine::event::Event;
use engine::journal;
use engine::state::{RunState, RunStatus};
use engine::step::{Command, Input, Step, StepError};

use super::calls::Calls;
use super::context::RunContext;
use super::timers::{ALARM, Timers};
use crate::clock;
use crate::store::{self, Driver, Payload, RunSummary, Segment, Timer};

/// Events to be made durable, then commands to be carried out.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) events: Vec<Event>,
    pub(super) commands: Vec<Command>,
}

/// A step that changed nothing that may be used.
pub(super) enum StepFailure {
    /// The run refuses the input; its state is as it was.
    Refused(StepError),
    /// Custom functions have to answer before this input can be taken in; the state is as it was.
    Unanswered(Box<Input>),
    /// The engine panicked; the state must be dropped.
    Panicked,
}

/// Who goes on with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nobody: it has ended.
    Over,
    /// This process.
    Drive,
    /// Whoever claims it at this time (epoch milliseconds), or when a request comes.
    Sleep(Option<i64>),
}

impl Progress {
    /// Steps the run. Timers are set and cancelled at once: they are no effect anybody else can see.
    pub(super) fn step(
        &mut self,
        state: &mut RunState,
        input: Input,
        context: &RunContext,
        timers: &mut Timers,
    ) -> Result<(), StepFailure> {
        let now_ms = context.calls.as_ref().map_or_else(clock::now_ms, Calls::begin);
        // Only a graph that calls functions may need its input twice.
        let again = context.calls.is_some().then(|| Box::new(input.clone()));
        let stepped = context
            .pace
            .run(|| catch_unwind(AssertUnwindSafe(|| state.step(input, now_ms, context))));
        if let Some(calls) = &context.calls {
            calls.end(now_ms);
        }
        match (stepped, again) {
            (Ok(Ok(step)), _) => {
                self.absorb(step, timers);
                Ok(())
            }
            (Ok(Err(StepError::Unanswered)), Some(input)) => Err(StepFailure::Unanswered(input)),
            (Ok(Err(refused)), _) => Err(StepFailure::Refused(refused)),
            (Err(_panic), _) => Err(StepFailure::Panicked),
        }
    }

    fn absorb(&mut self, step: Step, timers: &mut Timers) {
        self.events.extend(step.events);
        for command in step.commands {
            match command {
                Command::SetTimer { key, due_at_ms } => timers.set(key, due_at_ms),
                Command::CancelTimer(key) => timers.cancel(&key),
                Command::CancelTimers => timers.clear(),
                Command::Finish { .. } => {
                    timers.clear();
                    // What earlier steps of the same stretch asked for must not begin any more.
                    self.commands
                        .retain(|earlier| matches!(earlier, Command::AbortExecutions));
                }
                Command::AbortExecution(key) => {
                    // One that an earlier step of the same stretch asked for must not begin any more.
                    self.commands.retain(
                        |earlier| !matches!(earlier, Command::Execute(execute) if execute.key == key),
                    );
                    self.commands.push(Command::AbortExecution(key));
                }
                Command::AbortExecutions => {
                    self.commands.clear();
                    self.commands.push(Command::AbortExecutions);
                }
                other => self.commands.push(other),
            }
        }
    }

    pub(super) fn asks_to_continue(&self) -> bool {
        self.commands.contains(&Command::Continue)
    }

    /// Who goes on after this was made durable.
    pub(super) fn next(&self, state: &RunState, timers: &Timers, keep_waiting: Duration) -> Next {
        // Also when it has ended and is to go on once functions have answered.
        if self.asks_to_continue() {
            return Next::Drive;
        }
        if state.finished().is_some() {
            return Next::Over;
        }
        if state.status() != RunStatus::Waiting {
            return Next::Drive;
        }
        let due_at_ms = timers.next_due();
        let keep_ms = i64::try_from(keep_waiting.as_millis()).unwrap_or(i64::MAX);
        match due_at_ms {
            Some(due) if due <= clock::now_ms().saturating_add(keep_ms) => Next::Drive,
            due => Next::Sleep(due),
        }
    }

    /// The journal's rows for the events.
    pub(super) fn segment(&self, context: &RunContext, seq: i64) -> (Vec<Segment>, Vec<Payload>) {
        if self.events.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let encoded = journal::encode(&self.events);
        let payload = |payload: journal::Payload| Payload {
            run_id: context.run_id.to_string(),
            organization_id: context.organization_id.to_string(),
            content_hash: hexadecimal(&payload.sha256),
            payload: payload.json.into_bytes(),
        };
        let segment = Segment {
            attempt: i64::from(context.attempt),
            seq,
            events: encoded.bytes,
        };
        (vec![segment], encoded.payloads.into_iter().map(payload).collect())
    }
}

impl Next {
    pub(super) fn driver(self) -> Driver {
        match self {
            Self::Drive => Driver::This,
            Self::Over | Self::Sleep(_) => Driver::Nobody,
        }
    }

    /// The timer row of a run that sleeps.
    pub(super) fn alarm(self) -> Vec<Timer> {
        match self {
            Self::Sleep(Some(due_at)) => {
                vec![Timer {
                    key: ALARM.to_owned(),
                    due_at,
                    kind: ALARM.to_owned(),
                }]
            }
            _ => Vec::new(),
        }
    }
}

/// The row's summary; `credits_before` is what earlier attempts cost.
pub(super) fn summary(state: &RunState, credits_before: i64, next: Next) -> RunSummary {
    let finished = state.finished();
    RunSummary {
        status: stored_status(state.status()),
        attempt_number: i64::from(state.attempt()),
        finished_at: finished.map(|finished| finished.at_ms),
        error: finished
            .and_then(|finished| finished.failure.as_ref())
            .map(ToString::to_string),
        credits_used: credits_before + credits(state),
        driver: next.driver(),
    }
}

/// What the attempt has cost so far.
pub(super) fn credits(state: &RunState) -> i64 {
    i64::try_from(state.credits_used()).unwrap_or(i64::MAX)
}

fn stored_status(status: RunStatus) -> store::RunStatus {
    match status {
        RunStatus::Queued => store::RunStatus::Queued,
        RunStatus::Running => store::RunStatus::Running,
        RunStatus::Waiting => store::RunStatus::Waiting,
        RunStatus::Succeeded => store::RunStatus::Succeeded,
        RunStatus::Failed => store::RunStatus::Failed,
        RunStatus::Cancelled => store::RunStatus::Cancelled,
    }
}

pub(super) fn hexadecimal(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
