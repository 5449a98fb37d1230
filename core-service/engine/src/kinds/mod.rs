//! The kinds that need nothing but their inputs, a file each.

mod aggregator;
mod condition;
mod dedupe;
mod error_trigger;
mod filter;
mod limit;
mod manual_trigger;
mod schedule_trigger;
mod set;
mod sort;
mod splitter;
mod stop;
mod support;
mod wait;
mod webhook_response;
mod webhook_trigger;
mod workflow_trigger;

pub use aggregator::Aggregator;
pub(crate) use splitter::MAX_ITEMS;
pub use splitter::Splitter;
pub use stop::{End, Stop};
pub use wait::Wait;
pub use webhook_trigger::{ResponseMode, Verify, WebhookSettings};

use crate::kind::Registry;

/// Adds every kind of this module.
pub(crate) fn register(registry: &mut Registry) {
    registry.add(aggregator::AggregatorKind);
    registry.add(condition::Condition);
    registry.add(dedupe::Dedupe);
    registry.add(error_trigger::ErrorTrigger);
    registry.add(filter::Filter);
    registry.add(limit::Limit);
    registry.add(manual_trigger::ManualTrigger);
    registry.add(schedule_trigger::ScheduleTrigger);
    registry.add(set::Set);
    registry.add(sort::Sort);
    registry.add(splitter::SplitterKind);
    registry.add(stop::StopKind);
    registry.add(wait::WaitKind);
    registry.add(webhook_response::WebhookResponse);
    registry.add(webhook_trigger::WebhookTrigger);
    registry.add(workflow_trigger::WorkflowTrigger);
}
