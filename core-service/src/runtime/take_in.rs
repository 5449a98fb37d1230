//! What reaches a run, taken in: inputs of the engine, and requests, each of which gets an answer.

use std::sync::Arc;

use engine::state::{NodeStatus, RunState};
use engine::step::{Input, StepError};

use super::drive::{Arrival, LiveRun, Panicked, Restart, Stretch};
use super::error::RequestError;
use super::progress::StepFailure;
use super::request::{Answer, Answered, Ask, Request};
use crate::store::RunActivity;

impl LiveRun {
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
        let action = request.ask.action();
        let restarts = matches!(request.ask, Ask::RetryNode { .. } | Ask::Rerun { .. });
        let stepped = match request.ask {
            Ask::Cancel if self.state.finished().is_some() => Ok(Err(RequestError::Terminal)),
            Ask::Cancel => self.step(stretch, Input::Cancel).map(Ok),
            Ask::Answer(answer) => self.take_answer(stretch, answer),
            Ask::RetryNode { node, metered } => self.go_on_from(stretch, node, metered),
            Ask::Rerun { metered } => self.begin_again(stretch, metered),
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
        if answer.is_ok() {
            stretch.activity.push(RunActivity {
                organization_id: self.context.organization_id.to_string(),
                actor: request.actor,
                action,
            });
        }
        if answer.is_ok() && restarts {
            stretch.restart = Some(Restart { reply: request.reply });
        } else {
            stretch.answers.extend(request.reply.map(|reply| (reply, answer)));
        }
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

    /// Whether the run has ended, and durably: an end that is not is none.
    fn has_ended(&self, stretch: &Stretch) -> bool {
        self.state.finished().is_some() && stretch.progress.events.is_empty()
    }

    /// Lets a run that has ended go on from a node that failed.
    fn go_on_from(
        &mut self,
        stretch: &mut Stretch,
        node: i64,
        metered: bool,
    ) -> Result<Answered, StepFailure> {
        if !self.has_ended(stretch) {
            return Ok(Err(RequestError::NotTerminal));
        }
        self.step(stretch, Input::RetryNode(node))?;
        self.context = Arc::new(self.context.restarted(self.context.attempt, metered));
        Ok(Ok(()))
    }

    /// Starts the next attempt of a run that has ended.
    fn begin_again(&mut self, stretch: &mut Stretch, metered: bool) -> Result<Answered, StepFailure> {
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
