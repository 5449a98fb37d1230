//! Scopes at work: opening them, beginning and ending their items, and what the aggregator makes of them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Driver, Retries};
use crate::event::{EventBody, Failure, ItemResult, NodeKey};
use crate::failure::NodeError;
use crate::kind::{Behaviour, ConditionMode};
use crate::kinds::MAX_ITEMS;
use crate::routing::Router;
use crate::scope::ItemScope;
use crate::state::{Decision, NodeStatus, Place};
use crate::step::Command;
use crate::timer::TimerKey;

impl Driver<'_> {
    /// A module gave what its region runs for, once for each.
    pub(super) fn emit(&mut self, place: Place, output: Value) {
        let items = match output {
            Value::Array(items) => items,
            one => vec![one],
        };
        if self.state.finished.is_some() {
            let output = Arc::new(json!({ "count": items.len() }));
            return self.record_completed(place, output, Vec::new());
        }
        match items.len() {
            0..=MAX_ITEMS => self.open_items(place, items),
            count => {
                let message = format!("the module gives {count} items; at most {MAX_ITEMS} are possible");
                self.attempt_failed(place, NodeError::expression(message), Retries::Never);
            }
        }
    }

    pub(super) fn open_items(&mut self, place: Place, items: Vec<Value>) {
        let mut items = Value::Array(items);
        self.environment.mask(&mut items);
        let key = self.state.key(place);
        self.record(EventBody::ItemsOpened {
            key,
            items: Arc::new(items),
        });
    }

    /// Begins the next item of a scope, or ends the scope, or has nothing to do with it for now.
    pub(super) fn tend(&mut self, opened_at: u32) {
        let plan = Arc::clone(&self.state.plan);
        let opened = &self.state.opened[opened_at as usize];
        let splitter = opened.place;
        let concurrency = plan.node_at(splitter.node).concurrency();
        let at_work = self.state.slot(splitter).opened == Some(opened_at)
            && self.state.slot(splitter).status == NodeStatus::Running
            && !self.state.frame(splitter.frame).done;
        if at_work && opened.next().is_some() && opened.running < concurrency {
            return self.start_item(opened_at);
        }
        let ended = at_work && opened.running == 0 && opened.next().is_none();
        let count = opened.results.len();
        self.state.attention.pop_front();
        if ended {
            let output = Arc::new(json!({ "count": count }));
            self.record_completed(splitter, output, Vec::new());
        }
    }

    fn start_item(&mut self, opened_at: u32) {
        let plan = Arc::clone(&self.state.plan);
        let opened = &self.state.opened[opened_at as usize];
        let splitter = opened.place;
        let Some((index, item)) = opened.next() else {
            return;
        };
        let key = self.item_key(splitter, index);
        let output = plan.node_at(splitter.node).item_output(index, item);
        let view = self.view(splitter).with_own(&output);
        let scope = ItemScope::new(&view, item, index as usize);
        let routed = Router::new(&plan, plan.node_at(splitter.node)).completed(&scope, ConditionMode::All);
        match routed {
            Ok(taken) => self.record(EventBody::ItemStarted { key, taken }),
            Err(error) => {
                let result = self.failed_item(splitter.node, NodeError::from(error));
                self.record(EventBody::ItemStarted {
                    key: key.clone(),
                    taken: Vec::new(),
                });
                self.record(EventBody::ItemFinished { key, result });
            }
        }
    }

    /// Nothing is left to do in an iteration: what is collected of it.
    pub(super) fn finish_item(&mut self, frame: u32) {
        let at = self.state.frame(frame);
        if at.done || at.live > 0 {
            return;
        }
        let plan = Arc::clone(&self.state.plan);
        let scope = plan.scope_at(at.scope);
        let Some(opener) = scope.opener else { return };
        let into_closer = |&&edge: &&u32| {
            let edge = plan.edge_at(edge);
            Some(edge.to) == scope.closer && at.edges[edge.local as usize] == Decision::Delivered
        };
        let delivered = scope.edges.iter().any(|edge| into_closer(&edge));
        let result = match (scope.closer, delivered) {
            (Some(closer), true) => self.collect(Place { frame, node: closer }),
            _ => ItemResult::Nothing,
        };
        let key = NodeKey {
            node: plan.node_at(opener).id,
            iteration: self.state.frame(frame).iteration.clone(),
        };
        self.record(EventBody::ItemFinished { key, result });
    }

    /// What the aggregator keeps of an iteration, seen from inside it.
    fn collect(&self, seen_from: Place) -> ItemResult {
        let Behaviour::Aggregator(aggregator) = &self.state.plan.node_at(seen_from.node).behaviour else {
            return ItemResult::Nothing;
        };
        match aggregator.collect(&self.view_from(seen_from)) {
            Ok(mut output) => {
                self.environment.mask(&mut output);
                ItemResult::Output(Arc::new(output))
            }
            Err(error) => self.failed_item(seen_from.node, error),
        }
    }

    fn failed_item(&self, node: u32, error: NodeError) -> ItemResult {
        let mut failure = error.into_failure();
        self.environment.mask_text(&mut failure.message);
        ItemResult::Failed {
            node: self.state.plan.node_at(node).id,
            failure,
        }
    }

    /// Ends an item whose node failed: what else it has in flight is given up, the other items go on.
    pub(super) fn end_item(&mut self, frame: u32, node: i64, failure: Failure) {
        for place in self.state.in_flight_from(frame) {
            let key = self.state.key(place);
            let concerns = |command: &Command| match command {
                Command::Execute(execute) => execute.key == key,
                Command::SetTimer {
                    key: TimerKey::Node(timer),
                    ..
                } => *timer == key,
                _ => false,
            };
            self.step.commands.retain(|command| !concerns(command));
            let status = self.state.slot(place).status;
            self.step.commands.push(match status.is_waiting() {
                true => Command::CancelTimer(TimerKey::Node(key.clone())),
                false => Command::AbortExecution(key.clone()),
            });
            self.record(EventBody::NodeCancelled { key });
        }
        let at = self.state.frame(frame);
        let Some(opener) = self.state.plan.scope_at(at.scope).opener else {
            return;
        };
        let key = NodeKey {
            node: self.state.plan.node_at(opener).id,
            iteration: at.iteration.clone(),
        };
        self.record(EventBody::ItemFinished {
            key,
            result: ItemResult::Failed { node, failure },
        });
    }

    /// An item that failed where the splitter does not go on past failures fails the aggregator.
    pub(super) fn aggregate(&mut self, place: Place) {
        let plan = Arc::clone(&self.state.plan);
        let output = self.state.aggregated(place);
        let opener = plan
            .node_at(place.node)
            .closes
            .and_then(|scope| plan.scope_at(scope).opener);
        let tolerant = opener
            .is_some_and(|opener| plan.node_at(opener).on_error == Some(crate::config::OnError::Continue));
        match output["errors"].get(0).filter(|_| !tolerant) {
            None => self.complete(place, output),
            Some(first) => {
                let text = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
                let error = NodeError::new(
                    text("code"),
                    format!("item {}: {}", first["index"], text("message")),
                );
                self.attempt_failed(place, error, Retries::Never);
            }
        }
    }

    fn item_key(&self, splitter: Place, index: u32) -> NodeKey {
        let NodeKey { node, iteration } = self.state.key(splitter);
        NodeKey {
            node,
            iteration: iteration.child(index),
        }
    }
}
