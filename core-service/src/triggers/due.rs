//! Looking for what is due, again and again, and dealing with it: what all workers have in common.
//!
//! Whichever process of the cluster looks first claims what it finds, for a while. What is slow holds up nothing but its own
//! place. What a process is at when it drains goes on until the process ends; whoever looks next does the rest again.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::Shared;
use crate::store::{NextWake, StoreError, Topic};

/// Before looking again for what another process is just claiming.
const CLAIMED_ELSEWHERE: Duration = Duration::from_millis(50);

/// A worker.
pub(super) trait Worker: Send + Sync + 'static {
    /// What is due.
    type Due: Send + 'static;
    /// What is announced when some of it may be due earlier.
    const TOPIC: Topic;
    /// Dealt with at the same time.
    const AT_ONCE: usize;
    /// How often it is looked for when nothing is announced: the safety net under announcements, and for what another
    /// process left when it died.
    const LOOK_EVERY: Duration = Duration::from_secs(5);

    fn shared(&self) -> &Shared;

    /// When the next is due, if any.
    fn next(&self) -> impl Future<Output = Result<Option<NextWake>, StoreError>> + Send;

    /// Claims some of what is due.
    fn claim(&self, limit: i64) -> impl Future<Output = Result<Vec<Self::Due>, StoreError>> + Send;

    /// Deals with one of it; what the database keeps it from is tried again when the claim is over.
    fn deal_with(&self, due: Self::Due) -> impl Future<Output = ()> + Send;
}

/// Deals with what is due until the process drains.
pub(super) async fn run<W: Worker>(worker: Arc<W>) {
    let shared = worker.shared();
    let mut subscription = shared.store.subscribe();
    let mut under_way = JoinSet::new();
    while !shared.runtime.is_draining() {
        let pause = look(&worker, &mut under_way).await.unwrap_or_else(|error| {
            tracing::warn!(%error, topic = ?W::TOPIC, "what is due could not be looked for; it will be tried again");
            W::LOOK_EVERY
        });
        tokio::select! {
            () = shared.rest(&mut subscription, W::TOPIC, pause) => {}
            // What has been dealt with may be due again at once, like the next instant of a schedule that is behind.
            Some(_done) = under_way.join_next() => {}
        }
    }
    while under_way.join_next().await.is_some() {}
}

/// Lets all be dealt with that is due, as far as there is room. Gives how long nothing will be.
async fn look<W: Worker>(worker: &Arc<W>, under_way: &mut JoinSet<()>) -> Result<Duration, StoreError> {
    while !worker.shared().runtime.is_draining() {
        while under_way.try_join_next().is_some() {}
        match worker.next().await? {
            None => return Ok(W::LOOK_EVERY),
            Some(next) if !next.is_due() => {
                return Ok(W::LOOK_EVERY.min(Duration::from_millis(next.wake_at.abs_diff(next.now))));
            }
            Some(_) => {}
        }
        let room = W::AT_ONCE.saturating_sub(under_way.len());
        if room == 0 {
            under_way.join_next().await;
            continue;
        }
        let claimed = worker.claim(i64::try_from(room).unwrap_or(1)).await?;
        if claimed.is_empty() {
            return Ok(CLAIMED_ELSEWHERE);
        }
        for due in claimed {
            let worker = Arc::clone(worker);
            under_way.spawn(async move { worker.deal_with(due).await });
        }
    }
    Ok(W::LOOK_EVERY)
}
