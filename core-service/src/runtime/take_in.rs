//! What reaches a run, taken in: inputs of the engine, and requests, each of which gets an answer.

use std::sync::Arc;

use engine::event::{Event, EventBody};
use engine::state::RunState;
use engine::step::{Command, Input, NodeAttempt, StepError};
use engine::timer::TimerKey;

use super::drive::{Arrival, Asked, HeldBack, LiveRun, Panicked, Restart, Stretch};
use super::error::RequestError;
use super::execute::Ended;
use super::people::OpenQuestion;
use super::progress::StepFailure;
use super::request::{Answer, Answered, Ask, Done, Request, Waiting, outcome};
use crate::nodes::Executed;
use crate::store::{RunActivity, SignalDone};

/// Whether a request was taken in.
type Taken = Result<(), RequestError>;

impl LiveRun {
    pub(super) fn take_in(&mut self, stretch: &mut Stretch, arrival: Arrival) -> Result<(), Panicked> {
        match arrival {
            Arrival::Input(input) => self.take_in_input(stretch, input),
            Arrival::Ended(ended) => self.take_in_end(stretch, *ended),
            Arrival::HeldBack(held_back) => self.take_in_held_back(stretch, *held_back),
            Arrival::Request(request) => self.take_in_request(stretch, request),
        }
    }

    fn take_in_input(&mut self, stretch: &mut Stretch, input: Input) -> Result<(), Panicked> {
        if matches!(input, Input::TimerFired(TimerKey::Run)) {
            self.take_in_written(stretch)?;
        }
        self.take_in_held_back(stretch, HeldBack { input, asked: None })
    }

    /// Takes in what comes for the first time, or again after functions have answered.
    fn take_in_held_back(&mut self, stretch: &mut Stretch, held_back: HeldBack) -> Result<(), Panicked> {
        let HeldBack { input, asked } = held_back;
        let from = stretch.progress.events.len();
        let stepped = self.step(stretch, input).map(Ok);
        self.conclude(stretch, from, stepped, asked)
    }

    /// What follows from a step, whose events begin at `from`, for whoever asked for it. What functions have to answer
    /// first is kept until they have.
    fn conclude(
        &mut self,
        stretch: &mut Stretch,
        from: usize,
        stepped: Result<Taken, StepFailure>,
        asked: Option<Asked>,
    ) -> Result<(), Panicked> {
        let taken = match stepped {
            Ok(taken) => taken,
            Err(StepFailure::Panicked) => return Err(Panicked),
            Err(StepFailure::Unanswered(input)) => {
                let input = *input;
                self.held_back.push_back(HeldBack { input, asked });
                stretch.progress.commands.push(Command::Continue);
                return Ok(());
            }
            Err(StepFailure::Refused(refused)) => Err(match refused {
                StepError::NotFinished => RequestError::NotTerminal,
                StepError::NotFailed(node) => RequestError::NotFailed(node),
                StepError::NotWaiting(node) => RequestError::NotWaiting(node),
                StepError::Answered(node) => RequestError::Answered(node),
                StepError::Start(_) | StepError::Unanswered => RequestError::Internal,
            }),
        };
        if let Some(asked) = asked {
            let events = &stretch.progress.events[from..];
            let done = || Done {
                resumed: goes_on(events),
                ended: self.state.finished().is_some(),
            };
            let answer = taken.map(|()| done());
            self.tell(stretch, asked, answer);
        }
        Ok(())
    }

    /// Lets who asked know the answer, once it is durable.
    fn tell(&self, stretch: &mut Stretch, asked: Asked, answer: Answered) {
        let done = |id| SignalDone {
            id,
            outcome: outcome(&answer),
        };
        stretch.signals_done.extend(asked.signal_id.map(done));
        if let (Ok(_), Some(action)) = (&answer, asked.action) {
            stretch.activity.push(RunActivity {
                organization_id: self.context.organization_id.to_string(),
                actor: asked.actor,
                action,
            });
        }
        match answer {
            Ok(done) if asked.restarts => {
                let reply = asked.reply;
                stretch.restart = Some(Restart { reply, done });
            }
            answer => stretch.answers.extend(asked.reply.map(|reply| (reply, answer))),
        }
    }

