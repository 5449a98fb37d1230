//! What one organization may have under way, so that its flood does not starve the others.
//!
//! Executions queue for their organization's turn first and for the process's second: whatever an organization has
//! waiting, it stands in the process's queue with no more than its own share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::config::RuntimeConfig;

/// Organizations remembered before those with nothing under way are forgotten.
const REMEMBERED: usize = 10_000;

pub(super) struct Limits {
    shares: RwLock<HashMap<String, Arc<Share>>>,
    executions: Arc<Semaphore>,
    executions_each: usize,
    starts_each: usize,
    live_each: usize,
    waiting: Arc<Semaphore>,
    waiting_each: usize,
}

/// What one organization has under way.
pub(super) struct Share {
    starts: AtomicUsize,
    live: AtomicUsize,
    waiting: AtomicUsize,
    executions: Arc<Semaphore>,
}

/// A place among the callers who wait for runs. Given up when dropped.
pub struct WaitingPlace {
    _own: Counted,
    _general: OwnedSemaphorePermit,
}

/// The turn of an execution. Given up when dropped.
pub(super) struct Turn {
    _own: OwnedSemaphorePermit,
    _general: OwnedSemaphorePermit,
}

/// One start, one run in memory or one caller who waits; counted until dropped.
pub(super) struct Counted {
    share: Arc<Share>,
    counter: fn(&Share) -> &AtomicUsize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.share).fetch_sub(1, Relaxed);
    }
}

impl Limits {
    pub(super) fn new(config: &RuntimeConfig) -> Self {
        Self {
            shares: RwLock::default(),
            executions: Arc::new(Semaphore::new(config.executions)),
            executions_each: config.executions_per_organization,
            starts_each: config.starts_per_organization,
            live_each: config.live_runs_per_organization,
            waiting: Arc::new(Semaphore::new(config.waiting_callers)),
            waiting_each: config.waiting_callers_per_organization,
        }
    }

    pub(super) fn share(&self, organization_id: &str) -> Arc<Share> {
        let known = self
            .shares
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(organization_id)
            .cloned();
        known.unwrap_or_else(|| self.new_share(organization_id))
    }

    fn new_share(&self, organization_id: &str) -> Arc<Share> {
        let mut shares = self.shares.write().unwrap_or_else(PoisonError::into_inner);
        if shares.len() >= REMEMBERED {
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = shares.entry(organization_id.to_owned()).or_insert_with(|| {
            Arc::new(Share {
                starts: AtomicUsize::new(0),
                live: AtomicUsize::new(0),
                waiting: AtomicUsize::new(0),
                executions: Arc::new(Semaphore::new(self.executions_each)),
            })
        });
        Arc::clone(share)
    }

    /// Counts a start, unless too many are under way.
    pub(super) fn begin_start(&self, share: &Arc<Share>) -> Option<Counted> {
        admit(share, |share| &share.starts, self.starts_each)
    }

    /// Counts a run that a start brings into memory, unless there are too many.
    pub(super) fn begin_live(&self, share: &Arc<Share>) -> Option<Counted> {
        admit(share, |share| &share.live, self.live_each)
    }

    /// Counts a run that was claimed: it is there already, whatever the limit.
    pub(super) fn resume_live(&self, share: &Arc<Share>) -> Counted {
        share.live.fetch_add(1, Relaxed);
        Counted {
            share: Arc::clone(share),
            counter: |share| &share.live,
        }
    }

    /// A place for a caller who waits for a run, unless too many do.
    pub(super) fn waiting_place(&self, organization_id: &str) -> Option<WaitingPlace> {
        let share = self.share(organization_id);
        let own = admit(&share, |share| &share.waiting, self.waiting_each)?;
        let general = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        Some(WaitingPlace {
            _own: own,
            _general: general,
        })
    }

    /// Waits for the turn of an execution.
    pub(super) async fn execution(&self, share: &Share) -> Result<Turn, AcquireError> {
        Ok(Turn {
            _own: Arc::clone(&share.executions).acquire_owned().await?,
            _general: Arc::clone(&self.executions).acquire_owned().await?,
        })
    }
}

fn admit(share: &Arc<Share>, counter: fn(&Share) -> &AtomicUsize, most: usize) -> Option<Counted> {
    let before = counter(share).fetch_add(1, Relaxed);
    // Dropped at once when refused, which takes the count back.
    let counted = Counted {
        share: Arc::clone(share),
        counter,
    };
    (before < most).then_some(counted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn limits(each: usize) -> Limits {
        Limits::new(&RuntimeConfig {
            starts_per_organization: each,
            executions: 2,
            executions_per_organization: 1,
            ..RuntimeConfig::default()
        })
    }

    #[test]
    fn a_refused_start_is_not_counted() {
        let limits = limits(2);
        let share = limits.share("org_1");
        let first = limits.begin_start(&share).unwrap();
        let second = limits.begin_start(&share);
        assert!(second.is_some());
        assert!(limits.begin_start(&share).is_none());
        assert!(
            limits.begin_start(&limits.share("org_2")).is_some(),
            "another organization is not concerned"
        );
        drop(first);
        assert!(limits.begin_start(&share).is_some());
    }

    #[test]
    fn callers_wait_as_far_as_there_are_places() {
        let limits = Limits::new(&RuntimeConfig {
            waiting_callers: 3,
            waiting_callers_per_organization: 2,
            ..RuntimeConfig::default()
        });
        let first = limits.waiting_place("org_1");
        let second = limits.waiting_place("org_1");
        assert!(first.is_some() && second.is_some() && limits.waiting_place("org_1").is_none());
        let third = limits.waiting_place("org_2");
        assert!(
            third.is_some() && limits.waiting_place("org_2").is_none(),
            "the process is full"
        );
        drop(first);
        assert!(limits.waiting_place("org_2").is_some());
    }

    #[tokio::test]
    async fn one_organization_cannot_take_every_execution() {
        let limits = limits(1);
        let (flood, other) = (limits.share("org_1"), limits.share("org_2"));
        let running = limits.execution(&flood).await.unwrap();
        let waiting = limits.execution(&flood);
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("beyond the organization's share"),
            turn = limits.execution(&other) => assert!(turn.is_ok()),
        }
        drop(running);
        assert!(waiting.await.is_ok());
    }
}
