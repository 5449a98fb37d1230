//! What reaches a run, taken in: inputs of the engine, and requests, each of which gets an answer.

use std::sync::Arc;

use engine::event::{Event, EventBody};
use engine::state::{NodeStatus, RunState};
use engine::step::{Input, StepError};

use super::drive::{Arrival, LiveRun, Panicked, Stretch};
use super::error::RequestError;
use super::progress::StepFailure;
use super::request::{Answer, Ask, Done, Request, outcome};
use crate::store::SignalDone;

/// Whether a request was taken in.
type Taken = Result<(), RequestError>;

impl LiveRun {
    pub(super) fn take_in(&mut self, stretch: &mut Stretch, arrival: Arrival) -> Result<(), Panicked> {
        match arrival {
            Arrival::Input(input) => match self.step(stretch, input) {
                Err(StepFailure::Panicked) => Err(Panicked),
                // Only requests can be refused.
                Ok(()) | Err(StepFailure::Refused(_)) => Ok(()),
            },
            Arrival::Asked(key, question, parked) => {
                stretch.asked.insert(key, question);
                self.take_in(stretch, Arrival::Input(parked))
            }
            Arrival::Request(request) => self.take_in_request(stretch, request),
        }
    }

    fn take_in_request(&mut self, stretch: &mut Stretch, request: Request) -> Result<(), Panicked> {
        let is_repeated = |id: &String| !self.signals_seen.insert(id.clone());
        if request.signal_id.as_ref().is_some_and(is_repeated) {
            return Ok(());
        }
        let from = stretch.progress.events.len();
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
        let answer = answer.map(|()| Done {
            resumed: goes_on(&stretch.progress.events[from..]),
            ended: self.state.finished().is_some(),
        });
        let done = |id| SignalDone {
            id,
            outcome: outcome(&answer),
        };
        stretch.signals_done.extend(request.signal_id.map(done));
        stretch.answers.extend(request.reply.map(|reply| (reply, answer)));
        Ok(())
    }

    /// Completes a node that waits for an answer. The first answer wins.
    fn take_answer(&mut self, stretch: &mut Stretch, answer: Answer) -> Result<Taken, StepFailure> {
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
    fn begin_again(&mut self, stretch: &mut Stretch) -> Result<Taken, StepFailure> {
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
        | EventBody::NodeCancelled { .. }
        | EventBody::RunResumed { .. }
        | EventBody::RunFinished { .. }
        | EventBody::ItemFinished { .. } => false,
    })
}
