//! The stored form of events: protobuf segments of [`proto`], each one row of the journal.
//!
//! Encoding is compact (a four-node run is a few hundred bytes) and every byte of it is also readable: the messages
//! have canonical JSON. Large outputs are kept apart by content hash, so that a journal stays quick to read.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message as _;
use serde_json::Value;

use crate::canonical::sha256;
use crate::event::{Event, EventBody, Failure, ItemResult, NodeKey, Outcome, RunStarted};
use crate::iteration::Iteration;

/// The generated messages, with canonical JSON through serde.
#[allow(clippy::all, missing_docs, reason = "generated code")]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/switchyard.journal.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/switchyard.journal.v1.serde.rs"));
}

use proto::event::Body;

/// Outputs with more bytes of JSON than this are kept in the payload table.
pub const MAX_INLINE_BYTES: usize = 256 * 1024;

/// A JSON text kept apart from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// SHA-256 of the text.
    pub sha256: [u8; 32],
    /// The text.
    pub json: String,
}

/// A segment and the payloads that have to be stored with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The segment.
    pub bytes: Vec<u8>,
    /// What it refers to.
    pub payloads: Vec<Payload>,
}

/// A segment that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The bytes are no segment.
    #[error("the journal segment is damaged")]
    Damaged(#[from] prost::DecodeError),
    /// A required part is absent: written by a newer version, or damaged.
    #[error("the journal segment lacks {0}")]
    Missing(&'static str),
    /// A value is no JSON.
    #[error("the journal segment holds a value that is not JSON")]
    NotJson(#[from] serde_json::Error),
    /// A payload was not given.
    #[error("the journal segment refers to a payload that does not exist")]
    UnknownPayload,
}

/// Encodes the events of one step.
pub fn encode(events: &[Event]) -> Encoded {
    let base_time_ms = events.first().map_or(0, |event| event.at_ms);
    let mut payloads = Vec::new();
    let encode_event = |event: &Event| proto::Event {
        offset_ms: event.at_ms.wrapping_sub(base_time_ms),
        body: Some(encode_body(&event.body, &mut payloads)),
    };
    let segment = proto::Segment {
        base_time_ms,
        events: events.iter().map(encode_event).collect(),
    };
    Encoded {
        bytes: segment.encode_to_vec(),
        payloads,
    }
}

/// A segment read, before its payloads were fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment(proto::Segment);

impl Segment {
    /// Reads a segment.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        Ok(Self(proto::Segment::decode(bytes)?))
    }

    /// The message, for tools.
    pub fn message(&self) -> &proto::Segment {
        &self.0
    }

    /// The hashes of the payloads it refers to.
    pub fn payload_hashes(&self) -> Vec<[u8; 32]> {
        let mut found = Vec::new();
        for json in self
            .0
            .events
            .iter()
            .filter_map(|event| event.body.as_ref())
            .flat_map(json_parts)
        {
            if let Some(proto::json::Form::Sha256(hash)) = &json.form {
                found.extend(<[u8; 32]>::try_from(hash.as_slice()));
            }
        }
        found
    }

    /// The events, given the texts of the payloads.
    pub fn into_events(self, payloads: &HashMap<[u8; 32], String>) -> Result<Vec<Event>, JournalError> {
        let base_time_ms = self.0.base_time_ms;
        let decode_event = |event: proto::Event| {
            let body = event.body.ok_or(JournalError::Missing("an event's body"))?;
            let at_ms = base_time_ms.wrapping_add(event.offset_ms);
            Ok(Event {
                at_ms,
                body: decode_body(body, payloads)?,
            })
        };
        self.0.events.into_iter().map(decode_event).collect()
    }
}

/// Reads a segment that refers to no payloads.
pub fn decode(bytes: &[u8]) -> Result<Vec<Event>, JournalError> {
    Segment::parse(bytes)?.into_events(&HashMap::new())
}

fn json_parts(body: &Body) -> Vec<&proto::Json> {
    match body {
        Body::RunStarted(started) => {
            let seeds = started.seeds.iter().filter_map(|seed| seed.output.as_ref());
            started.input.iter().chain(seeds).collect()
        }
        Body::NodeCompleted(completed) => completed.output.iter().collect(),
        Body::ItemsOpened(opened) => opened.items.iter().collect(),
        Body::ItemFinished(finished) => finished.output.iter().collect(),
        _ => Vec::new(),
    }
}

fn encode_body(body: &EventBody, payloads: &mut Vec<Payload>) -> Body {
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
            let output = Some(encode_json(output, payloads));
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

fn decode_body(body: Body, payloads: &HashMap<[u8; 32], String>) -> Result<EventBody, JournalError> {
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
            EventBody::NodeCompleted {
                key,
                output: json(m.output)?,
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

fn encode_key(key: &NodeKey) -> (i64, Vec<u32>) {
    (key.node, key.iteration.indexes().to_vec())
}

fn decode_key(node: i64, iteration: Vec<u32>) -> NodeKey {
    NodeKey {
        node,
        iteration: Iteration::new(iteration),
    }
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

fn encode_failure(failure: &Failure) -> proto::Failure {
    proto::Failure {
        code: failure.code.clone(),
        message: failure.message.clone(),
    }
}

fn decode_failure(failure: Option<proto::Failure>) -> Result<Failure, JournalError> {
    let failure = failure.ok_or(JournalError::Missing("a failure"))?;
    Ok(Failure {
        code: failure.code,
        message: failure.message,
    })
}

fn encode_outcome(outcome: Outcome) -> proto::Outcome {
    match outcome {
        Outcome::Succeeded => proto::Outcome::Succeeded,
        Outcome::Failed => proto::Outcome::Failed,
        Outcome::Cancelled => proto::Outcome::Cancelled,
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
