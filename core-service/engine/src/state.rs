//! The state of a run: the fold of its events over its plan.
//!
//! Each scope at work is a frame with a slot for each node and a decision for each edge; the run's own scope is the
//! first frame. The fold itself is in [`crate::fold`]; what to do next is decided in [`crate::step`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::event::{Failure, LogLine, NodeKey, Outcome};
use crate::items::Opened;
use crate::iteration::Iteration;
use crate::plan::Plan;

/// A run, as far as its events tell.
#[derive(Clone)]
pub struct RunState {
    pub(crate) plan: Arc<Plan>,
    pub(crate) frames: Vec<Frame>,
    /// Nodes whose edges are decided and that were not begun, first come first served.
    pub(crate) agenda: VecDeque<Place>,
    /// Places in order of start.
    pub(crate) order: Vec<Place>,
    pub(crate) run_attempt: u32,
    pub(crate) input: Arc<Value>,
    pub(crate) started_at_ms: Option<i64>,
    pub(crate) timeout_ms: Option<u64>,
    /// What splitters opened.
    pub(crate) opened: Vec<Opened>,
    /// Opened scopes that may begin or end something.
    pub(crate) attention: VecDeque<u32>,
    /// Frames in which nothing is left to do.
    pub(crate) exhausted: VecDeque<u32>,
    /// Frames but the first, by scope and iteration.
    pub(crate) frame_index: HashMap<(u32, Iteration), u32>,
    /// Nodes being executed outside the engine.
    pub(crate) running: u32,
    /// Nodes waiting for a timer or an answer.
    pub(crate) waiting: u32,
    pub(crate) waiting_since_ms: Option<i64>,
    pub(crate) waited_ms: u64,
    /// The first unhandled failure.
    pub(crate) failing: Option<Failure>,
    pub(crate) finished: Option<Finished>,
    pub(crate) credits_used: u64,
    /// What the run holds in memory, in bytes, and what of it is console output. See [`crate::footprint`].
    pub(crate) held_bytes: usize,
    pub(crate) logged_bytes: usize,
    /// The instant the run's own timer is set for; not part of the fold.
    pub(crate) armed_deadline_ms: Option<i64>,
}

/// How and when a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Epoch milliseconds.
    pub at_ms: i64,
}

/// A scope at work: the run's own, or one iteration of a splitter's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) iteration: Iteration,
    /// The scope of the plan whose nodes and edges it holds.
    pub(crate) scope: u32,
    /// The frame around it.
    pub(crate) outer: u32,
    /// What the iteration is for; absent in the run's own scope.
    pub(crate) item: Option<Item>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) edges: Vec<Decision>,
    /// Nodes that are ready or in flight.
    pub(crate) live: u32,
    /// Nothing more happens here.
    pub(crate) done: bool,
}

/// What an iteration is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) index: u32,
    /// The splitter's output for it: an object with `item` and `index`.
    pub(crate) output: Arc<Value>,
}

/// A node in a frame, by indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: u32,
    pub(crate) node: u32,
}

/// What is known of a node in one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    pub(crate) status: NodeStatus,
    /// On the agenda.
    pub(crate) ready: bool,
    /// The run started here, whatever its edges say.
    pub(crate) is_start: bool,
    /// Incoming edges not decided yet.
    pub(crate) undecided: u32,
    /// Incoming edges that delivered.
    pub(crate) delivered: u32,
    /// Attempts begun.
    pub(crate) attempt: u32,
    pub(crate) credits: u32,
    pub(crate) started_at_ms: Option<i64>,
    /// When the current attempt began.
    pub(crate) began_at_ms: Option<i64>,
    pub(crate) finished_at_ms: Option<i64>,
    pub(crate) due_at_ms: Option<i64>,
    pub(crate) output: Option<Arc<Value>>,
    pub(crate) failure: Option<Failure>,
    /// What its last attempt wrote.
    pub(crate) log: Option<Arc<[LogLine]>>,
    /// What a splitter opened, in [`RunState::opened`].
    pub(crate) opened: Option<u32>,
    /// Whether the region of a splitter delivered to its aggregator.
    pub(crate) closing: Decision,
}

/// Whether an edge was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decision {
    #[default]
    Undecided,
    Delivered,
    Dead,
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// Not started.
    Queued,
    /// Something is being done or about to be.
    Running,
    /// Nothing can be done before a timer fires or somebody answers.
    Waiting,
    /// Ended well.
    Succeeded,
    /// Ended with a failure.
    Failed,
    /// Ended by somebody.
    Cancelled,
}

