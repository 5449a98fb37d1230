//! A runtime in memory: carries out commands by a fixed rule, so that two runs of the same graph are the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::CONSTANTS;
use crate::event::{Event, EventBody, Failure, NodeKey, Outcome};
use crate::failure::NodeError;
use crate::journal::{self, Segment};
use crate::plan::Plan;
use crate::start::Start;
use crate::state::RunState;
use crate::step::{Command, Execute, Input, Step, StepError};
use crate::timer::TimerKey;

/// A run, what it asked for, and what was recorded of it.
pub(crate) struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) state: RunState,
    pub(crate) journal: Vec<Event>,
    pub(crate) executing: Vec<Execute>,
    pub(crate) timers: BTreeMap<TimerKey, i64>,
    pub(crate) finished: Option<(Outcome, Option<Failure>)>,
    pub(crate) now_ms: i64,
    /// The attempts of a node that fail, counted from the first.
    pub(crate) failures: HashMap<i64, u32>,
}

/// Whether the process survives a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    None,
    /// Before the events were durable: they are lost.
    Before,
    /// After the events were durable, before any command was carried out.
    After,
}

impl World {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        Self {
            state: RunState::new(Arc::clone(&plan)),
            plan,
            journal: Vec::new(),
            executing: Vec::new(),
            timers: BTreeMap::new(),
            finished: None,
            now_ms: 1_000,
            failures: HashMap::new(),
        }
    }

    /// A world whose run was started by hand.
    pub(crate) fn started(plan: Arc<Plan>) -> Self {
        let mut world = Self::new(plan);
        world.input(Input::Start(Start::manual()));
        world
    }

    /// Takes an input in and carries out what follows; gives the events.
    #[track_caller]
    pub(crate) fn input(&mut self, input: Input) -> Vec<Event> {
        match self.try_input(input) {
            Ok(events) => events,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn try_input(&mut self, input: Input) -> Result<Vec<Event>, StepError> {
        let before = self.journal.len();
        let mut step = self.state.step(input, self.now_ms, &*CONSTANTS)?;
        self.journal.append(&mut step.events);
        while self.carry_out(step.commands) {
            step = self.state.step(Input::Continue, self.now_ms, &*CONSTANTS)?;
            self.journal.append(&mut step.events);
        }
        Ok(self.journal[before..].to_vec())
    }

    /// Reports the result of a node's execution.
    #[track_caller]
    pub(crate) fn finish(&mut self, node: i64, result: Result<Value, NodeError>) -> Vec<Event> {
        let position = self.executing.iter().position(|execute| execute.key.node == node);
        let Some(position) = position else {
            panic!("node {node} is not being executed")
        };
        let Execute { key, attempt, .. } = self.executing.remove(position);
        self.input(Input::NodeFinished { key, attempt, result })
    }

    /// Jumps to the next timer and fires it.
    pub(crate) fn fire(&mut self) -> Vec<Event> {
        let next = self
            .timers
            .iter()
            .min_by_key(|(_, due)| **due)
            .map(|(key, due)| (key.clone(), *due));
        let Some((key, due_at_ms)) = next else {
            return Vec::new();
        };
        self.timers.remove(&key);
        self.now_ms = self.now_ms.max(due_at_ms);
        self.input(Input::TimerFired(key))
    }

    /// The next thing that reaches the run by the fixed rule: the lowest execution, else the next timer.
    pub(crate) fn next_input(&self) -> Option<(Input, i64)> {
        if self.finished.is_some() {
            return None;
        }
        if let Some(execute) = self.executing.iter().min_by_key(|execute| &execute.key) {
            let result = result_of(execute, &self.failures);
            let (key, attempt) = (execute.key.clone(), execute.attempt);
            return Some((Input::NodeFinished { key, attempt, result }, self.now_ms + 7));
        }
        let (key, due_at_ms) = self.timers.iter().min_by_key(|(key, due)| (**due, *key))?;
        Some((Input::TimerFired(key.clone()), (*due_at_ms).max(self.now_ms + 7)))
    }

    /// One step at an instant, surviving it or not.
    pub(crate) fn advance(&mut self, input: Input, now_ms: i64, crash: Crash) {
        if crash == Crash::Before {
            let lost = self.state.step(input, now_ms, &*CONSTANTS);
            assert!(lost.is_ok(), "{lost:?}");
            return self.recover();
        }
        self.now_ms = now_ms;
        match &input {
            Input::NodeFinished { key, .. } => self.executing.retain(|execute| execute.key != *key),
            Input::TimerFired(key) => {
                self.timers.remove(key);
            }
            _ => {}
        }
        let mut step = self.state.step(input, now_ms, &*CONSTANTS).unwrap_or_default();
        self.journal.append(&mut step.events);
        match crash {
            Crash::After => self.recover(),
            _ => {
                while self.carry_out(std::mem::take(&mut step.commands)) {
                    step = self
                        .state
                        .step(Input::Continue, now_ms, &*CONSTANTS)
                        .unwrap_or_default();
                    self.journal.append(&mut step.events);
                }
            }
        }
    }

    /// Runs to the end by the fixed rule, crashing as told.
    pub(crate) fn run(&mut self, mut crashes: impl Iterator<Item = Crash>) {
        for _ in 0..10_000 {
            let Some((input, now_ms)) = self.next_input() else {
                return;
            };
            self.advance(input, now_ms, crashes.next().unwrap_or(Crash::None));
        }
        panic!("the run does not end");
    }

    /// A new process: the state is rebuilt from the encoded journal and what is outstanding is asked for.
    pub(crate) fn recover(&mut self) {
        let stored = journal::encode(&self.journal);
        let payloads = stored.payloads.into_iter();
        let payloads = payloads.map(|payload| (payload.sha256, payload.json)).collect();
        let segment = Segment::parse(&stored.bytes);
        let Ok(events) = segment.and_then(|segment| segment.into_events(&payloads)) else {
            panic!("the journal cannot be read")
        };
        assert_eq!(events, self.journal);
        self.state = replay(&self.plan, &events);
        self.executing.clear();
        self.timers.clear();
        self.input(Input::Resume);
    }

    /// Carries commands out; says whether the run asked to be continued.
    fn carry_out(&mut self, commands: Vec<Command>) -> bool {
        let mut again = false;
        for command in commands {
            match command {
                Command::Execute(execute) => self.executing.push(execute),
                Command::SetTimer { key, due_at_ms } => {
                    self.timers.insert(key, due_at_ms);
                }
                Command::CancelTimer(key) => {
                    self.timers.remove(&key);
                }
                Command::CancelTimers => self.timers.clear(),
                Command::AbortExecution(key) => self.executing.retain(|execute| execute.key != key),
                Command::AbortExecutions => self.executing.clear(),
                Command::Finish { outcome, failure } => self.finished = Some((outcome, failure)),
                Command::Continue => again = true,
            }
        }
        again
    }
}

/// What comes of an execution: so many of the first attempts at a node fail.
pub(crate) fn result_of(execute: &Execute, failures: &HashMap<i64, u32>) -> Result<Value, NodeError> {
    let failing = failures.get(&execute.key.node).copied().unwrap_or(0);
    match execute.attempt <= failing {
        true => Err(NodeError::new("HTTP_ERROR", "no")),
        false => Ok(json!({ "from": execute.key.node, "attempt": execute.attempt })),
    }
}

/// Nodes, by iteration, that ended more than once.
pub(crate) fn ended_twice(events: &[Event]) -> Vec<NodeKey> {
    let ended = events.iter().filter_map(|event| match &event.body {
        EventBody::NodeCompleted { key, .. }
        | EventBody::NodeFailed { key, .. }
        | EventBody::NodeSkipped { key } => Some(key.clone()),
        _ => None,
    });
    let mut seen = HashSet::new();
    ended.filter(|key| !seen.insert(key.clone())).collect()
}

/// The fold of a journal.
#[track_caller]
pub(crate) fn replay(plan: &Arc<Plan>, events: &[Event]) -> RunState {
    let mut state = RunState::new(Arc::clone(plan));
    for event in events {
        assert_eq!(state.apply(event), Ok(()), "{event:?}");
    }
    state
}

/// Nothing is to be told apart but what the fold holds.
pub(crate) fn assert_same(left: &RunState, right: &RunState) {
    assert_eq!(left.frames, right.frames);
    assert_eq!(left.agenda, right.agenda);
    assert_eq!(left.order, right.order);
    assert_eq!(left.opened, right.opened);
    assert_eq!(left.finished, right.finished);
    assert_eq!(left.failing, right.failing);
    assert_eq!((left.running, left.waiting), (right.running, right.waiting));
    assert_eq!(
        (left.waited_ms, left.waiting_since_ms),
        (right.waited_ms, right.waiting_since_ms)
    );
    assert_eq!(left.credits_used, right.credits_used);
}

/// Commands and events of a step that nobody carries out.
#[track_caller]
pub(crate) fn bare_step(state: &mut RunState, input: Input, now_ms: i64) -> Step {
    match state.step(input, now_ms, &*CONSTANTS) {
        Ok(step) => step,
        Err(error) => panic!("{error}"),
    }
}
