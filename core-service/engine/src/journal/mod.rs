//! The stored form of events: protobuf segments of [`proto`], each one row of the journal.
//!
//! Encoding is compact (a four-node run is a few hundred bytes) and every byte of it is also readable: the messages
//! have canonical JSON. Large outputs are kept apart by content hash, so that a journal stays quick to read.

mod decode;
mod encode;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{Event, EventBody};
use prost::Message as _;

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
    let input = events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(started) => Some(&started.input),
        _ => None,
    });
    let encode_event = |event: &Event| proto::Event {
        offset_ms: event.at_ms.wrapping_sub(base_time_ms),
        body: Some(encode::encode_body(&event.body, input, &mut payloads)),
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
        let mut input = None;
        let decode_event = |event: proto::Event| {
            let body = event.body.ok_or(JournalError::Missing("an event's body"))?;
            let at_ms = base_time_ms.wrapping_add(event.offset_ms);
            let body = decode::decode_body(body, input.as_ref(), payloads)?;
            if let EventBody::RunStarted(started) = &body {
                input = Some(Arc::clone(&started.input));
            }
            Ok(Event { at_ms, body })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;
    use crate::event::{Failure, ItemResult, LogLevel, LogLine, NodeKey, Outcome, RunStarted};
    use crate::iteration::Iteration;

    fn every_event() -> Vec<Event> {
        let key = NodeKey {
            node: 300,
            iteration: Iteration::new([3, 1]),
        };
        let failure = Failure {
            code: "HTTP_ERROR".into(),
            message: "no".into(),
        };
        let input = Arc::new(json!({ "body": { "n": 9_007_199_254_740_993_i64, "z": 1, "a": 1.0 } }));
        let bodies = vec![
            EventBody::RunStarted(RunStarted {
                attempt: 2,
                start_nodes: vec![1, 2],
                input: Arc::clone(&input),
                seeds: vec![(7, Arc::new(json!([])))],
                timeout_ms: Some(5),
            }),
            EventBody::NodeCompleted {
                key: NodeKey::root(1),
                output: input,
                taken: vec![0, 2],
            },
            EventBody::NodeStarted { key: key.clone() },
            EventBody::NodeWaiting {
                key: key.clone(),
                due_at_ms: Some(-1),
            },
            EventBody::NodeWaiting {
                key: key.clone(),
                due_at_ms: None,
            },
            EventBody::NodeCompleted {
                key: key.clone(),
                output: Arc::new(json!({})),
                taken: vec![],
            },
            EventBody::NodeFailed {
                key: key.clone(),
                failure: failure.clone(),
                taken: vec![1],
                handled: true,
            },
            EventBody::NodeRetrying {
                key: key.clone(),
                failure: failure.clone(),
                due_at_ms: 99,
            },
            EventBody::NodeSkipped { key: key.clone() },
            EventBody::NodeCancelled { key: key.clone() },
            EventBody::NodeLogged {
                key: key.clone(),
                lines: Arc::new([LogLine {
                    level: LogLevel::Warn,
                    message: "careful".into(),
                }]),
            },
            EventBody::RunResumed { node: 4 },
            EventBody::ItemsOpened {
                key: key.clone(),
                items: Arc::new(json!([1, "two"])),
            },
            EventBody::ItemStarted {
                key: key.clone(),
                taken: vec![0],
            },
            EventBody::ItemFinished {
                key: key.clone(),
                result: ItemResult::Output(Arc::new(json!(null))),
            },
            EventBody::ItemFinished {
                key: key.clone(),
                result: ItemResult::Nothing,
            },
            EventBody::ItemFinished {
                key,
                result: ItemResult::Failed {
                    node: 3,
                    failure: failure.clone(),
                },
            },
            EventBody::RunFinished {
                outcome: Outcome::Failed,
                failure: Some(failure),
            },
            EventBody::RunFinished {
                outcome: Outcome::Cancelled,
                failure: None,
            },
        ];
        (0..)
            .zip(bodies)
            .map(|(at, body)| Event {
                at_ms: 1_770_000_000_000 - 3 + at,
                body,
            })
            .collect()
    }

    #[test]
    fn every_event_round_trips() {
        let events = every_event();
        let encoded = encode(&events);
        assert_eq!(encoded.payloads, []);
        assert_eq!(decode(&encoded.bytes).unwrap(), events);
    }

    #[test]
    fn the_messages_have_canonical_json() {
        let segment = Segment::parse(&encode(&every_event()).bytes).unwrap();
        let json = serde_json::to_value(segment.message()).unwrap();
        assert_eq!(
            json["events"][2]["nodeStarted"],
            json!({ "node": "300", "iteration": [3, 1] })
        );
        let back: proto::Segment = serde_json::from_value(json).unwrap();
        assert_eq!(back, *segment.message());
    }

    #[test]
    fn the_input_is_written_once() {
        let input = Arc::new(json!({ "body": "x".repeat(10_000) }));
        let mut events = every_event();
        events.truncate(2);
        if let EventBody::RunStarted(started) = &mut events[0].body {
            started.input = Arc::clone(&input);
        }
        events[1].body = EventBody::NodeCompleted {
            key: NodeKey::root(1),
            output: input,
            taken: vec![],
        };
        let encoded = encode(&events);
        assert!(encoded.bytes.len() < 11_000);
        assert_eq!(decode(&encoded.bytes).unwrap(), events);
    }

    #[test]
    fn large_outputs_are_kept_apart() {
        let large = Arc::new(json!({ "text": "x".repeat(MAX_INLINE_BYTES) }));
        let body = EventBody::NodeCompleted {
            key: NodeKey::root(1),
            output: large,
            taken: vec![],
        };
        let events = [Event { at_ms: 1, body }];
        let encoded = encode(&events);
        assert!(encoded.bytes.len() < 100);
        let segment = Segment::parse(&encoded.bytes).unwrap();
        assert_eq!(segment.payload_hashes(), [encoded.payloads[0].sha256]);
        assert!(matches!(
            decode(&encoded.bytes),
            Err(JournalError::UnknownPayload)
        ));
        let payloads = encoded
            .payloads
            .into_iter()
            .map(|payload| (payload.sha256, payload.json))
            .collect();
        assert_eq!(segment.into_events(&payloads).unwrap(), events);
    }
}
