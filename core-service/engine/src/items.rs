//! The fold of scopes: what a splitter opened, and its iterations.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::event::{ItemResult, NodeKey};
use crate::fold::FoldError;
use crate::footprint;
use crate::state::{Decision, Frame, Item, NodeStatus, Place, RunState};

/// A scope that a splitter opened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opened {
    /// The splitter.
    pub(crate) place: Place,
    /// A JSON array.
    pub(crate) items: Arc<Value>,
    /// Its iterations that began.
    pub(crate) frames: Vec<u32>,
    /// Iterations at work.
    pub(crate) running: u32,
    /// By item.
    pub(crate) results: Vec<Option<ItemResult>>,
}

impl Opened {
    /// The next item that has not begun.
    pub(crate) fn next(&self) -> Option<(u32, &Value)> {
        let index = self.frames.len();
        self.items.get(index).map(|item| (index as u32, item))
    }
}

impl RunState {
    pub(crate) fn fold_opened(&mut self, place: Place, items: &Arc<Value>) -> Result<(), FoldError> {
        let (Some(count), Some(_)) = (
            items.as_array().map(Vec::len),
            self.plan.node_at(place.node).opens,
        ) else {
            return Err(self.misplaced(place, "opening of a scope"));
        };
        let index = self.opened.len() as u32;
        self.opened.push(Opened {
            place,
            items: Arc::clone(items),
            frames: Vec::new(),
            running: 0,
            results: vec![None; count],
        });
        self.slot_mut(place).opened = Some(index);
        self.attention.push_back(index);
        Ok(())
    }

    /// Gives a place in the frame that began.
    pub(crate) fn fold_item_started(&mut self, key: &NodeKey, taken: &[u32]) -> Result<Place, FoldError> {
        let unknown = || FoldError::UnknownNode(key.node, key.iteration.to_string());
        let (outer_iteration, index) = key.iteration.split_last().ok_or_else(unknown)?;
        let splitter = self.known(&NodeKey {
            node: key.node,
            iteration: outer_iteration,
        })?;
        let plan = Arc::clone(&self.plan);
        let (Some(scope), Some(opened_at)) = (plan.node_at(splitter.node).opens, self.slot(splitter).opened)
        else {
            return Err(self.misplaced(splitter, "item"));
        };
        let opened = &mut self.opened[opened_at as usize];
        let Some((next, item)) = opened.next().filter(|(next, _)| *next == index) else {
            return Err(self.misplaced(splitter, "item"));
        };
        let output = Arc::new(plan.node_at(splitter.node).item_output(next, item));
        let frame_at = self.frames.len() as u32;
        opened.frames.push(frame_at);
        opened.running += 1;
        let item = Some(Item { index, output });
        let mut frame = Frame::new(&plan, scope, key.iteration.clone(), splitter.frame, item);
        for (slot, &node) in frame.slots.iter_mut().zip(&plan.scope_at(scope).nodes) {
            slot.undecided = plan.node_at(node).fan_in;
        }
        self.held_bytes += footprint::of_frame(&frame);
        self.frames.push(frame);
        self.frame_index.insert((scope, key.iteration.clone()), frame_at);
        // The splitter's own edges, decided for this item.
        let place = Place {
            frame: frame_at,
            node: splitter.node,
        };
        self.decide_outgoing(place, taken);
        Ok(place)
    }

    /// Gives the place of the splitter.
    pub(crate) fn fold_item_finished(
        &mut self,
        key: &NodeKey,
        result: &ItemResult,
    ) -> Result<Place, FoldError> {
        let unknown = || FoldError::UnknownNode(key.node, key.iteration.to_string());
        let scope = self
            .plan
            .node(key.node)
            .and_then(|node| node.opens)
            .ok_or_else(unknown)?;
        let frame = self.frame_of(scope, &key.iteration).ok_or_else(unknown)?;
        let (outer_iteration, index) = key.iteration.split_last().ok_or_else(unknown)?;
        let splitter = self.known(&NodeKey {
            node: key.node,
            iteration: outer_iteration,
        })?;
        let opened_at = self.slot(splitter).opened.ok_or_else(unknown)?;
        if std::mem::replace(&mut self.frame_mut(frame).done, true) {
            return Err(self.misplaced(splitter, "end of an item"));
        }
        self.clear_frame(frame);
        let opened = &mut self.opened[opened_at as usize];
        opened.running = opened.running.saturating_sub(1);
        if let Some(slot) = opened.results.get_mut(index as usize) {
            *slot = Some(result.clone());
        }
        self.attention.push_back(opened_at);
        Ok(splitter)
    }

