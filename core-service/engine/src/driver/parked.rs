//! Nodes whose executions go on elsewhere: parked, then answered by a person or another run, or out of time.

use std::sync::Arc;

use serde_json::Value;

use super::{Driver, Retries};
use crate::event::{EventBody, NodeKey};
use crate::failure::NodeError;
use crate::kind::Behaviour;
use crate::state::{NodeStatus, Place};
use crate::step::{Command, NodeAttempt, StepError};
use crate::timer::TimerKey;

impl Driver<'_> {
    pub(super) fn node_parked(&mut self, key: &NodeKey, attempt: u32, due_at_ms: Option<i64>) {
        let Some(place) = self.state.place(key) else {
            return;
        };
        let slot = self.state.slot(place);
        if slot.attempt != attempt || slot.status != NodeStatus::Running || !self.is_executing(place) {
            return;
        }
        self.record(EventBody::NodeWaiting {
            key: key.clone(),
            due_at_ms,
        });
        if let Some(due_at_ms) = due_at_ms {
            let key = TimerKey::Node(key.clone());
            self.step.commands.push(Command::SetTimer { key, due_at_ms });
        }
    }

    /// Takes the answer of whoever was asked. The first one counts.
    pub(super) fn node_answered(
        &mut self,
        key: &NodeKey,
        asked: NodeAttempt,
        result: Result<Value, NodeError>,
    ) -> Result<(), StepError> {
        let place = self.state.place(key).ok_or(StepError::NotWaiting(key.node))?;
        let slot = self.state.slot(place);
        // A wait of the engine's own is for its time, not for an answer.
        let Some(started_at_ms) = slot.started_at_ms.filter(|_| self.is_external(place)) else {
            return Err(StepError::NotWaiting(key.node));
        };
        let current = NodeAttempt {
            started_at_ms,
            number: slot.attempt,
        };
        // Whoever is asked may answer before it is known that the node waits: it may still be running.
        if asked != current || self.state.finished.is_some() || !self.is_executing(place) {
            return Err(StepError::Answered(key.node));
        }
        match result {
            Ok(output) => self.complete(place, output),
            Err(error) => self.attempt_failed(place, error, Retries::Allowed),
        }
        Ok(())
    }

    /// The time of a parked node is over.
    pub(super) fn time_over(&mut self, place: Place) {
        let plan = Arc::clone(&self.state.plan);
        let Behaviour::External(external) = &plan.node_at(place.node).behaviour else {
            return;
        };
        match external.timed_out(&self.view(place)) {
            Ok(Some(output)) => self.complete(place, output),
            Ok(None) => {
                let error = NodeError::new(NodeError::TIMEOUT, "nobody answered in time");
                self.attempt_failed(place, error, Retries::Never);
            }
            Err(error) => self.attempt_failed(place, error, Retries::Never),
        }
    }
}
