//! The runs in memory, each with the mailbox of the task that drives it. At most one task drives a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc};

use super::request::Request;

/// Requests that may wait for one run.
const MAILBOX: usize = 32;

#[derive(Default)]
pub(super) struct LiveRuns {
    mailboxes: Mutex<HashMap<Arc<str>, mpsc::Sender<Request>>>,
    left: Notify,
}

/// The right to drive a run in this process. Given up when dropped.
pub(super) struct Seat {
    run_id: Arc<str>,
    live: Arc<LiveRuns>,
    /// Dropped after the run has left the map: whoever sees it closed finds the seat free.
    pub(super) mailbox: mpsc::Receiver<Request>,
}

impl LiveRuns {
    /// Takes the seat of a run, or gives the mailbox of the task that has it.
    pub(super) fn enter(self: &Arc<Self>, run_id: &Arc<str>) -> Result<Seat, mpsc::Sender<Request>> {
        let mut mailboxes = self.lock();
        if let Some(mailbox) = mailboxes.get(run_id) {
            return Err(mailbox.clone());
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        mailboxes.insert(Arc::clone(run_id), sender);
        Ok(Seat {
            run_id: Arc::clone(run_id),
            live: Arc::clone(self),
            mailbox,
        })
    }

    /// As `enter`, once the task that has the seat has left it.
    pub(super) async fn enter_next(self: &Arc<Self>, run_id: &Arc<str>) -> Seat {
        loop {
            match self.enter(run_id) {
                Ok(seat) => return seat,
                Err(occupied) => occupied.closed().await,
            }
        }
    }

    pub(super) fn mailbox(&self, run_id: &str) -> Option<mpsc::Sender<Request>> {
        self.lock().get(run_id).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Completes when a run leaves from now on.
    pub(super) fn left(&self) -> Notified<'_> {
        self.left.notified()
    }

    /// Waits until no run is left.
    pub(super) async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.len() == 0 {
                return;
            }
            left.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, mpsc::Sender<Request>>> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.live.lock().remove(&self.run_id);
        self.live.left.notify_waiters();
    }
}
