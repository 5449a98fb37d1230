//! What the requests in flight in the process share: places, and memory for their bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;

/// What the requests in flight in the process share. Cheap to clone; clones are the same one.
#[derive(Debug, Clone)]
pub struct Capacity {
    places: Arc<Semaphore>,
    /// Bytes of bodies.
    memory: Arc<Semaphore>,
}

/// The place of a request in flight. Given up when dropped.
pub(crate) struct Place(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

/// The memory that one request's body has taken. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Semaphore>,
    taken: AtomicUsize,
}

impl Capacity {
    /// What these limits allow one process.
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.max_requests as usize)),
            memory: Arc::new(Semaphore::new((limits.body_memory_mib as usize) << 20)),
        }
    }

    /// A place, if there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(Place)
    }

    /// An account for a request's body.
    pub(crate) fn account(&self) -> Account {
        Account {
            memory: Arc::clone(&self.memory),
            taken: AtomicUsize::new(0),
        }
    }
}

impl Account {
    /// Takes memory; says whether there was so much.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let taken = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.memory.try_acquire_many(bytes).ok());
        let Some(taken) = taken else { return false };
        taken.forget();
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        true
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.memory.add_permits(*self.taken.get_mut());
    }
}
