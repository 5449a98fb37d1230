//! What reaches a run, taken in: inputs of the engine, and requests, each of which gets an answer.

use std::sync::Arc;

use engine::state::{NodeStatus, RunState};
use engine::step::{Command, Input, StepError};

use super::drive::{Arrival, HeldBack, LiveRun, Panicked, Stretch};
use super::error::RequestError;
use super::execute::Ended;
use super::progress::StepFailure;
use super::request::{Answer, Answered, Ask, Reply, Request};
use crate::nodes::Executed;

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
        let held_back = HeldBack {
            input,
            reply: None,
            signal_id: None,
        };
        self.take_in_held_back(stretch, held_back)
    }

    /// Takes in what comes for the first time, or again after functions have answered.
    fn take_in_held_back(&mut self, stretch: &mut Stretch, held_back: HeldBack) -> Result<(), Panicked> {
        let HeldBack {
            input,
            reply,
            signal_id,
        } = held_back;
        match self.step(stretch, input) {
            Err(StepFailure::Panicked) => return Err(Panicked),
            Err(StepFailure::Unanswered(input)) => {
                self.hold_back(stretch, *input, reply, signal_id);
                return Ok(());
            }
            // Only requests can be refused, when they first come.
            Ok(()) | Err(StepFailure::Refused(_)) => {}
        }
        stretch.signals_done.extend(signal_id);
        stretch.answers.extend(reply.map(|reply| (reply, Ok(()))));
        Ok(())
    }

    /// Keeps an input until functions have answered.
    fn hold_back(
        &mut self,
        stretch: &mut Stretch,
        input: Input,
        reply: Option<Reply>,
        signal_id: Option<String>,
    ) {
        self.held_back.push_back(HeldBack {
            input,
            reply,
            signal_id,
        });
        stretch.progress.commands.push(Command::Continue);
    }

    /// What the node wrote, then what came of it.
    fn take_in_end(&mut self, stretch: &mut Stretch, ended: Ended) -> Result<(), Panicked> {
        let Ended {
            key,
            attempt,
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

    fn take_in_request(&mut self, stretch: &mut Stretch, request: Request) -> Result<(), Panicked> {
        let signal_id = request.signal_id;
        if let Some(signal_id) = &signal_id
            && !self.signals_seen.insert(signal_id.clone())
        {
            return Ok(());
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
            Err(StepFailure::Unanswered(input)) => {
                self.hold_back(stretch, *input, request.reply, signal_id);
                return Ok(());
            }
            Err(StepFailure::Refused(refused)) => Err(match refused {
                StepError::NotFinished => RequestError::NotTerminal,
                StepError::NotFailed(node) => RequestError::NotFailed(node),
                StepError::Start(_) | StepError::Unanswered => RequestError::Internal,
            }),
        };
        stretch.signals_done.extend(signal_id);
        stretch.answers.extend(request.reply.map(|reply| (reply, answer)));
        Ok(())
    }

    /// Completes a node that waits for an answer. The first answer wins.
    fn take_answer(&mut self, stretch: &mut Stretch, answer: Answer) -> Result<Answered, StepFailure> {
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
    fn begin_again(&mut self, stretch: &mut Stretch) -> Result<Answered, StepFailure> {
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
}
