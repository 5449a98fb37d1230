//! One step at work: takes an input in, then advances what is ready until nothing is.

mod ending;
mod items;
mod parked;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::OnError;
use crate::event::{Event, EventBody, Failure, LogLevel, LogLine, NodeKey, Outcome};
use crate::failure::NodeError;
use crate::fold::error_value;
use crate::footprint::{self, MAX_LOGGED_BYTES};
use crate::kind::{Behaviour, ConditionMode};
use crate::plan::PlanNode;
use crate::routing::Router;
use crate::scope::{Environment, NodeScope};
use crate::start::StartError;
use crate::state::{NodeStatus, Place, RunState};
use crate::step::{Command, Execute, Input, STEP_BUDGET, Step, StepError, as_object};
use crate::timer::TimerKey;
use crate::view::NodeView;

/// The code of a failure of the engine itself.
const ENGINE_ERROR: &str = "ENGINE_ERROR";

/// One step's state, surroundings and decisions.
pub(crate) struct Driver<'a> {
    state: &'a mut RunState,
    environment: &'a dyn Environment,
    now_ms: i64,
    step: Step,
}

/// Whether an attempt that failed may be followed by another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retries {
    Allowed,
    /// The effect has happened: trying again would repeat it.
    Never,
}

/// What becomes of a failure that no error edge takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// The run fails.
    Fail,
    /// The node's normal edges are taken.
    Continue,
    /// The item ends, the others go on.
    EndItem,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(state: &'a mut RunState, now_ms: i64, environment: &'a dyn Environment) -> Self {
        Self {
            state,
            environment,
            now_ms,
            step: Step::default(),
        }
    }

    /// Takes the input in. On an error nothing has changed.
    pub(crate) fn accept(&mut self, input: Input) -> Result<(), StepError> {
        match input {
            Input::Start(start) => {
                if self.state.started_at_ms.is_some() {
                    return Err(StartError::Started.into());
                }
                let started = start.resolve(&self.state.plan)?;
                self.record(EventBody::RunStarted(started));
            }
            Input::NodeFinished { key, attempt, result } => self.node_finished(&key, attempt, result),
            Input::NodeLogged { key, attempt, lines } => self.node_logged(key, attempt, lines),
            Input::NodeParked {
                key,
                attempt,
                due_at_ms,
            } => self.node_parked(&key, attempt, due_at_ms),
            Input::NodeAnswered { key, asked, result } => self.node_answered(&key, asked, result)?,
            Input::TimerFired(TimerKey::Node(key)) => self.node_timer(&key),
            Input::TimerFired(TimerKey::Run) => self.run_timer(),
            Input::Cancel => self.terminate(Outcome::Cancelled, None),
            Input::Fail(failure) => self.terminate(Outcome::Failed, Some(failure)),
            Input::RetryNode(node) => self.retry_node(node)?,
            Input::Resume => self.resume(),
            Input::Continue => {}
        }
        Ok(())
    }

    /// Advances what is ready until nothing is, or until the step's budget is spent.
    pub(crate) fn run(&mut self) {
        let mut budget = STEP_BUDGET;
        while self.may_begin() {
            if self.holds_too_much() {
                return self.fail_for_size();
            }
            if budget == 0 && self.has_work() {
                self.step.commands.push(Command::Continue);
                return;
            }
            budget = budget.saturating_sub(1);
            let decided = self.step.commands.len();
            if let Some(&frame) = self.state.exhausted.front() {
                self.finish_item(frame);
                if !self.environment.lacks_answers() {
                    self.state.exhausted.pop_front();
                }
            } else if let Some(&opened) = self.state.attention.front() {
                self.tend(opened);
            } else if let Some(&place) = self.state.agenda.front() {
                self.advance(place);
            } else {
                break;
            }
            if self.environment.lacks_answers() {
                // What could not be decided is still to be done.
                self.step.commands.truncate(decided);
                self.step.commands.push(Command::Continue);
                return;
            }
        }
        self.conclude();
    }

    fn has_work(&self) -> bool {
        !(self.state.exhausted.is_empty() && self.state.attention.is_empty() && self.state.agenda.is_empty())
    }

    pub(crate) fn finish(mut self) -> Step {
        self.arm_deadline();
        self.step
    }

    fn may_begin(&self) -> bool {
        self.state.started_at_ms.is_some() && self.state.finished.is_none() && self.state.failing.is_none()
    }

    fn advance(&mut self, place: Place) {
        let plan = Arc::clone(&self.state.plan);
        let node = plan.node_at(place.node);
        let slot = self.state.slot(place);
        if !slot.is_start && slot.delivered == 0 {
            let key = self.state.key(place);
            return self.record(EventBody::NodeSkipped { key });
        }
        let view = self.view(place);
        let holds_scope = node.opens.is_some() || node.closes.is_some();
        if node.disabled && !holds_scope {
            let input = view.input();
            return self.pass_on(place, input);
        }
        if node.disabled && node.opens.is_some() {
            // As if it passed its input through: its region runs once, for that.
            let input = Arc::unwrap_or_clone(view.input());
            return self.open_items(place, vec![input]);
        }
        match &node.behaviour {
            Behaviour::Trigger => {
                let input = Arc::clone(&self.state.input);
                self.pass_on(place, input);
            }
            Behaviour::Pure(pure) => match pure.evaluate(&view) {
                Ok(output) => self.complete(place, output),
                Err(error) => self.attempt_failed(place, error, Retries::Allowed),
            },
            Behaviour::External(external) => match external.request(&view) {
                Ok(request) => self.execute(place, request),
                Err(error) => self.attempt_failed(place, error, Retries::Allowed),
            },
            Behaviour::Condition(mode) => self.branch(place, *mode),
            Behaviour::Wait(wait) => match wait.due_at_ms(&view) {
                Ok(due_at_ms) if due_at_ms <= self.now_ms => self.complete(place, wait_output(due_at_ms)),
                Ok(due_at_ms) => self.wait(place, due_at_ms),
                Err(error) => self.attempt_failed(place, error, Retries::Allowed),
            },
            Behaviour::Splitter(splitter) => match splitter.items(&view) {
                Ok(items) => self.open_items(place, items),
                Err(error) => self.attempt_failed(place, error, Retries::Allowed),
            },
            Behaviour::Aggregator(_) => self.aggregate(place),
            Behaviour::Stop(stop) => match stop.evaluate(&view) {
                Ok(mut end) => {
                    self.environment.mask_text(&mut end.message);
                    let failure = end.failure();
                    self.record_completed(place, Arc::new(end.output()), Vec::new());
                    self.terminate(end.outcome, failure);
                }
                Err(error) => self.attempt_failed(place, error, Retries::Allowed),
            },
        }
    }

    fn execute(&mut self, place: Place, request: Value) {
        let key = self.state.key(place);
        self.record(EventBody::NodeStarted { key: key.clone() });
        let command = self.execute_command(place, key, request);
        self.step.commands.push(command);
    }

    fn execute_command(&self, place: Place, key: NodeKey, request: Value) -> Command {
        let node = self.state.plan.node_at(place.node);
        Command::Execute(Execute {
            key,
            run_attempt: self.state.run_attempt,
            attempt: self.state.slot(place).attempt,
            started_at_ms: self.state.slot(place).started_at_ms.unwrap_or(self.now_ms),
            request,
            timeout_ms: node.timeout_ms,
            only_computes: matches!(&node.behaviour, Behaviour::External(external) if external.only_computes()),
        })
    }

    fn wait(&mut self, place: Place, due_at_ms: i64) {
        let key = self.state.key(place);
        self.record(EventBody::NodeWaiting {
            key: key.clone(),
            due_at_ms: Some(due_at_ms),
        });
        self.step.commands.push(Command::SetTimer {
            key: TimerKey::Node(key),
            due_at_ms,
        });
    }

    /// A condition's output names the edges it took, so they are chosen first.
    fn branch(&mut self, place: Place, mode: ConditionMode) {
        let plan = Arc::clone(&self.state.plan);
        let node = plan.node_at(place.node);
        match Router::new(&plan, node).completed(&self.view(place), mode) {
            Ok(taken) => {
                let edge_id = |&at: &u32| plan.edge_at(node.outgoing[at as usize]).id.as_str();
                let matched: Vec<&str> = taken.iter().map(edge_id).collect();
                self.record_completed(place, Arc::new(json!({ "matched": matched })), taken);
            }
            Err(error) => self.attempt_failed(place, error.into(), Retries::Allowed),
        }
    }

    /// Records an output and the edges it takes.
    fn complete(&mut self, place: Place, output: Value) {
        let mut output = as_object(output);
        self.environment.mask(&mut output);
        self.pass_on(place, Arc::new(output));
    }

    /// Records an output that was masked already and the edges it takes.
    fn pass_on(&mut self, place: Place, output: Arc<Value>) {
        let plan = Arc::clone(&self.state.plan);
        let view = self.view(place).with_own(&output);
        match Router::new(&plan, plan.node_at(place.node)).completed(&view, ConditionMode::All) {
            Ok(taken) => self.record_completed(place, output, taken),
            Err(error) => self.attempt_failed(place, error.into(), Retries::Never),
        }
    }

    fn record_completed(&mut self, place: Place, output: Arc<Value>, taken: Vec<u32>) {
        let key = self.state.key(place);
        self.record(EventBody::NodeCompleted { key, output, taken });
    }

    /// Tries again later, or hands the failure to whoever takes care of it.
    fn attempt_failed(&mut self, place: Place, error: NodeError, retries: Retries) {
        if self.environment.lacks_answers() {
            // It has not failed: it cannot be evaluated yet.
            return;
        }
        let plan = Arc::clone(&self.state.plan);
        let node = plan.node_at(place.node);
        let asked_ms = error.retry_after_ms.unwrap_or(0);
        let temporary = error.temporary;
        let mut failure = error.into_failure();
        self.environment.mask_text(&mut failure.message);
        if let (Retries::Allowed, true, Some(delay_ms)) = (
            retries,
            self.may_begin(),
            self.next_delay_ms(place, node, temporary),
        ) {
            let due_at_ms = self.now_ms.saturating_add_unsigned(delay_ms.max(asked_ms));
            let key = self.state.key(place);
            self.record(EventBody::NodeRetrying {
                key: key.clone(),
                failure,
                due_at_ms,
            });
            self.step.commands.push(Command::SetTimer {
                key: TimerKey::Node(key),
                due_at_ms,
            });
            return;
        }
        let error = error_value(&failure);
        let router = Router::new(&plan, node);
        let mut taken = router.failed(&self.view(place), &error);
        let policy = self.policy(place);
        let continues = taken.is_empty() && policy == Policy::Continue;
        // The region of a splitter that failed has no item to run for.
        if continues && node.opens.is_none() {
            let output = json!({ "error": error });
            taken = router.continued(&self.view(place).with_own(&output));
        }
        let ends_item = taken.is_empty() && policy == Policy::EndItem && self.may_begin();
        let handled = continues || ends_item || !taken.is_empty();
        let key = self.state.key(place);
        let ended = ends_item.then(|| failure.clone());
        self.record(EventBody::NodeFailed {
            key,
            failure,
            taken,
            handled,
        });
        if let Some(failure) = ended {
            self.end_item(place.frame, node.id, failure);
        }
    }

    /// What becomes of a failure that no error edge takes: the node's own word, else that of the scopes around it.
    fn policy(&self, place: Place) -> Policy {
        let plan = &self.state.plan;
        match plan.node_at(place.node).on_error {
            Some(OnError::Continue) => return Policy::Continue,
            Some(OnError::Fail) => return Policy::Fail,
            None => {}
        }
        let mut scope = plan.node_at(place.node).scope;
        while let Some(opener) = plan.scope_at(scope).opener {
            match plan.node_at(opener).on_error {
                Some(OnError::Continue) => return Policy::EndItem,
                Some(OnError::Fail) => return Policy::Fail,
                None => scope = plan.scope_at(scope).outer,
            }
        }
        Policy::Fail
    }

    fn next_delay_ms(&self, place: Place, node: &PlanNode, temporary: bool) -> Option<u64> {
        let slot = self.state.slot(place);
        // A node on the agenda begins and fails in one event, which counts the attempt.
        let attempt = slot.attempt + u32::from(slot.ready);
        let own = node.own_retry.as_ref().filter(|_| temporary);
        node.retry.as_ref().or(own)?.delay_after(attempt)
    }

    fn node_finished(&mut self, key: &NodeKey, attempt: u32, result: Result<Value, NodeError>) {
        let Some(place) = self.state.place(key) else {
            return;
        };
        if !self.may_end(place, attempt) {
            return;
        }
        match result {
            Ok(output) if self.state.plan.node_at(place.node).opens.is_some() => self.emit(place, output),
            Ok(output) => self.complete(place, output),
            Err(error) => self.attempt_failed(place, error, Retries::Allowed),
        }
    }

    fn node_logged(&mut self, key: NodeKey, attempt: u32, mut lines: Vec<LogLine>) {
        let awaited = self
            .state
            .place(&key)
            .is_some_and(|place| self.may_end(place, attempt));
        if !awaited {
            return;
        }
        if self.state.logged_bytes + footprint::of_lines(&lines) > MAX_LOGGED_BYTES {
            lines = vec![LogLine {
                level: LogLevel::Warn,
                message: format!("console output of a run beyond {MAX_LOGGED_BYTES} bytes is left out"),
            }];
        }
        for line in &mut lines {
            self.environment.mask_text(&mut line.message);
        }
        let lines = lines.into();
        self.record(EventBody::NodeLogged { key, lines });
    }

    /// Whether the end of this attempt is awaited, or recorded although it comes too late.
    fn may_end(&self, place: Place, attempt: u32) -> bool {
        let slot = self.state.slot(place);
        let late = self.state.finished.is_some() && slot.status == NodeStatus::Cancelled;
        slot.attempt == attempt && (self.is_executing(place) || late)
    }

    /// Whether the node's result is the runtime's to report.
    fn is_executing(&self, place: Place) -> bool {
        let slot = self.state.slot(place);
        self.is_external(place)
            && slot.opened.is_none()
            && matches!(slot.status, NodeStatus::Running | NodeStatus::Waiting)
    }

    fn is_external(&self, place: Place) -> bool {
        let behaviour = &self.state.plan.node_at(place.node).behaviour;
        matches!(behaviour, Behaviour::External(_))
    }

    fn node_timer(&mut self, key: &NodeKey) {
        let Some(place) = self.state.place(key) else {
            return;
        };
        let slot = self.state.slot(place);
        let Some(due_at_ms) = slot
            .due_at_ms
            .filter(|due| *due <= self.now_ms && self.may_begin())
        else {
            return;
        };
        match slot.status {
            NodeStatus::Waiting if self.is_executing(place) => self.time_over(place),
            NodeStatus::Waiting => self.complete(place, wait_output(due_at_ms)),
            NodeStatus::Retrying => self.state.put_on_agenda(place),
            _ => {}
        }
    }

    fn retry_node(&mut self, node: i64) -> Result<(), StepError> {
        if self.state.finished.is_none() {
            return Err(StepError::NotFinished);
        }
        let mut reports = self.state.nodes();
        if !reports.any(|report| report.node.id == node && report.status == NodeStatus::Failed) {
            return Err(StepError::NotFailed(node));
        }
        drop(reports);
        self.record(EventBody::RunResumed { node });
        Ok(())
    }

    fn view(&self, place: Place) -> NodeView<'_> {
        // A node in flight keeps the instant it began at.
        let now_ms = match self.state.slot(place).status {
            NodeStatus::Running => self.state.slot(place).began_at_ms.unwrap_or(self.now_ms),
            _ => self.now_ms,
        };
        NodeView::new(self.state, self.environment, place, now_ms)
    }

    /// The view of a node outside the frame it is seen from.
    fn view_from(&self, place: Place) -> NodeView<'_> {
        NodeView::new(self.state, self.environment, place, self.now_ms)
    }

    fn record(&mut self, body: EventBody) {
        // All that belongs together is evaluated first and recorded then, so nothing of it is recorded by now.
        if self.environment.lacks_answers() {
            return;
        }
        let event = Event {
            at_ms: self.now_ms,
            body,
        };
        match self.state.apply(&event) {
            Ok(()) => {
                self.environment.recorded();
                self.step.events.push(event);
            }
            Err(error) => {
                debug_assert!(false, "the engine decided what its own fold refuses: {error}");
                // A run always ends, also when the engine is at fault.
                let code = String::from(ENGINE_ERROR);
                let message = error.to_string();
                self.state.failing.get_or_insert(Failure { code, message });
            }
        }
    }
}

fn wait_output(due_at_ms: i64) -> Value {
    json!({ "until": due_at_ms })
}
