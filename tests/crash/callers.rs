//! Callers of webhooks, and the ledger of what they sent and what was answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use test_support::wire::{Connection, request};
use test_support::{PATIENCE, text, workload};

/// Id of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook(pub(crate) String);

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// Its `webhook-id`.
    pub(crate) id: String,
    pub(crate) hook: Hook,
    /// The run it was acknowledged with, if it was.
    pub(crate) run_id: Option<String>,
}

/// Calls to be made, each once, and their outcomes.
pub(crate) struct Ledger {
    calls: usize,
    next: AtomicUsize,
    sent: Mutex<Vec<Sent>>,
    acknowledged: Acknowledged,
}

/// How many calls have been acknowledged.
#[derive(Default)]
pub(crate) struct Acknowledged {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Acknowledged {
    /// Waits until so many are.
    pub(crate) fn wait_for(&self, number: usize) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(count, PATIENCE, |count| *count < number);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(
            *count >= number,
            "only {count} calls are acknowledged after {PATIENCE:?}"
        );
    }

    fn one_more(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}

impl Ledger {
    pub(crate) fn new(calls: usize) -> Self {
        Self {
            calls,
            next: AtomicUsize::new(0),
            sent: Mutex::default(),
            acknowledged: Acknowledged::default(),
        }
    }

    /// Makes the calls over many connections, in turn to each of the hooks, and does something meanwhile. Returns when
    /// both are done; calls that the end of the server cuts off are entered as not acknowledged.
    pub(crate) fn send_all(
        &self,
        address: SocketAddr,
        hooks: &[Hook],
        connections: usize,
        meanwhile: impl FnOnce(&Acknowledged),
    ) {
        std::thread::scope(|scope| {
            for _ in 0..connections {
                scope.spawn(|| self.send_some(address, hooks));
            }
            meanwhile(&self.acknowledged);
        });
    }

    fn send_some(&self, address: SocketAddr, hooks: &[Hook]) {
        let mut connection = Connection::open(address).ok();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.calls {
                return;
            }
            let (id, hook) = (format!("call-{number}"), hooks[number % hooks.len()].clone());
            let run_id = connection.as_mut().and_then(|open| call(open, &id, &hook).ok());
            if run_id.is_some() {
                self.acknowledged.one_more();
            } else {
                connection = None;
            }
            let sent = Sent { id, hook, run_id };
            self.sent
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(sent);
        }
    }

    /// All calls by number.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sent.sort_by_key(|sent| (sent.id.len(), sent.id.clone()));
        sent
    }
}

/// Makes a call and gives the run; an error when the connection broke.
fn call(connection: &mut Connection, id: &str, hook: &Hook) -> std::io::Result<String> {
    let path = format!("/hooks/{}", hook.0);
    let call = request("POST", &path, &[("webhook-id", id)], &workload::body());
    for attempt in 0..REFUSALS {
        let answer = connection.exchange(&call)?;
        match answer.status {
            202 => {
                let body: Value = serde_json::from_slice(&answer.body)?;
                return Ok(text(&body["data"]["runId"]));
            }
            // Not now, and nothing has been started, or it will be found by its id.
            429 | 503 => std::thread::sleep(Duration::from_millis(50 << attempt)),
            status => panic!("{id}: {status} {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    panic!("{id} is refused again and again");
}

/// How often a call may be told to come again.
const REFUSALS: u32 = 7;
