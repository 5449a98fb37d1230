//! What a run holds in memory, and how much that may be.
//!
//! An estimate, the same whenever a journal is folded: what the events brought, also what later ones replaced. It keeps
//! one run of many large outputs from taking the memory of all others; evaluations have limits of their own
//! ([`crate::expression`]).

use serde_json::Value;

use crate::event::{EventBody, Failure, ItemResult, LogLine};
use crate::state::{Frame, Slot};

/// The most that a run may hold, in bytes; one that holds more is failed.
pub const MAX_HELD_BYTES: usize = 128 << 20;
/// The most console output that a run may hold, in bytes; more of it is left out.
pub const MAX_LOGGED_BYTES: usize = 16 << 20;

/// What any value takes besides its text.
const VALUE: usize = size_of::<Value>();
/// What a field of an object takes besides its name and value.
const FIELD: usize = 2 * size_of::<String>();

/// What an event adds. The frame of an item is counted when it is made.
pub(crate) fn of_event(event: &EventBody) -> usize {
    match event {
        EventBody::RunStarted(started) => {
            let seeds = started.seeds.iter().map(|(_, output)| of_value(output));
            of_value(&started.input) + seeds.sum::<usize>()
        }
        EventBody::NodeCompleted { output, .. } => of_value(output),
        EventBody::NodeFailed { failure, .. } | EventBody::NodeRetrying { failure, .. } => {
            of_failure(failure)
        }
        EventBody::NodeLogged { lines, .. } => of_lines(lines),
        EventBody::ItemsOpened { items, .. } => {
            let results = items.as_array().map_or(0, Vec::len) * size_of::<Option<ItemResult>>();
            of_value(items) + results
        }
        EventBody::ItemFinished { result, .. } => match result {
            ItemResult::Output(output) => of_value(output),
            ItemResult::Failed { failure, .. } => of_failure(failure),
            ItemResult::Nothing => 0,
        },
        EventBody::NodeStarted { .. }
        | EventBody::NodeWaiting { .. }
        | EventBody::NodeSkipped { .. }
        | EventBody::NodeCancelled { .. }
        | EventBody::RunResumed { .. }
        | EventBody::RunFinished { .. }
        | EventBody::ItemStarted { .. } => 0,
    }
}

/// What a frame takes before anything happens in it.
pub(crate) fn of_frame(frame: &Frame) -> usize {
    let item = frame.item.as_ref().map_or(0, |item| of_value(&item.output));
    size_of::<Frame>() + frame.slots.len() * size_of::<Slot>() + frame.edges.len() + item
}

/// What lines of console output take.
pub(crate) fn of_lines(lines: &[LogLine]) -> usize {
    let line = |line: &LogLine| size_of::<LogLine>() + line.message.len();
    lines.iter().map(line).sum()
}

fn of_failure(failure: &Failure) -> usize {
    failure.code.len() + failure.message.len()
}

fn of_value(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of_value).sum(),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| FIELD + name.len() + of_value(value);
                fields.iter().map(field).sum()
            }
        }
}
