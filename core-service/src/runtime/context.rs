//! What does not change while an attempt of a run is driven: who it is, its plan, what it reaches.

use std::sync::{Arc, OnceLock};

use engine::expression::EvaluationError;
use engine::plan::Plan;
use engine::scope::Environment;
use serde_json::{Value, json};

use super::calls::Calls;
use super::pace::Pace;
use super::record::StartRecord;
use super::surroundings::Surroundings;
use crate::connectors::Apps;

pub(super) struct RunContext {
    pub(super) run_id: Arc<str>,
    pub(super) organization_id: Arc<str>,
    pub(super) workflow_id: Arc<str>,
    pub(super) created_at: i64,
    pub(super) attempt: u32,
    pub(super) metered: bool,
    pub(super) record: StartRecord,
    pub(super) plan: Arc<Plan>,
    /// The apps as the graph pinned them.
    pub(super) apps: Apps,
    pub(super) pace: Pace,
    /// Whether the plan has nodes that start runs of other workflows.
    pub(super) calls_workflows: bool,
    pub(super) surroundings: Arc<dyn Surroundings>,
    /// Calls of custom functions; nothing when the graph calls none.
    pub(super) calls: Option<Calls>,
    /// `$run` and `$workflow`, made when an expression asks for them.
    pub(super) roots: OnceLock<(Value, Value)>,
}

impl RunContext {
    /// The same run started again, at this attempt.
    pub(super) fn restarted(&self, attempt: u32, metered: bool) -> Self {
        Self {
            run_id: Arc::clone(&self.run_id),
            organization_id: Arc::clone(&self.organization_id),
            workflow_id: Arc::clone(&self.workflow_id),
            created_at: self.created_at,
            attempt,
            metered,
            record: self.record.clone(),
            plan: Arc::clone(&self.plan),
            apps: self.apps.clone(),
            pace: self.pace.clone(),
            calls_workflows: self.calls_workflows,
            surroundings: Arc::clone(&self.surroundings),
            calls: self.calls.as_ref().map(|_| Calls::default()),
            roots: OnceLock::new(),
        }
    }

    /// Brings the answers that evaluations of this run lack. Dropping the future gives the calls up; they are still
    /// lacking then.
    pub(super) async fn bring_answers(&self) {
        if let Some(calls) = &self.calls {
            let answers = self.surroundings.call_all(calls.wanted()).await;
            calls.answer(answers);
        }
    }

    /// Gives up what waits for answers.
    pub(super) fn give_up_calls(&self) {
        if let Some(calls) = &self.calls {
            calls.give_up();
        }
    }

    fn roots(&self) -> &(Value, Value) {
        self.roots.get_or_init(|| {
            let created_at = jiff::Timestamp::from_millisecond(self.created_at).unwrap_or_default();
            let run = json!({
                "id": &*self.run_id,
                "attemptNumber": self.attempt,
                "trigger": self.record.trigger,
                "createdAt": format!("{created_at:.3}"),
            });
            let workflow = json!({ "id": &*self.workflow_id, "name": self.record.workflow_name });
            (run, workflow)
        })
    }
}

impl Environment for RunContext {
    fn run(&self) -> &Value {
        &self.roots().0
    }

    fn workflow(&self) -> &Value {
        &self.roots().1
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.surroundings.variable(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        match &self.calls {
            Some(calls) => calls.ask(name, arguments),
            None => Err(EvaluationError::new(format!("there is no function {name}"))),
        }
    }

    fn lacks_answers(&self) -> bool {
        self.calls.as_ref().is_some_and(Calls::are_wanted)
    }

    fn recorded(&self) {
        if let Some(calls) = &self.calls {
            calls.forget();
        }
    }

    fn mask(&self, output: &mut Value) {
        self.surroundings.mask(output);
    }

    fn mask_text(&self, message: &mut String) {
        self.surroundings.mask_text(message);
    }
}
