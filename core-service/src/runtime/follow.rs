//! Following a run for a caller who waits for what it says. Its journal is folded as it grows, each piece once.
//!
//! Who waits holds a place, so that callers cannot pile up; when the process is about to stop, all are dismissed.

use std::sync::Arc;

use engine::state::RunState;

use super::error::ReportError;
use super::limits::WaitingPlace;
use super::plans::GraphRef;
use super::watch::Watch;
use super::{Runtime, Shared, rebuild};

/// The attempt that the caller's request started.
const FIRST_ATTEMPT: i64 = 1;

/// A run that is followed.
pub struct Followed {
    shared: Arc<Shared>,
    organization_id: String,
    run_id: String,
    state: RunState,
    next_seq: i64,
    watch: Watch,
}

impl Runtime {
    /// A place to wait in for an organization's run; nothing when too many wait already.
    #[must_use]
    pub fn waiting_place(&self, organization_id: &str) -> Option<WaitingPlace> {
        self.shared.limits.waiting_place(organization_id)
    }

    /// Follows the first attempt of a run from its beginning.
    ///
    /// # Errors
    /// [`ReportError`]
    pub async fn follow(&self, organization_id: &str, run_id: &str) -> Result<Followed, ReportError> {
        let shared = &self.shared;
        // Made first, so that no change between reading and waiting is missed.
        let watch = self.watch(run_id);
        let run = shared.store.run(organization_id, run_id).await?;
        let graph = GraphRef::Stored(run.graph_hash);
        let plan = shared.plans.get(organization_id, &graph).await?.plan;
        Ok(Followed {
            shared: Arc::clone(shared),
            organization_id: organization_id.to_owned(),
            run_id: run_id.to_owned(),
            state: RunState::new(plan),
            next_seq: 0,
            watch,
        })
    }

    /// Tells all who wait for runs that this process is about to stop.
    pub fn dismiss_callers(&self) {
        self.shared.dismissed.send_replace(true);
    }

    /// Returns when callers are not to wait any longer.
    pub async fn callers_dismissed(&self) {
        // The sender is part of the runtime, so the channel cannot close first.
        let mut dismissed = self.shared.dismissed.subscribe();
        let _dismissed = dismissed.wait_for(|dismissed| *dismissed).await;
    }
}

impl Followed {
    /// What is known of the run: see [`Followed::read`].
    #[must_use]
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Whether the attempt has ended, without reading its journal.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_ended(&self) -> Result<bool, ReportError> {
        let run = self.shared.store.run(&self.organization_id, &self.run_id).await?;
        Ok(run.status.is_terminal() || run.attempt_number > FIRST_ATTEMPT)
    }

    /// Folds what the journal has gained.
    ///
    /// # Errors
    /// When the database fails or the journal is damaged.
    pub async fn read(&mut self) -> Result<(), ReportError> {
        let (store, from) = (&self.shared.store, self.next_seq);
        let (organization_id, run_id) = (&self.organization_id, &self.run_id);
        let events = rebuild::events(store, organization_id, run_id, FIRST_ATTEMPT, from).await?;
        self.next_seq = events.next_seq;
        for event in events.segments.iter().flatten() {
            let applied = self.state.apply(event);
            applied.map_err(|error| ReportError::Damaged(error.to_string()))?;
        }
        Ok(())
    }

    /// Returns when the run may have changed. Safe to drop while waiting.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
    }
}
