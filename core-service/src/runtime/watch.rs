//! Waiting for a run to change: at once when this process commits the change, else by looking now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::store::RunBatch;

/// The runs that somebody watches.
#[derive(Default)]
pub(super) struct Watchers {
    runs: Mutex<HashMap<String, watch::Sender<()>>>,
    /// Spares commits the lock while nobody watches anything.
    watched: AtomicUsize,
}

/// Tells when a run may have changed since this was made, or since it told last.
pub struct Watch {
    run_id: String,
    watchers: Arc<Watchers>,
    changes: watch::Receiver<()>,
    look_after: Duration,
}

impl Watchers {
    pub(super) fn watch(self: &Arc<Self>, run_id: &str, look_after: Duration) -> Watch {
        let mut runs = self.lock();
        let changes = runs
            .entry(run_id.to_owned())
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        self.watched.store(runs.len(), Relaxed);
        Watch {
            run_id: run_id.to_owned(),
            watchers: Arc::clone(self),
            changes,
            look_after,
        }
    }

    /// Tells whoever watches the runs of a batch that it is durable.
    pub(super) fn committed(&self, batch: &RunBatch) {
        if self.watched.load(Relaxed) == 0 {
            return;
        }
        let runs = self.lock();
        let created = batch.creates.iter().map(|run| &run.id);
        for run_id in created.chain(batch.changes.iter().map(|change| &change.run_id)) {
            if let Some(changes) = runs.get(run_id) {
                changes.send_replace(());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Returns when the run may have changed: read it again then. Safe to drop while waiting.
    pub async fn changed(&mut self) {
        // The sender is in the map for as long as this is.
        let _changed_or_time_to_look = timeout(self.look_after, self.changes.changed()).await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut runs = self.watchers.lock();
        // This receiver is one of them.
        if runs
            .get(&self.run_id)
            .is_some_and(|changes| changes.receiver_count() <= 1)
        {
            runs.remove(&self.run_id);
        }
        self.watchers.watched.store(runs.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RunChange;

    fn batch(run_id: &str) -> RunBatch {
        let change = RunChange {
            run_id: run_id.to_owned(),
            ..RunChange::default()
        };
        RunBatch {
            changes: vec![change],
            ..RunBatch::default()
        }
    }

    #[tokio::test]
    async fn only_the_watched_run_is_told_of_and_none_is_remembered() {
        let watchers = Arc::new(Watchers::default());
        let mut first = watchers.watch("run_1", Duration::MAX);
        let mut second = watchers.watch("run_1", Duration::MAX);
        let other = watchers.watch("run_2", Duration::MAX);
        watchers.committed(&batch("run_1"));
        first.changed().await;
        second.changed().await;
        assert!(!other.changes.has_changed().unwrap_or(true));
        drop((first, other));
        watchers.committed(&batch("run_1"));
        second.changed().await;
        drop(second);
        assert_eq!((watchers.lock().len(), watchers.watched.load(Relaxed)), (0, 0));
    }
}
