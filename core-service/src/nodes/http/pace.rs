//! How fast apps are called: requests beyond a manifest's rate wait for their turn.
//!
//! Each process counts for itself. Several of them may exceed a rate together; what the service says then
//! (`429`, `Retry-After`) is heeded all the same.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use moka::sync::Cache;

use crate::connectors::{App, RateLimit};

type Limiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock>;

/// A limiter that was idle for so long is as good as new.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Counts the requests to each app, of each account.
#[derive(Clone)]
pub(super) struct Pace {
    limiters: Cache<(String, String, RateLimit), Arc<Limiter>>,
    clock: DefaultClock,
}

impl Default for Pace {
    fn default() -> Self {
        let limiters = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(FORGOTTEN_AFTER)
            .build();
        Self {
            limiters,
            clock: DefaultClock::default(),
        }
    }
}

impl Pace {
    /// Waits until the account may call the app once more.
    pub(super) async fn wait(&self, app: &App, account: &str) {
        let Some(rate) = app.rate_limit else { return };
        let Some(quota) = quota(rate) else { return };
        let key = (app.id.clone(), account.to_owned(), rate);
        let limiter = self.limiters.get_with(key, || {
            Arc::new(RateLimiter::direct_with_clock(quota, self.clock.clone()))
        });
        while let Err(not_yet) = limiter.check() {
            tokio::time::sleep(not_yet.wait_time_from(self.clock.now())).await;
        }
    }
}

fn quota(rate: RateLimit) -> Option<Quota> {
    let requests = NonZeroU32::new(rate.requests)?;
    let period = Duration::from_secs(rate.seconds.into()).checked_div(rate.requests)?;
    Some(Quota::with_period(period)?.allow_burst(requests))
}
