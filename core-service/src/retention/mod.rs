//! Deletes what is past its time, for as long as the process lives: ended runs and the feed as plans say, and what the
//! service itself needs for a while only.
//!
//! `chore` is what there is to delete, in small transactions; here is how often, and how much of the database's time that
//! may take. Every process looks; the database lets one of them delete at a time. Absent on purpose: what may be deleted
//! (the store knows what hangs together), and how long anything is kept (plans).

mod chore;
mod metrics;

use std::sync::Arc;
use std::time::Duration;

use chore::Chore;
use metrics::Counters;
pub use metrics::RetentionFigures;
use tokio::time::sleep;

use crate::clock;
use crate::runtime::Runtime;
use crate::store::{RetentionRule, Store, StoreError, Swept};

/// How often and how soon things are deleted.
#[derive(Debug, Clone)]
pub struct RetentionConfig {
    /// How often is looked for what is past its time (10 s).
    pub look_every: Duration,
    /// A run stays for so long after its end in any case (5 s): somebody may be about to read what came of it.
    pub grace: Duration,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            look_every: Duration::from_secs(10),
            grace: Duration::from_secs(5),
        }
    }
}

/// How long a transaction may keep others from writing to SQLite; the next one is smaller or larger accordingly.
const LONG: Duration = Duration::from_millis(8);
const SHORT: Duration = Duration::from_millis(3);
/// Rows of the first transaction, and bounds of the others.
const FIRST: i64 = 64;
const FEWEST: i64 = 4;
const MOST: i64 = 4_096;
/// Rules read at once.
const PAGE: i64 = 500;
/// How long what nodes wrote is remembered after its run has ended: one day, in milliseconds.
const EFFECTS_KEPT_MS: i64 = DAY_MS;
const DAY_MS: i64 = 86_400_000;

/// The worker of this process.
#[derive(Clone)]
pub struct Retention {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    runtime: Runtime,
    config: RetentionConfig,
    counters: Counters,
}

impl Retention {
    /// Sets the worker to work until the runtime drains.
    #[must_use]
    pub fn start(store: Store, runtime: Runtime, config: RetentionConfig) -> Self {
        let shared = Arc::new(Shared {
            store,
            runtime,
            config,
            counters: Counters::default(),
        });
        shared.runtime.employ("retention", run(Arc::clone(&shared)));
        Self { shared }
    }

    /// The figures of this moment.
    #[must_use]
    pub fn figures(&self) -> RetentionFigures {
        self.shared.counters.read()
    }
}

async fn run(shared: Arc<Shared>) {
    while !shared.runtime.is_draining() {
        let before = shared.counters.read();
        if let Err(error) = shared.look().await {
            tracing::warn!(%error, "what is past its time could not be deleted; it will be tried again");
        }
        let now = shared.counters.read();
        let (runs, entries) = (now.runs - before.runs, now.entries - before.entries);
        if runs + entries > 0 {
            let transactions = now.transactions - before.transactions;
            tracing::info!(runs, entries, transactions, "what was past its time is deleted");
        }
        shared.rest(shared.config.look_every).await;
    }
}

impl Shared {
    /// Deletes all that is past its time now.
    async fn look(&self) -> Result<(), StoreError> {
        let now = clock::now_ms();
        self.do_all(&Chore::IdempotencyKeys { now }).await?;
        let before = now - EFFECTS_KEPT_MS;
        self.do_all(&Chore::Effects { before }).await?;
        let mut after = String::new();
        loop {
            let rules = self.store.retention_rules(&after, PAGE).await?;
            let Some(last) = rules.last() else { break };
            after.clone_from(&last.organization_id);
            for rule in &rules {
                self.apply(rule, now).await?;
            }
        }
        self.do_all(&Chore::Remains).await?;
        self.do_all(&Chore::Space).await?;
        if let Some(shortened) = self.store.shorten_log().await? {
            self.counters.count(&shortened);
            tracing::debug!(pages = shortened.deleted, "the write-ahead log was begun anew");
        }
        Ok(())
    }

    async fn apply(&self, rule: &RetentionRule, now: i64) -> Result<(), StoreError> {
        let organization_id = rule.organization_id.as_str();
        let too_old = rule.days.map(|days| days_before(now, days));
        let too_many = match rule.runs {
            None => None,
            Some(0) => Some(i64::MAX),
            Some(runs) => self.store.end_of_oldest_kept(organization_id, runs).await?,
        };
        if let Some(before) = too_old.max(too_many) {
            let grace = i64::try_from(self.config.grace.as_millis()).unwrap_or(i64::MAX);
            let before = before.min(now - grace);
            self.do_all(&Chore::Runs {
                organization_id,
                before,
            })
            .await?;
        }
        if let Some(days) = rule.activity_days {
            let before = days_before(now, days);
            self.do_all(&Chore::Activity {
                organization_id,
                before,
            })
            .await?;
        }
        Ok(())
    }

    /// Does a chore until nothing is left of it. After each transaction the database is left to others for as long as
    /// that took.
    async fn do_all(&self, chore: &Chore<'_>) -> Result<(), StoreError> {
        let mut size = FIRST;
        while !self.runtime.is_draining() {
            let swept = chore.step(&self.store, size).await?;
            if swept.deleted == 0 {
                break;
            }
            self.counters.count(&swept);
            chore.count(&self.counters, &swept);
            if chore.is_done(&swept, size) {
                break;
            }
            size = next_size(size, &swept);
            self.rest(swept.took).await;
        }
        Ok(())
    }

    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.runtime.drained() => {}
        }
    }
}

fn next_size(size: i64, swept: &Swept) -> i64 {
    match swept.took {
        took if took > LONG => (size / 2).max(FEWEST),
        took if took < SHORT => (size * 2).min(MOST),
        _ => size,
    }
}

fn days_before(now: i64, days: i64) -> i64 {
    now.saturating_sub(days.saturating_mul(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_stay_short() {
        let took = |took| Swept { deleted: 1, took };
        assert_eq!(next_size(64, &took(LONG * 2)), 32);
        assert_eq!(next_size(FEWEST, &took(LONG * 2)), FEWEST);
        assert_eq!(next_size(64, &took(SHORT)), 64);
        assert_eq!(next_size(64, &took(SHORT / 2)), 128);
        assert_eq!(next_size(MOST, &took(Duration::ZERO)), MOST);
    }

    #[test]
    fn however_many_days_there_is_an_instant() {
        assert_eq!(days_before(DAY_MS * 3, 2), DAY_MS);
        assert_eq!(days_before(0, i64::MAX), -i64::MAX);
    }
}