impl RunStatus {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the run is over.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The status of a node in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodeStatus {
    /// Not reached, or about to be.
    #[default]
    Pending,
    /// Being executed.
    Running,
    /// Failed and due to be tried again.
    Retrying,
    /// Waits for an instant or an answer.
    Waiting,
    /// Done.
    Completed,
    /// Failed for good.
    Failed,
    /// Every edge into it is dead.
    Skipped,
    /// Given up in flight.
    Cancelled,
}

impl NodeStatus {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the node is neither idle nor done.
    pub(crate) fn is_in_flight(self) -> bool {
        matches!(self, Self::Running | Self::Retrying | Self::Waiting)
    }

    /// Whether only time or a person brings the node on.
    pub(crate) fn is_waiting(self) -> bool {
        matches!(self, Self::Retrying | Self::Waiting)
    }
}

impl RunState {
    /// A run that has not started.
    pub fn new(plan: Arc<Plan>) -> Self {
        let frame = Frame::new(&plan, 0, Iteration::ROOT, 0, None);
        Self {
            plan,
            frames: vec![frame],
            agenda: VecDeque::new(),
            order: Vec::new(),
            opened: Vec::new(),
            attention: VecDeque::new(),
            exhausted: VecDeque::new(),
            frame_index: HashMap::new(),
            run_attempt: 1,
            input: Arc::new(Value::Object(serde_json::Map::new())),
            started_at_ms: None,
            timeout_ms: None,
            running: 0,
            waiting: 0,
            waiting_since_ms: None,
            waited_ms: 0,
            failing: None,
            finished: None,
            credits_used: 0,
            held_bytes: 0,
            logged_bytes: 0,
            armed_deadline_ms: None,
        }
    }

    /// The plan the run follows.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The status of the run.
    pub fn status(&self) -> RunStatus {
        match &self.finished {
            Some(finished) => match finished.outcome {
                Outcome::Succeeded => RunStatus::Succeeded,
                Outcome::Failed => RunStatus::Failed,
                Outcome::Cancelled => RunStatus::Cancelled,
            },
            None if self.started_at_ms.is_none() => RunStatus::Queued,
            None if self.agenda.is_empty() && self.running == 0 && self.waiting > 0 => RunStatus::Waiting,
            None => RunStatus::Running,
        }
    }

    /// How and when the run ended.
    pub fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref()
    }

    /// The run's attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.run_attempt
    }

    /// What this attempt has cost so far.
    pub fn credits_used(&self) -> u64 {
        self.credits_used
    }

    /// The instant the run is to be failed as `RUN_TIMEOUT`, while it does not wait. Epoch milliseconds.
    pub fn deadline_ms(&self) -> Option<i64> {
        if self.finished.is_some() || self.waiting_since_ms.is_some() {
            return None;
        }
        let allowed = self.timeout_ms?.saturating_add(self.waited_ms);
        Some(self.started_at_ms?.saturating_add_unsigned(allowed))
    }

    pub(crate) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    pub(crate) fn frame_mut(&mut self, index: u32) -> &mut Frame {
        &mut self.frames[index as usize]
    }

    pub(crate) fn slot(&self, place: Place) -> &Slot {
        let local = self.plan.node_at(place.node).local;
        &self.frames[place.frame as usize].slots[local as usize]
    }

    pub(crate) fn slot_mut(&mut self, place: Place) -> &mut Slot {
        let local = self.plan.node_at(place.node).local;
        &mut self.frames[place.frame as usize].slots[local as usize]
    }

    pub(crate) fn key(&self, place: Place) -> NodeKey {
        NodeKey {
            node: self.plan.node_at(place.node).id,
            iteration: self.frame(place.frame).iteration.clone(),
        }
    }

    /// The place a key names, if the run has it.
    pub(crate) fn place(&self, key: &NodeKey) -> Option<Place> {
        let node = self.plan.index_of(key.node)?;
        let frame = self.frame_of(self.plan.node_at(node).scope, &key.iteration)?;
        Some(Place { frame, node })
    }

    /// The frame of an iteration of a scope.
    pub(crate) fn frame_of(&self, scope: u32, iteration: &Iteration) -> Option<u32> {
        match (scope, iteration.is_root()) {
            (0, true) => Some(0),
            (0, false) | (_, true) => None,
            _ => self.frame_index.get(&(scope, iteration.clone())).copied(),
        }
    }
}

impl Frame {
    pub(crate) fn new(plan: &Plan, scope: u32, iteration: Iteration, outer: u32, item: Option<Item>) -> Self {
        let members = plan.scope_at(scope);
        Self {
            iteration,
            scope,
            outer,
            item,
            slots: vec![Slot::default(); members.nodes.len()],
            edges: vec![Decision::default(); members.edges.len()],
            live: 0,
            done: false,
        }
    }
}
