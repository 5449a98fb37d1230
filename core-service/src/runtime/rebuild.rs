//! The state of a run from its journal.

use std::collections::HashMap;

use engine::event::{Event, EventBody, RunStarted};
use engine::journal;
use engine::state::RunState;
use std::sync::Arc;

use engine::plan::Plan;

use super::progress::hexadecimal;
use crate::store::{Segment, Store, StoreError};

/// An attempt of a run, read.
pub(super) struct Rebuilt {
    pub(super) state: RunState,
    /// How it began.
    pub(super) started: RunStarted,
    /// The place of its next segment.
    pub(super) next_seq: i64,
}

/// A stretch of an attempt's journal.
pub struct Events {
    /// The events, segment by segment.
    pub segments: Vec<Vec<Event>>,
    /// The place of the next segment.
    pub next_seq: i64,
}

/// A journal that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RebuildError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Damaged(String),
}

/// Reads an attempt and folds its events over the plan.
pub(super) async fn rebuild(
    store: &Store,
    organization_id: &str,
    run_id: &str,
    attempt: i64,
    plan: Arc<Plan>,
) -> Result<Rebuilt, RebuildError> {
    let journal = store.load_segments(run_id, Some(attempt)).await?;
    fold(store, organization_id, &journal, plan).await
}

/// Folds the events of an attempt over the plan.
pub(super) async fn fold(
    store: &Store,
    organization_id: &str,
    journal: &[Segment],
    plan: Arc<Plan>,
) -> Result<Rebuilt, RebuildError> {
    let events = read(store, organization_id, journal, 0).await?;
    let next_seq = events.next_seq;
    let mut state = RunState::new(plan);
    let mut started = None;
    for segment in events.segments {
        for event in segment {
            state.apply(&event).map_err(damaged)?;
            if let EventBody::RunStarted(first) = event.body {
                started = Some(first);
            }
        }
    }
    let started = started.ok_or_else(|| RebuildError::Damaged("the journal has no beginning".to_owned()))?;
    Ok(Rebuilt {
        state,
        started,
        next_seq,
    })
}

/// The events of an attempt from a segment on.
pub(super) async fn events(
    store: &Store,
    organization_id: &str,
    run_id: &str,
    attempt: i64,
    from_seq: i64,
) -> Result<Events, RebuildError> {
    let journal = store.load_segments(run_id, Some(attempt)).await?;
    read(store, organization_id, &journal, from_seq).await
}

async fn read(
    store: &Store,
    organization_id: &str,
    stored: &[Segment],
    from_seq: i64,
) -> Result<Events, RebuildError> {
    let mut events = Events {
        segments: Vec::with_capacity(stored.len()),
        next_seq: from_seq,
    };
    for segment in stored.iter().filter(|segment| segment.seq >= from_seq) {
        events.next_seq = segment.seq + 1;
        let segment = journal::Segment::parse(&segment.events).map_err(damaged)?;
        let payloads = load_payloads(store, organization_id, &segment).await?;
        events
            .segments
            .push(segment.into_events(&payloads).map_err(damaged)?);
    }
    Ok(events)
}

async fn load_payloads(
    store: &Store,
    organization_id: &str,
    segment: &journal::Segment,
) -> Result<HashMap<[u8; 32], String>, RebuildError> {
    let mut payloads = HashMap::new();
    for hash in segment.payload_hashes() {
        let bytes = store.load_payload(organization_id, &hexadecimal(&hash)).await?;
        payloads.insert(hash, String::from_utf8(bytes).map_err(damaged)?);
    }
    Ok(payloads)
}

fn damaged(error: impl std::fmt::Display) -> RebuildError {
    RebuildError::Damaged(error.to_string())
}
