//! What a connection is waiting for, and since when.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::Limits;

/// How a connection of HTTP/2 begins, and how much of it tells one from HTTP/1.1.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const TELLING: usize = 3;

/// What a connection is waiting for.
#[derive(Debug)]
pub(crate) struct Pulse(Mutex<Beat>);

#[derive(Debug)]
struct Beat {
    requests: usize,
    /// Since when there is no request, while there is none.
    quiet_since: Instant,
    /// Since when the client owes the rest of a head.
    head_since: Option<Instant>,
    /// The first bytes.
    beginning: [u8; TELLING],
    received: usize,
}

/// A request in flight. Over when dropped.
pub(crate) struct InFlight(Arc<Pulse>);

/// Why a connection should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// A head is not there in time.
    Head,
    /// Nothing was asked for long.
    Idle,
}

impl Pulse {
    /// A connection that has just been made: its client owes a first head.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Beat {
            requests: 0,
            quiet_since: now,
            head_since: Some(now),
            beginning: [0; TELLING],
            received: 0,
        }))
    }

    /// The client has sent bytes.
    pub(crate) fn received(&self, bytes: &[u8]) {
        let mut beat = self.lock();
        for (place, byte) in (beat.received..TELLING).zip(bytes) {
            beat.beginning[place] = *byte;
        }
        beat.received = beat.received.saturating_add(bytes.len());
        if beat.is_http2() {
            // Of HTTP/2 only the preface is waited for like this: pings tell whether a client still sends.
            if beat.received >= PREFACE.len() {
                beat.head_since = None;
            }
        } else if beat.requests == 0 {
            beat.head_since.get_or_insert_with(Instant::now);
        }
    }

    /// A request's head has arrived.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        let mut beat = self.lock();
        beat.requests += 1;
        beat.head_since = None;
        drop(beat);
        InFlight(Arc::clone(self))
    }

    /// Whether the client speaks HTTP/2, as far as it has spoken.
    pub(crate) fn is_http2(&self) -> bool {
        self.lock().is_http2()
    }

    /// When the connection should end, unless something happens; and why.
    fn overdue(&self, limits: &Limits) -> (Instant, Option<Overdue>) {
        let beat = self.lock();
        match (beat.requests, beat.head_since) {
            (0, Some(since)) => (since + limits.header_timeout, Some(Overdue::Head)),
            (0, None) => (beat.quiet_since + limits.idle_timeout, Some(Overdue::Idle)),
            _ => (Instant::now() + limits.idle_timeout, None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Beat> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    fn is_http2(&self) -> bool {
        let known = self.received.min(TELLING);
        known > 0 && self.beginning[..known] == PREFACE[..known]
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut beat = self.0.lock();
        beat.requests -= 1;
        beat.quiet_since = Instant::now();
    }
}

/// Completes when a connection should end. To be polled whenever the connection is, which may bring the end nearer.
pub(crate) struct Patience<'l> {
    pulse: Arc<Pulse>,
    limits: &'l Limits,
    sleep: Pin<Box<Sleep>>,
}

impl<'l> Patience<'l> {
    pub(crate) fn new(pulse: Arc<Pulse>, limits: &'l Limits) -> Self {
        let (until, _) = pulse.overdue(limits);
        Self {
            pulse,
            limits,
            sleep: Box::pin(tokio::time::sleep_until(until)),
        }
    }
}

impl Future for Patience<'_> {
    type Output = Overdue;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Overdue> {
        let this = &mut *self;
        loop {
            let (until, why) = this.pulse.overdue(this.limits);
            // An end that has moved away is looked at when the old one is there: most requests move it.
            if until < this.sleep.deadline() {
                this.sleep.as_mut().reset(until);
            }
            if this.sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            match why {
                Some(why) if until <= Instant::now() => return Poll::Ready(why),
                _ => this
                    .sleep
                    .as_mut()
                    .reset(until.max(Instant::now() + Duration::from_millis(1))),
            }
        }
    }
}
