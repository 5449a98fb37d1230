//! Trials of runs that processes may have died of: one at a time, so that a loss tells which is to blame.

use std::sync::Arc;
use std::time::Duration;

use engine::state::{RunState, RunStatus};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::sleep;

use super::Shared;
use super::config::RuntimeConfig;
use super::lease::Held;
use crate::store::Run;

/// Between two attempts to write that a trial is over.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How many times as often a process may be lost with a run that was not on trial then.
const IN_COMPANY: i64 = 3;

/// Held by the run that is tried; the trial is over when it is dropped, if not before.
pub(super) type OnTrial = oneshot::Sender<()>;

/// Begins the trial of a run in the only place there is.
pub(super) fn begin(
    shared: &Arc<Shared>,
    held: &Held,
    run_id: String,
    place: OwnedSemaphorePermit,
) -> OnTrial {
    let (on_trial, over) = oneshot::channel();
    let (shared, held) = (Arc::clone(shared), held.clone());
    tokio::spawn(async move {
        tokio::select! {
            // It has ended, sleeps or is another's, which its row says.
            _ = over => {}
            () = shared.lease.ended(held.generation) => {}
            () = survive(&shared, &held, &run_id) => {}
        }
        drop(place);
        shared.claims.notify_one();
    });
    on_trial
}

async fn survive(shared: &Shared, held: &Held, run_id: &str) {
    sleep(shared.config.trial).await;
    while let Err(error) = shared.store.end_trial(&held.lease, run_id).await {
        tracing::warn!(%error, run_id, "that a trial is over could not be written; it will be tried again");
        sleep(TRY_AGAIN_AFTER).await;
    }
}

/// Whether a run is to be failed without even its journal being read: its process died again when all it had to do was
/// that.
pub(super) fn is_beyond_reading(run: &Run, config: &RuntimeConfig) -> bool {
    run.on_trial && run.crashes > config.crash_limit
}

/// Whether a run that was taken over is to be failed because it seems to be what its processes died of.
pub(super) fn is_deadly(run: &Run, config: &RuntimeConfig, state: &RunState) -> bool {
    let limit = match run.on_trial {
        true => config.crash_limit,
        false => config.crash_limit.saturating_mul(IN_COMPANY),
    };
    // One that waits was being woken when it was on trial.
    (state.status() == RunStatus::Running || run.on_trial) && run.crashes >= limit
}