    /// What the node wrote, then what came of it.
    fn take_in_end(&mut self, stretch: &mut Stretch, ended: Ended) -> Result<(), Panicked> {
        let Ended {
            key,
            attempt,
            started_at_ms,
            result,
            lines,
        } = ended;
        if !lines.is_empty() {
            let key = key.clone();
            self.take_in_input(stretch, Input::NodeLogged { key, attempt, lines })?;
        }
        let input = match result {
            Ok(Executed::Parked { due_at_ms }) => Input::NodeParked {
                key,
                attempt,
                due_at_ms,
            },
            Ok(Executed::Asked { question, due_at_ms }) => {
                let asked = NodeAttempt {
                    started_at_ms,
                    number: attempt,
                };
                let question = OpenQuestion {
                    question: *question,
                    asked,
                };
                self.questions.insert(key.clone(), question);
                Input::NodeParked {
                    key,
                    attempt,
                    due_at_ms,
                }
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
        };
        self.take_in_input(stretch, input)
    }

    /// What nodes have written that are about to be given up.
    fn take_in_written(&mut self, stretch: &mut Stretch) -> Result<(), Panicked> {
        for (key, attempt, lines) in self.executions.written() {
            self.take_in_input(stretch, Input::NodeLogged { key, attempt, lines })?;
        }
        Ok(())
    }

    fn take_in_request(&mut self, stretch: &mut Stretch, request: Request) -> Result<(), Panicked> {
        if let Some(signal_id) = &request.signal_id
            && !self.signals_seen.insert(signal_id.clone())
        {
            return Ok(());
        }
        let asked = Asked {
            actor: request.actor,
            action: request.ask.action(),
            restarts: matches!(request.ask, Ask::RetryNode { .. } | Ask::Rerun { .. }),
            reply: request.reply,
            signal_id: request.signal_id,
        };
        if matches!(request.ask, Ask::Cancel) {
            self.take_in_written(stretch)?;
        }
        let from = stretch.progress.events.len();
        let stepped = match request.ask {
            Ask::Cancel if self.state.finished().is_some() => Ok(Err(RequestError::Terminal)),
            Ask::Cancel => self.step(stretch, Input::Cancel).map(Ok),
            Ask::Answer(Answer { waiting, result, .. }) => {
                let Waiting { key, asked } = waiting;
                self.step(stretch, Input::NodeAnswered { key, asked, result })
                    .map(Ok)
            }
            Ask::RetryNode { node, metered } => self.go_on_from(stretch, node, metered),
            Ask::Rerun { metered } => self.begin_again(stretch, metered),
        };
        self.conclude(stretch, from, stepped, Some(asked))
    }

    /// Whether the run has ended, and durably: an end that is not is none.
    fn has_ended(&self, stretch: &Stretch) -> bool {
        self.state.finished().is_some() && stretch.progress.events.is_empty()
    }

    /// Lets a run that has ended go on from a node that failed.
    fn go_on_from(&mut self, stretch: &mut Stretch, node: i64, metered: bool) -> Result<Taken, StepFailure> {
        if !self.has_ended(stretch) {
            return Ok(Err(RequestError::NotTerminal));
        }
        let restarted = self.context.restarted(self.context.attempt, metered);
        let before = std::mem::replace(&mut self.context, Arc::new(restarted));
        let stepped = self.step(stretch, Input::RetryNode(node));
        if matches!(stepped, Err(StepFailure::Refused(_))) {
            self.context = before;
        }
        stepped.map(Ok)
    }

    /// Starts the next attempt of a run that has ended.
    fn begin_again(&mut self, stretch: &mut Stretch, metered: bool) -> Result<Taken, StepFailure> {
        if !self.has_ended(stretch) {
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
        self.context = Arc::new(self.context.restarted(attempt, metered));
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
}

/// Whether, after the first event, another node or item is begun or done.
fn goes_on(events: &[Event]) -> bool {
    events.iter().skip(1).any(|event| match &event.body {
        EventBody::NodeStarted { .. }
        | EventBody::NodeWaiting { .. }
        | EventBody::NodeCompleted { .. }
        | EventBody::NodeFailed { .. }
        | EventBody::NodeRetrying { .. }
        | EventBody::ItemsOpened { .. }
        | EventBody::ItemStarted { .. } => true,
        EventBody::RunStarted(_)
        | EventBody::NodeSkipped { .. }
        | EventBody::NodeLogged { .. }
        | EventBody::NodeCancelled { .. }
        | EventBody::RunResumed { .. }
        | EventBody::RunFinished { .. }
        | EventBody::ItemFinished { .. } => false,
    })
}
