//! The fold: how each event changes the state of a run. It reads what was decided and decides nothing itself, so
//! that replaying a journal gives the state that the live run had.
//!
//! Total: an event that does not fit the run is an error, never a panic.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::Join;
use crate::event::{Event, EventBody, Failure, NodeKey, RunStarted};
use crate::footprint;
use crate::graph::EdgeType;
use crate::state::{Decision, Finished, NodeStatus, Place, RunState};

/// An event does not fit the run it was applied to: the journal belongs to another plan or is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The plan has no such node, or the run no such iteration.
    #[error("the journal names node {0} in iteration \"{1}\", which the run does not have")]
    UnknownNode(i64, String),
    /// The node cannot be in the status the event supposes.
    #[error("the journal's {event} does not fit node {node}, which is {status}")]
    Misplaced {
        /// What happened.
        event: &'static str,
        /// To which node.
        node: i64,
        /// Its status.
        status: &'static str,
    },
    /// The run was started already, or was not.
    #[error("the journal's {0} does not fit the state of the run")]
    WrongState(&'static str),
}

impl RunState {
    /// Applies one event.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        if let Some(place) = self.apply_body(event)? {
            self.note_exhausted(place.frame);
        }
        self.account_waiting(event.at_ms);
        Ok(())
    }

    /// Gives the place that changed.
    fn apply_body(&mut self, event: &Event) -> Result<Option<Place>, FoldError> {
        let at_ms = event.at_ms;
        if self.started_at_ms.is_none() != matches!(event.body, EventBody::RunStarted(_)) {
            return Err(FoldError::WrongState("start"));
        }
        self.held_bytes += footprint::of_event(&event.body);
        let place = match &event.body {
            EventBody::RunStarted(started) => return self.fold_started(at_ms, started).map(|()| None),
            EventBody::RunResumed { node } => return self.fold_resumed(*node, at_ms).map(|()| None),
            EventBody::RunFinished { outcome, failure } => {
                if self.finished.is_some() {
                    return Err(FoldError::WrongState("end"));
                }
                self.finished = Some(Finished {
                    outcome: *outcome,
                    failure: failure.clone(),
                    at_ms,
                });
                return Ok(None);
            }
            EventBody::NodeStarted { key } => {
                let place = self.begin(key, at_ms, "start")?;
                self.set_status(place, NodeStatus::Running);
                place
            }
            EventBody::NodeWaiting { key, due_at_ms } => {
                let place = self.begin_or_continue(key, at_ms, "wait")?;
                self.set_status(place, NodeStatus::Waiting);
                self.slot_mut(place).due_at_ms = *due_at_ms;
                place
            }
            EventBody::NodeCompleted { key, output, taken } => {
                let place = self.end(key, at_ms, NodeStatus::Completed, "completion")?;
                self.slot_mut(place).output = Some(Arc::clone(output));
                self.decide_outgoing(place, taken);
                self.close_region(place, true);
                place
            }
            EventBody::NodeFailed {
                key,
                failure,
                taken,
                handled,
            } => {
                let place = self.end(key, at_ms, NodeStatus::Failed, "failure")?;
                self.fold_failed(place, failure, taken, *handled);
                place
            }
            EventBody::NodeRetrying {
                key,
                failure,
                due_at_ms,
            } => {
                let place = self.begin_or_continue(key, at_ms, "retry")?;
                self.charge(place);
                self.set_status(place, NodeStatus::Retrying);
                let slot = self.slot_mut(place);
                slot.failure = Some(failure.clone());
                slot.due_at_ms = Some(*due_at_ms);
                place
            }
            EventBody::NodeSkipped { key } => {
                let place = self.ready_place(key, "skip")?;
                self.leave_agenda(place);
                self.order.push(place);
                self.set_status(place, NodeStatus::Skipped);
                self.decide_outgoing(place, &[]);
                self.close_region(place, false);
                place
            }
            EventBody::NodeCancelled { key } => {
                let place = self.known(key)?;
                if !self.slot(place).status.is_in_flight() {
                    return Err(self.misplaced(place, "cancellation"));
                }
                self.set_status(place, NodeStatus::Cancelled);
                self.slot_mut(place).finished_at_ms = Some(at_ms);
                place
            }
            EventBody::NodeLogged { key, lines } => {
                let place = self.known(key)?;
                self.logged_bytes += footprint::of_lines(lines);
                self.slot_mut(place).log = Some(Arc::clone(lines));
                place
            }
            EventBody::ItemsOpened { key, items } => {
                let place = self.begin_or_continue(key, at_ms, "opening of a scope")?;
                if self.slot(place).opened.is_some() {
                    return Err(self.misplaced(place, "opening of a scope"));
                }
                // If it was executed, that is over: from here on its items are at work.
                self.set_status(place, NodeStatus::Pending);
                self.fold_opened(place, items)?;
                self.set_status(place, NodeStatus::Running);
                place
            }
            EventBody::ItemStarted { key, taken } => self.fold_item_started(key, taken)?,
            EventBody::ItemFinished { key, result } => self.fold_item_finished(key, result)?,
        };
        Ok(Some(place))
    }

    fn fold_started(&mut self, at_ms: i64, started: &RunStarted) -> Result<(), FoldError> {
        let find = |id: &i64| {
            self.plan
                .index_of(*id)
                .ok_or_else(|| FoldError::UnknownNode(*id, String::new()))
        };
        let starts: Vec<u32> = started.start_nodes.iter().map(find).collect::<Result<_, _>>()?;
        let mut seeds = Vec::with_capacity(started.seeds.len());
        for (id, output) in &started.seeds {
            seeds.push((find(id)?, Arc::clone(output)));
        }
        if starts.iter().any(|&node| self.plan.node_at(node).scope != 0) {
            return Err(FoldError::WrongState("start inside a scope"));
        }
        self.started_at_ms = Some(at_ms);
        self.run_attempt = started.attempt;
        self.input = Arc::clone(&started.input);
        self.timeout_ms = started.timeout_ms;
        // What runs once for each item has no output of its own to be given.
        seeds.retain(|(node, _)| self.plan.node_at(*node).scope == 0);
        for (node, output) in seeds {
            self.slot_mut(Place { frame: 0, node }).output = Some(output);
        }
        self.open_edges(&starts);
        for node in starts {
            let place = Place { frame: 0, node };
            self.slot_mut(place).is_start = true;
            self.put_on_agenda(place);
        }
        Ok(())
    }

    /// Decides the edges that lead in from nodes this run does not reach: a seeded node's deliver, others are dead.
    fn open_edges(&mut self, starts: &[u32]) {
        let plan = Arc::clone(&self.plan);
        let reached = |node: u32| {
            starts
                .iter()
                .any(|&start| start == node || plan.is_above(start, node))
        };
        for &index in &plan.scope_at(0).edges {
            let edge = plan.edge_at(index);
            let target = Place {
                frame: 0,
                node: edge.to,
            };
            if reached(edge.from) {
                self.slot_mut(target).undecided += 1;
                continue;
            }
            let source = Place {
                frame: 0,
                node: edge.from,
            };
            let seeded = self.slot(source).output.is_some() && edge.edge_type == EdgeType::Normal;
            let decision = if seeded {
                Decision::Delivered
            } else {
                Decision::Dead
            };
            self.frames[0].edges[edge.local as usize] = decision;
            self.slot_mut(target).delivered += u32::from(seeded);
        }
        for scope in plan.scopes().iter().filter(|scope| scope.outer == 0) {
            if let (Some(opener), Some(closer)) = (scope.opener, scope.closer) {
                self.slot_mut(Place {
                    frame: 0,
                    node: closer,
                })
                .undecided += u32::from(reached(opener));
            }
        }
    }

    fn fold_failed(&mut self, place: Place, failure: &Failure, taken: &[u32], handled: bool) {
        let slot = self.slot_mut(place);
        slot.failure = Some(failure.clone());
        if handled {
            slot.output = Some(Arc::new(json!({ "error": error_value(failure) })));
            self.decide_outgoing(place, taken);
            self.close_region(place, taken.is_empty());
        } else if self.failing.is_none() {
            self.failing = Some(failure.clone());
        }
    }

    /// Leaves the agenda for an attempt.
    fn begin(&mut self, key: &NodeKey, at_ms: i64, event: &'static str) -> Result<Place, FoldError> {
        let place = self.ready_place(key, event)?;
        self.leave_agenda(place);
        let slot = self.slot_mut(place);
        slot.attempt += 1;
        slot.due_at_ms = None;
        slot.log = None;
        slot.began_at_ms = Some(at_ms);
        if slot.started_at_ms.is_none() {
            slot.started_at_ms = Some(at_ms);
            self.order.push(place);
        }
        Ok(place)
    }

    /// A node in flight, or one that begins and ends at the same instant.
    fn begin_or_continue(
        &mut self,
        key: &NodeKey,
        at_ms: i64,
        event: &'static str,
    ) -> Result<Place, FoldError> {
        let place = self.known(key)?;
        let slot = self.slot(place);
        match slot.status {
            NodeStatus::Running | NodeStatus::Waiting => Ok(place),
            // What ends after the run did is recorded.
            NodeStatus::Cancelled if self.finished.is_some() => Ok(place),
            _ => self.begin(key, at_ms, event),
        }
    }

    fn end(
        &mut self,
        key: &NodeKey,
        at_ms: i64,
        status: NodeStatus,
        event: &'static str,
    ) -> Result<Place, FoldError> {
        let place = self.begin_or_continue(key, at_ms, event)?;
        self.charge(place);
        self.set_status(place, status);
        let slot = self.slot_mut(place);
        slot.finished_at_ms = Some(at_ms);
        slot.due_at_ms = None;
        slot.failure = None;
        Ok(place)
    }

    /// A node costs once, however often it is tried.
    fn charge(&mut self, place: Place) {
        let node = self.plan.node_at(place.node);
        let credits = if node.disabled { 0 } else { node.credits };
        let slot = self.slot_mut(place);
        let owed = credits.saturating_sub(slot.credits);
        slot.credits += owed;
        self.credits_used += u64::from(owed);
    }

    pub(crate) fn decide_outgoing(&mut self, place: Place, taken: &[u32]) {
        if self.finished.is_some() {
            return;
        }
        let plan = Arc::clone(&self.plan);
        let scope = self.frame(place.frame).scope;
        for (position, &edge) in plan.node_at(place.node).outgoing.iter().enumerate() {
            let edge = plan.edge_at(edge);
            let decision = &mut self.frames[place.frame as usize].edges;
            if edge.scope != scope || decision[edge.local as usize] != Decision::Undecided {
                continue;
            }
            let delivered = taken.iter().any(|&at| at as usize == position);
            decision[edge.local as usize] = if delivered {
                Decision::Delivered
            } else {
                Decision::Dead
            };
            // An aggregator is outside: it waits for the region as a whole.
            if plan.node_at(edge.to).scope == scope {
                self.decide_one(
                    Place {
                        node: edge.to,
                        ..place
                    },
                    delivered,
                );
            }
        }
    }

    /// One of the decisions a node waits for.
    pub(crate) fn decide_one(&mut self, target: Place, delivered: bool) {
        let slot = self.slot_mut(target);
        slot.undecided = slot.undecided.saturating_sub(1);
        slot.delivered += u32::from(delivered);
        self.settle(target);
    }

    /// The one rule for joins: puts a node on the agenda once its edges say that it runs or is skipped.
    pub(crate) fn settle(&mut self, place: Place) {
        let join = self.plan.node_at(place.node).join;
        let slot = self.slot(place);
        let decided = slot.undecided == 0 || (join == Join::Any && slot.delivered > 0);
        let reached = slot.is_start || slot.delivered > 0 || slot.undecided == 0;
        if slot.status == NodeStatus::Pending && !slot.ready && reached && (decided || slot.is_start) {
            self.put_on_agenda(place);
        }
    }

    pub(crate) fn put_on_agenda(&mut self, place: Place) {
        let slot = self.slot_mut(place);
        if slot.ready {
            return;
        }
        slot.ready = true;
        let joins = !slot.status.is_in_flight();
        self.frame_mut(place.frame).live += u32::from(joins);
        self.agenda.push_back(place);
    }

    /// Takes a node off the agenda; it stays counted as live until its status says otherwise.
    fn leave_agenda(&mut self, place: Place) {
        let slot = self.slot_mut(place);
        let was_ready = std::mem::take(&mut slot.ready);
        let leaves = was_ready && !slot.status.is_in_flight();
        let frame = self.frame_mut(place.frame);
        frame.live = frame.live.saturating_sub(u32::from(leaves));
        if self.agenda.front() == Some(&place) {
            self.agenda.pop_front();
        } else {
            self.agenda.retain(|other| *other != place);
        }
    }

    pub(crate) fn set_status(&mut self, place: Place, status: NodeStatus) {
        // An open scope is not at work itself: what is inside it is.
        let works = self.slot(place).opened.is_none();
        let before = std::mem::replace(&mut self.slot_mut(place).status, status);
        self.running -= u32::from(works && before == NodeStatus::Running);
        self.waiting -= u32::from(before.is_waiting());
        self.running += u32::from(works && status == NodeStatus::Running);
        self.waiting += u32::from(status.is_waiting());
        let frame = self.frame_mut(place.frame);
        frame.live = frame.live.saturating_sub(u32::from(before.is_in_flight()));
        frame.live += u32::from(status.is_in_flight());
    }

    /// Time in which only timers and people could bring the run on does not count against its time-out.
    fn account_waiting(&mut self, at_ms: i64) {
        let waits =
            self.finished.is_none() && self.agenda.is_empty() && self.running == 0 && self.waiting > 0;
        match (waits, self.waiting_since_ms) {
            (true, None) => self.waiting_since_ms = Some(at_ms),
            (false, Some(since)) => {
                self.waited_ms = self
                    .waited_ms
                    .saturating_add(u64::try_from(at_ms.saturating_sub(since)).unwrap_or(0));
                self.waiting_since_ms = None;
            }
            _ => {}
        }
    }

    pub(crate) fn known(&self, key: &NodeKey) -> Result<Place, FoldError> {
        self.place(key)
            .ok_or_else(|| FoldError::UnknownNode(key.node, key.iteration.to_string()))
    }

    /// A node on the agenda, or due for its next attempt: the timer's firing itself is no event.
    fn ready_place(&self, key: &NodeKey, event: &'static str) -> Result<Place, FoldError> {
        let place = self.known(key)?;
        let slot = self.slot(place);
        match slot.ready || slot.status == NodeStatus::Retrying {
            true => Ok(place),
            false => Err(self.misplaced(place, event)),
        }
    }

    pub(crate) fn misplaced(&self, place: Place, event: &'static str) -> FoldError {
        let status = self.slot(place).status.as_str();
        FoldError::Misplaced {
            event,
            node: self.plan.node_at(place.node).id,
            status,
        }
    }
}

/// What expressions see as `error`.
pub(crate) fn error_value(failure: &Failure) -> Value {
    json!({ "code": failure.code, "message": failure.message })
}
