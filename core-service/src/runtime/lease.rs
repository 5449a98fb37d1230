//! The lease of this process: granted, renewed in the background, lost.
//!
//! Each grant is a generation. Whatever drives a run remembers the generation it began in, and stops when that is over;
//! so a process that lost its runs cannot go on writing to them under a later lease of its own. The database's clock
//! judges leases; this process judges itself by its monotonic clock, and more strictly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Shared;
use super::metrics::count;
use crate::clock;
use crate::store::{CommitError, Lease, StoreError};

/// A lease while it is held.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) generation: u64,
    pub(super) lease: Arc<Lease>,
}

/// The lease that this process holds now, if any.
pub(super) struct LeaseCell {
    held: watch::Sender<Option<Held>>,
    generations: AtomicU64,
}

impl LeaseCell {
    pub(super) fn new() -> Self {
        Self {
            held: watch::Sender::new(None),
            generations: AtomicU64::new(0),
        }
    }

    pub(super) fn current(&self) -> Option<Held> {
        self.held.borrow().clone()
    }

    /// The lease of a generation, while that lasts.
    pub(super) fn of(&self, generation: u64) -> Option<Held> {
        self.current().filter(|held| held.generation == generation)
    }

    /// Waits until the generation is over.
    pub(super) async fn ended(&self, generation: u64) {
        let is_over = |held: &Option<Held>| held.as_ref().is_none_or(|held| held.generation != generation);
        // The sender is part of this cell, so the channel cannot close first.
        let mut held = self.held.subscribe();
        let _ended = held.wait_for(is_over).await;
    }

    /// Waits for another lease than that of `generation`.
    pub(super) async fn granted_after(&self, generation: u64) {
        let is_later = |held: &Option<Held>| held.as_ref().is_some_and(|held| held.generation > generation);
        let mut held = self.held.subscribe();
        let _granted = held.wait_for(is_later).await;
    }

    pub(super) fn grant(&self, lease: Lease) {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.held.send_replace(Some(Held {
            generation,
            lease: Arc::new(lease),
        }));
    }

    /// Ends a generation; gives whether it was the current one.
    pub(super) fn end(&self, generation: u64) -> bool {
        self.held.send_if_modified(|held| {
            let is_current = held.as_ref().is_some_and(|held| held.generation == generation);
            if is_current {
                *held = None;
            }
            is_current
        })
    }
}

/// Longest pause between attempts to register.
const REGISTER_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Shared {
    pub(super) async fn register(&self) -> Result<(), StoreError> {
        let duration_ms = i64::try_from(self.config.lease.as_millis()).unwrap_or(i64::MAX);
        self.set_clock().await?;
        let lease = self.store.register_process(duration_ms).await?;
        self.lease.grant(lease);
        Ok(())
    }

    /// Goes by the database's clock, as all processes do.
    async fn set_clock(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        let time = self.store.time().await?;
        clock::set(time, began.elapsed());
        Ok(())
    }

    /// The process's runs are another's now.
    pub(super) fn lease_lost(&self, generation: u64) {
        if self.lease.end(generation) {
            count(&self.metrics.leases_lost);
            tracing::warn!("this process lost its lease; it stops its runs and registers anew");
        }
    }
}

/// Keeps a lease until the process has retired.
pub(super) async fn keep(shared: Arc<Shared>, mut confirmed: Instant) {
    loop {
        if let Some(held) = shared.lease.current() {
            renew_until_over(&shared, &held, confirmed).await;
            if shared.is_draining() {
                return;
            }
            // If nobody took over yet, the runs need not wait for the lease to expire.
            let retired = timeout(shared.config.lease / 3, shared.store.retire_process(&held.lease)).await;
            tracing::debug!(gave_up = matches!(retired, Ok(Ok(()))), "the old lease is over");
        }
        if shared.is_draining() {
            return;
        }
        confirmed = Instant::now();
        if let Err(error) = shared.register().await {
            tracing::warn!(%error, "this process cannot register; it will try again");
            sleep(REGISTER_AGAIN_AFTER.min(shared.config.lease / 3)).await;
        }
    }
}

/// Renews every third of the lease. Returns once the lease is given up, lost, or could not be confirmed for two thirds of it.
async fn renew_until_over(shared: &Shared, held: &Held, mut confirmed: Instant) {
    let third = shared.config.lease / 3;
    let mut renewal_at = confirmed + third;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(renewal_at) => {}
            () = shared.lease.ended(held.generation) => return,
        }
        let began = Instant::now();
        match timeout_at(confirmed + 2 * third, shared.store.renew_lease(&held.lease)).await {
            Ok(Ok(())) => {
                confirmed = began;
                renewal_at = began + third;
                if let Ok(Err(error)) = timeout(third / 2, shared.set_clock()).await {
                    tracing::debug!(%error, "the database was not asked for the time");
                }
            }
            Ok(Err(CommitError::Store(error))) if Instant::now() < confirmed + 2 * third => {
                tracing::warn!(%error, "the lease could not be renewed; it will be tried again");
                renewal_at = Instant::now() + third / 8;
            }
            _ => return shared.lease_lost(held.generation),
        }
    }
}
