//! How a run ends, goes on after a crash, and is kept to its time.

use std::sync::Arc;

use super::{Driver, ENGINE_ERROR, Retries};
use crate::event::{EventBody, Failure, NodeKey, Outcome};
use crate::failure::NodeError;
use crate::footprint::MAX_HELD_BYTES;
use crate::kind::Behaviour;
use crate::state::{NodeStatus, Place};
use crate::step::Command;
use crate::timer::TimerKey;

impl Driver<'_> {
    /// Ends the run when nothing more can happen.
    pub(super) fn conclude(&mut self) {
        if self.state.started_at_ms.is_none() || self.state.finished.is_some() || self.state.running > 0 {
            return;
        }
        match self.state.failing.clone() {
            Some(failure) => self.terminate(Outcome::Failed, Some(failure)),
            None if self.state.waiting == 0 && self.state.agenda.is_empty() => {
                self.terminate(Outcome::Succeeded, None);
            }
            None => {}
        }
    }

    pub(super) fn run_timer(&mut self) {
        self.state.armed_deadline_ms = None;
        if self
            .state
            .deadline_ms()
            .is_some_and(|deadline| deadline <= self.now_ms)
        {
            let message = format!(
                "the run took longer than {} ms",
                self.state.timeout_ms.unwrap_or_default()
            );
            self.terminate(
                Outcome::Failed,
                Some(Failure {
                    code: "RUN_TIMEOUT".into(),
                    message,
                }),
            );
        }
    }

    pub(super) fn holds_too_much(&self) -> bool {
        self.state.held_bytes > MAX_HELD_BYTES && !self.environment.lacks_answers()
    }

    pub(super) fn fail_for_size(&mut self) {
        let message = format!(
            "the outputs of the run's nodes have more than {} MiB together",
            MAX_HELD_BYTES >> 20
        );
        let failure = Failure {
            code: "RUN_TOO_LARGE".into(),
            message,
        };
        self.terminate(Outcome::Failed, Some(failure));
    }

    /// Ends the run now: what is in flight is given up.
    pub(super) fn terminate(&mut self, outcome: Outcome, failure: Option<Failure>) {
        let over = self.state.finished.is_some() || self.state.started_at_ms.is_none();
        if over || self.environment.lacks_answers() {
            return;
        }
        let in_flight = |place: &&Place| self.state.slot(**place).status.is_in_flight();
        let given_up: Vec<NodeKey> = self
            .state
            .order
            .iter()
            .filter(in_flight)
            .map(|place| self.state.key(*place))
            .collect();
        // What this step was about to start does not start.
        let starts = |command: &Command| matches!(command, Command::Execute(_) | Command::SetTimer { .. });
        self.step.commands.retain(|command| !starts(command));
        if self.state.running > 0 {
            self.step.commands.push(Command::AbortExecutions);
        }
        if self.state.waiting > 0 || self.state.armed_deadline_ms.take().is_some() {
            self.step.commands.push(Command::CancelTimers);
        }
        for key in given_up {
            self.record(EventBody::NodeCancelled { key });
        }
        self.record(EventBody::RunFinished {
            outcome,
            failure: failure.clone(),
        });
        self.step.commands.push(Command::Finish { outcome, failure });
    }

    /// Says again what the journal shows as outstanding.
    pub(super) fn resume(&mut self) {
        self.state.armed_deadline_ms = None;
        if let Some(finished) = self.state.finished.clone() {
            let (outcome, failure) = (finished.outcome, finished.failure);
            self.step.commands.push(Command::Finish { outcome, failure });
            return;
        }
        for place in self.state.order.clone() {
            let slot = self.state.slot(place);
            let key = self.state.key(place);
            match (slot.status, slot.due_at_ms) {
                (NodeStatus::Running, _) if !self.opens_scope(place) => self.execute_again(place, key),
                (NodeStatus::Waiting | NodeStatus::Retrying, Some(due_at_ms)) => {
                    self.step.commands.push(Command::SetTimer {
                        key: TimerKey::Node(key),
                        due_at_ms,
                    });
                }
                _ => {}
            }
        }
    }

    fn execute_again(&mut self, place: Place, key: NodeKey) {
        let plan = Arc::clone(&self.state.plan);
        let Behaviour::External(external) = &plan.node_at(place.node).behaviour else {
            let error = NodeError::new(ENGINE_ERROR, "the node cannot be executed again");
            return self.attempt_failed(place, error, Retries::Never);
        };
        match external.request(&self.view(place)) {
            Ok(request) => {
                let command = self.execute_command(place, key, request);
                self.step.commands.push(command);
            }
            Err(error) => self.attempt_failed(place, error, Retries::Allowed),
        }
    }

    /// Keeps the run's own timer at its deadline, which moves whenever the run has waited.
    pub(super) fn arm_deadline(&mut self) {
        let deadline_ms = self.state.deadline_ms();
        if deadline_ms == self.state.armed_deadline_ms {
            return;
        }
        let command = match deadline_ms {
            Some(due_at_ms) => Command::SetTimer {
                key: TimerKey::Run,
                due_at_ms,
            },
            None => Command::CancelTimer(TimerKey::Run),
        };
        self.state.armed_deadline_ms = deadline_ms;
        self.step.commands.push(command);
    }

    /// A node whose scope is open is not executed: its items are.
    fn opens_scope(&self, place: Place) -> bool {
        self.state.slot(place).opened.is_some()
    }
}
