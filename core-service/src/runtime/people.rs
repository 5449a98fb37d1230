//! What a stretch of a run changes about its open requests to people. They follow from the same events as the run's
//! state and are committed with them.

use std::collections::HashMap;

use engine::event::{Event, EventBody, NodeKey};
use engine::graph::NATIVE_APP;
use engine::scope::Environment as _;
use engine::step::NodeAttempt;
use serde::{Deserialize, Serialize};

use super::context::RunContext;
use crate::form::Question;
use crate::id;
use crate::nodes::human_input;
use crate::store::{HumanRequestPlace, NewHumanRequest};

/// What an open request keeps: what is asked, and by which attempt at the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// What is asked.
    pub question: Question,
    /// Who takes the answer.
    pub asked: NodeAttempt,
}

/// Requests to open and to close.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) opened: Vec<NewHumanRequest>,
    pub(super) closed: Vec<HumanRequestPlace>,
}

impl RunContext {
    /// What the events mean for the run's requests; `questions` are those of nodes that were parked.
    pub(super) fn requests(
        &self,
        events: &[Event],
        questions: &mut HashMap<NodeKey, OpenQuestion>,
    ) -> Requests {
        let mut requests = Requests::default();
        for event in events {
            match &event.body {
                EventBody::NodeWaiting { key, due_at_ms } => {
                    let question = questions.remove(key);
                    let opened =
                        question.and_then(|question| self.request(key, question, *due_at_ms, event.at_ms));
                    requests.opened.extend(opened);
                }
                EventBody::NodeCompleted { key, .. }
                | EventBody::NodeFailed { key, .. }
                | EventBody::NodeRetrying { key, .. }
                | EventBody::NodeCancelled { key }
                    if self.asks(key.node) =>
                {
                    let place = place(key);
                    requests.opened.retain(|request| request.place != place);
                    requests.closed.push(place);
                }
                _ => {}
            }
        }
        requests
    }

    /// Whether a node asks people.
    fn asks(&self, node: i64) -> bool {
        let node = self.plan.node(node);
        node.is_some_and(|node| node.app_id == NATIVE_APP && node.module_slug == human_input::KIND)
    }

    fn request(
        &self,
        key: &NodeKey,
        mut open: OpenQuestion,
        due_at: Option<i64>,
        created_at: i64,
    ) -> Option<NewHumanRequest> {
        self.mask_question(&mut open.question);
        Some(NewHumanRequest {
            id: id::new(id::Kind::HumanRequest),
            organization_id: self.organization_id.to_string(),
            workflow_id: self.workflow_id.to_string(),
            run_attempt: i64::from(self.attempt),
            place: place(key),
            question: serde_json::to_vec(&open).ok()?,
            assignees: open.question.assignees,
            due_at,
            created_at,
        })
    }

    /// Takes secrets out: people are shown the question.
    fn mask_question(&self, question: &mut Question) {
        self.mask_text(&mut question.title);
        self.mask_text(&mut question.message);
        for field in &mut question.fields {
            self.mask_text(&mut field.label);
        }
        for assignee in &mut question.assignees {
            self.mask_text(assignee);
        }
    }
}

fn place(key: &NodeKey) -> HumanRequestPlace {
    HumanRequestPlace {
        node_id: key.node,
        iteration: key.iteration.to_string(),
    }
}
