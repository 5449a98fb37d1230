//! Messages to events.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::JournalError;
use super::proto::{self, event::Body};
use crate::event::{EventBody, Failure, ItemResult, LogLevel, LogLine, NodeKey, Outcome, RunStarted};
use crate::iteration::Iteration;

/// `input` is the run's, when the segment holds its start.
pub(super) fn decode_body(
    body: Body,
    input: Option<&Arc<Value>>,
    payloads: &HashMap<[u8; 32], String>,
) -> Result<EventBody, JournalError> {
    let json = |json: Option<proto::Json>| decode_json(json, payloads);
    Ok(match body {
        Body::RunStarted(started) => {
            let mut seeds = Vec::with_capacity(started.seeds.len());
            for seed in started.seeds {
                seeds.push((seed.node, json(seed.output)?));
            }
            EventBody::RunStarted(RunStarted {
                attempt: started.attempt,
                start_nodes: started.start_nodes,
                input: json(started.input)?,
                seeds,
                timeout_ms: Some(started.timeout_ms).filter(|ms| *ms > 0),
            })
        }
        Body::NodeStarted(m) => EventBody::NodeStarted {
            key: decode_key(m.node, m.iteration),
        },
        Body::NodeWaiting(m) => EventBody::NodeWaiting {
            key: decode_key(m.node, m.iteration),
            due_at_ms: m.due_at_ms,
        },
        Body::NodeCompleted(m) => {
            let key = decode_key(m.node, m.iteration);
            let output = match (m.output, input) {
                (None, Some(input)) => Arc::clone(input),
                (output, _) => json(output)?,
            };
            EventBody::NodeCompleted {
                key,
                output,
                taken: m.taken,
            }
        }
        Body::NodeFailed(m) => {
            let key = decode_key(m.node, m.iteration);
            let failure = decode_failure(m.failure)?;
            EventBody::NodeFailed {
                key,
                failure,
                taken: m.taken,
                handled: m.handled,
            }
        }
        Body::NodeRetrying(m) => {
            let key = decode_key(m.node, m.iteration);
            EventBody::NodeRetrying {
                key,
                failure: decode_failure(m.failure)?,
                due_at_ms: m.due_at_ms,
            }
        }
        Body::NodeSkipped(m) => EventBody::NodeSkipped {
            key: decode_key(m.node, m.iteration),
        },
        Body::NodeCancelled(m) => EventBody::NodeCancelled {
            key: decode_key(m.node, m.iteration),
        },
        Body::NodeLogged(m) => EventBody::NodeLogged {
            key: decode_key(m.node, m.iteration),
            lines: m.lines.into_iter().map(decode_line).collect(),
        },
        Body::RunResumed(m) => EventBody::RunResumed { node: m.node },
        Body::RunFinished(m) => {
            let failure = m
                .failure
                .clone()
                .map(|failure| decode_failure(Some(failure)))
                .transpose()?;
            EventBody::RunFinished {
                outcome: decode_outcome(m.outcome())?,
                failure,
            }
        }
        Body::ItemsOpened(m) => EventBody::ItemsOpened {
            key: decode_key(m.node, m.iteration),
            items: json(m.items)?,
        },
        Body::ItemStarted(m) => EventBody::ItemStarted {
            key: decode_key(m.node, m.iteration),
            taken: m.taken,
        },
        Body::ItemFinished(m) => {
            let result = match (m.output, m.failure) {
                (_, Some(item)) => ItemResult::Failed {
                    node: item.node,
                    failure: decode_failure(item.failure)?,
                },
                (Some(output), None) => ItemResult::Output(json(Some(output))?),
                (None, None) => ItemResult::Nothing,
            };
            EventBody::ItemFinished {
                key: decode_key(m.node, m.iteration),
                result,
            }
        }
    })
}

fn decode_key(node: i64, iteration: Vec<u32>) -> NodeKey {
    NodeKey {
        node,
        iteration: Iteration::new(iteration),
    }
}

fn decode_json(
    json: Option<proto::Json>,
    payloads: &HashMap<[u8; 32], String>,
) -> Result<Arc<Value>, JournalError> {
    let text = match json
        .and_then(|json| json.form)
        .ok_or(JournalError::Missing("a value"))?
    {
        proto::json::Form::Text(text) => text,
        proto::json::Form::Sha256(hash) => {
            let hash = <[u8; 32]>::try_from(hash.as_slice()).map_err(|_| JournalError::UnknownPayload)?;
            return Ok(Arc::new(serde_json::from_str(
                payloads.get(&hash).ok_or(JournalError::UnknownPayload)?,
            )?));
        }
    };
    Ok(Arc::new(serde_json::from_str(&text)?))
}

fn decode_failure(failure: Option<proto::Failure>) -> Result<Failure, JournalError> {
    let failure = failure.ok_or(JournalError::Missing("a failure"))?;
    Ok(Failure {
        code: failure.code,
        message: failure.message,
    })
}

fn decode_line(line: proto::LogLine) -> LogLine {
    let level = match line.level() {
        proto::LogLevel::Debug => LogLevel::Debug,
        proto::LogLevel::Info | proto::LogLevel::Unspecified => LogLevel::Info,
        proto::LogLevel::Warn => LogLevel::Warn,
        proto::LogLevel::Error => LogLevel::Error,
    };
    LogLine {
        level,
        message: line.message,
    }
}

fn decode_outcome(outcome: proto::Outcome) -> Result<Outcome, JournalError> {
    match outcome {
        proto::Outcome::Succeeded => Ok(Outcome::Succeeded),
        proto::Outcome::Failed => Ok(Outcome::Failed),
        proto::Outcome::Cancelled => Ok(Outcome::Cancelled),
        proto::Outcome::Unspecified => Err(JournalError::Missing("an outcome")),
    }
}
