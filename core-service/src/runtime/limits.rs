//! What one organization may have under way, so that its flood does not starve the others.
//!
//! What takes its turn soon (starts, executions, steps that compute for long) goes round among organizations
//! (`crate::turns`). What stays for long (runs in memory, callers who wait) has places, and an organization may have as
//! many as it leaves free: alone half of them, and there is room for whoever comes next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::config::RuntimeConfig;
use super::pace;
use crate::turns::{Share, TooManyWait, Turn, Turns};

pub(super) struct Limits {
    starts: Turns,
    start_patience: Duration,
    pub(super) executions: Turns,
    /// Of steps that compute for long.
    pub(super) slow_steps: Turns,
    live: Arc<Places>,
    waiting: Arc<Places>,
}

/// Places for what stays.
struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

/// Places that are taken.
#[derive(Default)]
struct Taken {
    all: usize,
    by_organization: HashMap<Arc<str>, usize>,
}

/// A place among the callers who wait for runs. Given up when dropped.
pub struct WaitingPlace {
    _counted: Counted,
}

/// One run in memory or one caller who waits; counted until dropped.
pub(super) struct Counted {
    organization_id: Arc<str>,
    places: Arc<Places>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.places.taken().remove(&self.organization_id);
    }
}

impl Limits {
    pub(super) fn new(config: &RuntimeConfig) -> Self {
        let slow_steps = pace::slow_steps_at_once();
        Self {
            starts: Turns::new(
                config.starts,
                Share {
                    alone: config.starts_per_organization,
                    beside: config.starts_beside_others,
                },
                config.waiting_starts,
            ),
            start_patience: config.start_patience,
            // What is executed or takes a step belongs to a run in memory or to a start: there are no more of them.
            executions: Turns::new(
                config.executions,
                Share::of_each(config.executions_per_organization),
                usize::MAX,
            ),
            slow_steps: Turns::new(slow_steps, Share::of_each(slow_steps), usize::MAX),
            live: Places::new(config.live_runs),
            waiting: Places::new(config.waiting_callers),
        }
    }

    /// Waits for the turn of a start; not for ever, and not when too many wait.
    pub(super) async fn start(&self, organization_id: &str) -> Result<Turn, TooManyWait> {
        let turn = timeout(self.start_patience, self.starts.turn(organization_id)).await;
        turn.unwrap_or(Err(TooManyWait))
    }

    /// Starts that wait for their turn.
    pub(super) fn starts_waiting(&self) -> usize {
        self.starts.waiting()
    }

    /// Counts a run that a start brings into memory, unless there are too many.
    pub(super) fn begin_live(&self, organization_id: &Arc<str>) -> Option<Counted> {
        self.live.take(organization_id)
    }

    /// Counts a run that was claimed: it is there already, whatever the limit.
    pub(super) fn resume_live(&self, organization_id: &Arc<str>) -> Counted {
        self.live.taken().add(organization_id);
        self.live.counted(organization_id)
    }

    /// How many claimed runs an organization may bring into memory, so that it has no more there than it leaves free.
    pub(super) fn room_for_claims(&self, organization_id: &str) -> usize {
        let most = for_claims(self.live.most);
        let taken = self.live.taken();
        most.saturating_sub(taken.all + taken.of(organization_id)) / 2
    }

    /// A place for a caller who waits for a run, unless too many do.
    pub(super) fn waiting_place(&self, organization_id: &str) -> Option<WaitingPlace> {
        let counted = self.waiting.take(&organization_id.into())?;
        Some(WaitingPlace { _counted: counted })
    }
}

/// How many of the places in memory claims may fill; the last quarter is for starts.
pub(super) fn for_claims(live_runs: usize) -> usize {
    live_runs - live_runs / 4
}

impl Places {
    fn new(most: usize) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Self { most, taken })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, unless the organization has as many as are free.
    fn take(self: &Arc<Self>, organization_id: &Arc<str>) -> Option<Counted> {
        let mut taken = self.taken();
        if taken.of(organization_id).saturating_add(taken.all) >= self.most {
            return None;
        }
        taken.add(organization_id);
        drop(taken);
        Some(self.counted(organization_id))
    }

    fn counted(self: &Arc<Self>, organization_id: &Arc<str>) -> Counted {
        Counted {
            organization_id: Arc::clone(organization_id),
            places: Arc::clone(self),
        }
    }
}

impl Taken {
    fn of(&self, organization_id: &str) -> usize {
        self.by_organization
            .get(organization_id)
            .copied()
            .unwrap_or_default()
    }

    fn add(&mut self, organization_id: &Arc<str>) {
        self.all += 1;
        *self
            .by_organization
            .entry(Arc::clone(organization_id))
            .or_default() += 1;
    }

    fn remove(&mut self, organization_id: &str) {
        self.all -= 1;
        if let Some(own) = self.by_organization.get_mut(organization_id) {
            *own -= 1;
            if *own == 0 {
                self.by_organization.remove(organization_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test]
    async fn a_start_is_refused_when_many_wait_or_it_waits_for_long() {
        let limits = Limits::new(&RuntimeConfig {
            starts: 1,
            waiting_starts: 2,
            start_patience: Duration::from_millis(20),
            ..RuntimeConfig::default()
        });
        let first = limits.start("org_1").await.unwrap();
        let (waited, refused) = tokio::join!(biased; limits.start("org_1"), limits.start("org_1"));
        assert!(waited.is_err() && refused.is_err());
        drop(first);
        assert!(limits.start("org_1").await.is_ok());
    }

    #[test]
    fn callers_wait_as_far_as_there_is_room_for_others() {
        let limits = Limits::new(&RuntimeConfig {
            waiting_callers: 4,
            ..RuntimeConfig::default()
        });
        let first = limits.waiting_place("org_1");
        let second = limits.waiting_place("org_1");
        assert!(first.is_some() && second.is_some() && limits.waiting_place("org_1").is_none());
        let third = limits.waiting_place("org_2");
        assert!(third.is_some() && limits.waiting_place("org_2").is_none());
        let fourth = limits.waiting_place("org_3");
        assert!(
            fourth.is_some() && limits.waiting_place("org_4").is_none(),
            "the process is full"
        );
        drop(first);
        assert!(limits.waiting_place("org_4").is_some());
    }

    #[test]
    fn what_is_claimed_is_counted_and_never_refused() {
        let limits = Limits::new(&RuntimeConfig {
            live_runs: 2,
            ..RuntimeConfig::default()
        });
        let (flood, other) = (Arc::from("org_1"), Arc::from("org_2"));
        let claimed: Vec<Counted> = (0..5).map(|_| limits.resume_live(&flood)).collect();
        assert!(limits.begin_live(&other).is_none());
        drop(claimed);
        assert!(limits.begin_live(&other).is_some());
        assert!(
            limits.live.taken().by_organization.is_empty(),
            "nothing is remembered"
        );
    }
}