    /// A splitter ended: its region as a whole is decided for the aggregator.
    pub(crate) fn close_region(&mut self, place: Place, delivered: bool) {
        let closer = self
            .plan
            .node_at(place.node)
            .opens
            .and_then(|scope| self.plan.scope_at(scope).closer);
        let Some(closer) = closer.filter(|_| self.finished.is_none()) else {
            return;
        };
        self.slot_mut(place).closing = if delivered {
            Decision::Delivered
        } else {
            Decision::Dead
        };
        self.decide_one(
            Place {
                node: closer,
                ..place
            },
            delivered,
        );
    }

    /// Notes an iteration in which nothing is left to do.
    pub(crate) fn note_exhausted(&mut self, frame: u32) {
        let at = self.frame(frame);
        if frame != 0 && at.live == 0 && !at.done && !self.exhausted.contains(&frame) {
            self.exhausted.push_back(frame);
        }
    }

    /// What an aggregator says: the results of its splitter's items.
    pub(crate) fn aggregated(&self, place: Place) -> Value {
        let opener = self
            .plan
            .node_at(place.node)
            .closes
            .and_then(|scope| self.plan.scope_at(scope).opener);
        let opened_at = opener.and_then(|node| self.slot(Place { node, ..place }).opened);
        let results = opened_at
            .map(|at| self.opened[at as usize].results.as_slice())
            .unwrap_or_default();
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        for (index, result) in results.iter().enumerate() {
            match result {
                Some(ItemResult::Output(output)) => items.push(Value::clone(output)),
                Some(ItemResult::Failed { node, failure }) => errors.push(json!({
                    "index": index, "nodeId": node, "code": failure.code, "message": failure.message
                })),
                Some(ItemResult::Nothing) | None => {}
            }
        }
        let count = items.len();
        json!({ "items": items, "count": count, "errors": errors })
    }

    /// The frames that a splitter opened, and those opened inside them.
    pub(crate) fn frames_below(&self, splitter: Place, found: &mut Vec<u32>) {
        let Some(opened_at) = self.slot(splitter).opened else {
            return;
        };
        for &frame in &self.opened[opened_at as usize].frames {
            self.frames_from(frame, found);
        }
    }

    /// A frame and those opened inside it.
    pub(crate) fn frames_from(&self, frame: u32, found: &mut Vec<u32>) {
        found.push(frame);
        let nodes = &self.plan.scope_at(self.frame(frame).scope).nodes;
        for &node in nodes
            .iter()
            .filter(|node| self.plan.node_at(**node).opens.is_some())
        {
            self.frames_below(Place { frame, node }, found);
        }
    }

    /// Whether any node of an iteration, or of one inside it, is in flight.
    pub(crate) fn in_flight_from(&self, frame: u32) -> Vec<Place> {
        let mut frames = Vec::new();
        self.frames_from(frame, &mut frames);
        let mut found = Vec::new();
        for frame in frames {
            let places = self.plan.scope_at(self.frame(frame).scope).nodes.iter();
            let places = places.map(|&node| Place { frame, node });
            found.extend(places.filter(|place| self.slot(*place).status.is_in_flight()));
        }
        found
    }

    /// Takes what was ready in an iteration off the agenda: it ended before its turn came.
    fn clear_frame(&mut self, frame: u32) {
        if self.frame(frame).live == 0 {
            return;
        }
        let mut frames = Vec::new();
        self.frames_from(frame, &mut frames);
        self.agenda.retain(|place| !frames.contains(&place.frame));
        for frame in frames {
            let frame = self.frame_mut(frame);
            frame.done = true;
            frame.live = 0;
            frame.slots.iter_mut().for_each(|slot| slot.ready = false);
        }
    }

    /// Forgets iterations, as a splitter that begins anew does.
    pub(crate) fn drop_frames(&mut self, frames: &[u32]) {
        let dropped: HashSet<u32> = frames.iter().copied().collect();
        self.frame_index.retain(|_, frame| !dropped.contains(frame));
        self.order.retain(|place| !dropped.contains(&place.frame));
        self.agenda.retain(|place| !dropped.contains(&place.frame));
        for &frame in &dropped {
            for place in self.in_flight_from(frame) {
                self.set_status(place, NodeStatus::Cancelled);
            }
            let frame = self.frame_mut(frame);
            (frame.done, frame.live) = (true, 0);
        }
    }
}
