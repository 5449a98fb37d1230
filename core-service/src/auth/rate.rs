//! Rate limits: reads and writes of a key, counted apart, by the rates of its organization's plan.
//!
//! Each process counts for itself. A key may use its whole minute's share at once and gets it back evenly (GCRA).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderName, HeaderValue};
use moka::sync::Cache;

use super::caller::KeyHolder;

type Limiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// The window that plans state their rates for.
const WINDOW: Duration = Duration::from_secs(60);
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Read,
    Write,
}

/// Counts the calls of every key.
#[derive(Clone)]
pub struct Rates {
    limiters: Cache<(String, Class, u32), Arc<Limiter>>,
    clock: DefaultClock,
}

/// How a call stands to its limit, as the headers of its answer tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    class: Class,
    per_minute: u32,
    remaining: u32,
    /// How long to wait; none when the call may pass.
    retry_after: Option<Duration>,
}

impl Default for Rates {
    fn default() -> Self {
        // A limiter that was idle for its window is as good as new.
        let limiters = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(2 * WINDOW)
            .build();
        Self {
            limiters,
            clock: DefaultClock::default(),
        }
    }
}

impl Rates {
    /// Counts a call; nothing when the plan has no limit for it.
    pub fn count(&self, holder: &KeyHolder, reads: bool) -> Option<Standing> {
        let plan = &holder.organization.plan;
        let (class, per_minute) = match reads {
            true => (Class::Read, plan.read_rpm?),
            false => (Class::Write, plan.write_rpm?),
        };
        let per_minute = u32::try_from(per_minute).unwrap_or(u32::MAX);
        let Some(rate) = NonZeroU32::new(per_minute) else {
            // A plan that allows none.
            return Some(Standing {
                class,
                per_minute,
                remaining: 0,
                retry_after: Some(WINDOW),
            });
        };
        let limiter = self
            .limiters
            .get_with((holder.key.id.clone(), class, per_minute), || {
                let limiter = RateLimiter::direct(Quota::per_minute(rate));
                Arc::new(limiter.with_middleware::<StateInformationMiddleware>())
            });
        Some(match limiter.check() {
            Ok(state) => Standing {
                class,
                per_minute,
                remaining: state.remaining_burst_capacity(),
                retry_after: None,
            },
            Err(refused) => {
                let wait = refused.wait_time_from(self.clock.now());
                Standing {
                    class,
                    per_minute,
                    remaining: 0,
                    retry_after: Some(wait),
                }
            }
        })
    }
}

impl Standing {
    /// How long to wait before the next try, for a call that may not pass.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Puts `RateLimit` and `RateLimit-Policy` on an answer.
    pub fn tell(&self, headers: &mut HeaderMap) {
        let name = match self.class {
            Class::Read => "read",
            Class::Write => "write",
        };
        // Until the whole share is there again.
        let used = u64::from(self.per_minute.saturating_sub(self.remaining));
        let reset = (WINDOW.as_secs() * used).div_ceil(u64::from(self.per_minute.max(1)));
        let limit = format!("\"{name}\";r={};t={reset}", self.remaining);
        let policy = format!("\"{name}\";q={};w={}", self.per_minute, WINDOW.as_secs());
        for (header, value) in [(RATE_LIMIT, limit), (RATE_LIMIT_POLICY, policy)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(header, value);
            }
        }
    }
}
