//! The fold of a resumption: a failed run goes on from a node.
//!
//! What runs once for each item is resumed with its splitter: a scope begins anew as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use crate::fold::FoldError;
use crate::state::{Decision, NodeStatus, Place, RunState, Slot};

impl RunState {
    /// The node, all below it and all that was cancelled are as they were before they began.
    pub(crate) fn fold_resumed(&mut self, id: i64, at_ms: i64) -> Result<(), FoldError> {
        let node = self
            .plan
            .index_of(id)
            .ok_or_else(|| FoldError::UnknownNode(id, String::new()))?;
        let finished = self.finished.take().ok_or(FoldError::WrongState("resumption"))?;
        // The time between is nobody's.
        self.waited_ms = self
            .waited_ms
            .saturating_add(u64::try_from(at_ms.saturating_sub(finished.at_ms)).unwrap_or(0));
        self.failing = None;
        let plan = Arc::clone(&self.plan);
        let node = plan.outermost(node);
        let again: HashSet<u32> = (plan.scope_at(0).nodes.iter().copied())
            .filter(|&index| {
                let cancelled = self
                    .slot(Place {
                        frame: 0,
                        node: index,
                    })
                    .status
                    == NodeStatus::Cancelled;
                index == node || plan.is_above(node, index) || cancelled
            })
            .collect();
        let mut dropped = Vec::new();
        for &index in &again {
            self.frames_below(
                Place {
                    frame: 0,
                    node: index,
                },
                &mut dropped,
            );
        }
        self.drop_frames(&dropped);
        let kept = |place: &Place| place.frame != 0 || !again.contains(&place.node);
        self.order.retain(kept);
        self.agenda.retain(kept);
        for &index in &again {
            self.reset(index);
        }
        for index in plan
            .scope_at(0)
            .nodes
            .iter()
            .copied()
            .filter(|index| again.contains(index))
        {
            self.settle(Place {
                frame: 0,
                node: index,
            });
        }
        Ok(())
    }

    fn reset(&mut self, index: u32) {
        let plan = Arc::clone(&self.plan);
        let place = Place {
            frame: 0,
            node: index,
        };
        for &edge in &plan.node_at(index).outgoing {
            let edge = plan.edge_at(edge);
            if edge.scope == 0 {
                let decision = std::mem::take(&mut self.frames[0].edges[edge.local as usize]);
                self.reopen(
                    Place {
                        frame: 0,
                        node: edge.to,
                    },
                    decision,
                );
            }
        }
        if let Some(closer) = plan
            .node_at(index)
            .opens
            .and_then(|scope| plan.scope_at(scope).closer)
        {
            let decision = self.slot(place).closing;
            self.reopen(
                Place {
                    frame: 0,
                    node: closer,
                },
                decision,
            );
        }
        self.set_status(place, NodeStatus::Pending);
        let slot = self.slot_mut(place);
        let was_ready = slot.ready;
        *slot = Slot {
            is_start: slot.is_start,
            undecided: slot.undecided,
            delivered: slot.delivered,
            ..Slot::default()
        };
        let live = &mut self.frames[0].live;
        *live = live.saturating_sub(u32::from(was_ready));
    }

    /// A decision that a node had is open again.
    fn reopen(&mut self, target: Place, decision: Decision) {
        if decision != Decision::Undecided {
            let slot = self.slot_mut(target);
            slot.undecided += 1;
            slot.delivered = slot
                .delivered
                .saturating_sub(u32::from(decision == Decision::Delivered));
        }
    }
}
