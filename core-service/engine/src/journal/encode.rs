//! Events to messages.

use std::sync::Arc;

use serde_json::Value;

use super::proto::{self, event::Body};
use super::{MAX_INLINE_BYTES, Payload};
use crate::canonical::sha256;
use crate::event::{EventBody, Failure, ItemResult, LogLevel, NodeKey, Outcome};

/// `input` is the run's, when the segment holds its start: an output that is the same value is not written again.
pub(super) fn encode_body(body: &EventBody, input: Option<&Arc<Value>>, payloads: &mut Vec<Payload>) -> Body {
    match body {
        EventBody::RunStarted(started) => Body::RunStarted(proto::RunStarted {
            attempt: started.attempt,
            start_nodes: started.start_nodes.clone(),
            input: Some(encode_json(&started.input, payloads)),
            seeds: (started.seeds.iter())
                .map(|(node, output)| proto::Seed {
                    node: *node,
                    output: Some(encode_json(output, payloads)),
                })
                .collect(),
            timeout_ms: started.timeout_ms.unwrap_or(0),
        }),
        EventBody::NodeStarted { key } => {
            let (node, iteration) = encode_key(key);
            Body::NodeStarted(proto::NodeStarted { node, iteration })
        }
        EventBody::NodeWaiting { key, due_at_ms } => {
            let (node, iteration) = encode_key(key);
            Body::NodeWaiting(proto::NodeWaiting {
                node,
                iteration,
                due_at_ms: *due_at_ms,
            })
        }
        EventBody::NodeCompleted { key, output, taken } => {
            let (node, iteration) = encode_key(key);
            let is_input = input.is_some_and(|input| Arc::ptr_eq(input, output));
            let output = (!is_input).then(|| encode_json(output, payloads));
            Body::NodeCompleted(proto::NodeCompleted {
                node,
                iteration,
                output,
                taken: taken.clone(),
            })
        }
        EventBody::NodeFailed {
            key,
            failure,
            taken,
            handled,
        } => {
            let (node, iteration) = encode_key(key);
            let failure = Some(encode_failure(failure));
            let (taken, handled) = (taken.clone(), *handled);
            Body::NodeFailed(proto::NodeFailed {
                node,
                iteration,
                failure,
                taken,
                handled,
            })
        }
        EventBody::NodeRetrying {
            key,
            failure,
            due_at_ms,
        } => {
            let (node, iteration) = encode_key(key);
            let failure = Some(encode_failure(failure));
            Body::NodeRetrying(proto::NodeRetrying {
                node,
                iteration,
                failure,
                due_at_ms: *due_at_ms,
            })
        }
        EventBody::NodeSkipped { key } => {
            let (node, iteration) = encode_key(key);
            Body::NodeSkipped(proto::NodeSkipped { node, iteration })
        }
        EventBody::NodeCancelled { key } => {
            let (node, iteration) = encode_key(key);
            Body::NodeCancelled(proto::NodeCancelled { node, iteration })
        }
        EventBody::NodeLogged { key, lines } => {
            let (node, iteration) = encode_key(key);
            let encode_line = |line: &crate::event::LogLine| proto::LogLine {
                level: encode_level(line.level).into(),
                message: line.message.clone(),
            };
            let lines = lines.iter().map(encode_line).collect();
            Body::NodeLogged(proto::NodeLogged {
                node,
                iteration,
                lines,
            })
        }
        EventBody::RunResumed { node } => Body::RunResumed(proto::RunResumed { node: *node }),
        EventBody::RunFinished { outcome, failure } => Body::RunFinished(proto::RunFinished {
            outcome: encode_outcome(*outcome).into(),
            failure: failure.as_ref().map(encode_failure),
        }),
        EventBody::ItemsOpened { key, items } => {
            let (node, iteration) = encode_key(key);
            Body::ItemsOpened(proto::ItemsOpened {
                node,
                iteration,
                items: Some(encode_json(items, payloads)),
            })
        }
        EventBody::ItemStarted { key, taken } => {
            let (node, iteration) = encode_key(key);
            Body::ItemStarted(proto::ItemStarted {
                node,
                iteration,
                taken: taken.clone(),
            })
        }
        EventBody::ItemFinished { key, result } => {
            let (node, iteration) = encode_key(key);
            let (output, failure) = match result {
                ItemResult::Nothing => (None, None),
                ItemResult::Output(output) => (Some(encode_json(output, payloads)), None),
                ItemResult::Failed { node, failure } => {
                    let failure = Some(encode_failure(failure));
                    (None, Some(proto::ItemFailure { node: *node, failure }))
                }
            };
            Body::ItemFinished(proto::ItemFinished {
                node,
                iteration,
                output,
                failure,
            })
        }
    }
}

fn encode_key(key: &NodeKey) -> (i64, Vec<u32>) {
    (key.node, key.iteration.indexes().to_vec())
}

fn encode_json(value: &Value, payloads: &mut Vec<Payload>) -> proto::Json {
    let text = value.to_string();
    let form = if text.len() <= MAX_INLINE_BYTES {
        proto::json::Form::Text(text)
    } else {
        let sha256 = sha256(text.as_bytes());
        payloads.push(Payload { sha256, json: text });
        proto::json::Form::Sha256(sha256.to_vec())
    };
    proto::Json { form: Some(form) }
}

fn encode_failure(failure: &Failure) -> proto::Failure {
    proto::Failure {
        code: failure.code.clone(),
        message: failure.message.clone(),
    }
}

fn encode_level(level: LogLevel) -> proto::LogLevel {
    match level {
        LogLevel::Debug => proto::LogLevel::Debug,
        LogLevel::Info => proto::LogLevel::Info,
        LogLevel::Warn => proto::LogLevel::Warn,
        LogLevel::Error => proto::LogLevel::Error,
    }
}

fn encode_outcome(outcome: Outcome) -> proto::Outcome {
    match outcome {
        Outcome::Succeeded => proto::Outcome::Succeeded,
        Outcome::Failed => proto::Outcome::Failed,
        Outcome::Cancelled => proto::Outcome::Cancelled,
    }
}
