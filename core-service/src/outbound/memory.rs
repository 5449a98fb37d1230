//! The memory that answers take while they are read, shared by all of them.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Bytes of all answers that are being read.
pub(super) const MOST_BYTES: usize = 256 * 1024 * 1024;
/// Memory is taken in pieces of this size.
const PIECE: usize = 16 * 1024;

/// The memory there is. Cheap to clone; clones are the same memory.
#[derive(Clone)]
pub(super) struct Memory(Arc<Semaphore>);

/// What one answer has of it. Given back when dropped.
pub(super) struct Account {
    memory: Memory,
    taken: usize,
    used: usize,
}

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    pub(super) fn account(&self) -> Account {
        Account {
            memory: self.clone(),
            taken: 0,
            used: 0,
        }
    }
}

impl Account {
    /// Uses so many bytes more. Says whether there are so many.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let used = self.used.saturating_add(bytes);
        let more = used.div_ceil(PIECE).saturating_sub(self.taken);
        let granted = u32::try_from(more)
            .ok()
            .and_then(|more| self.memory.0.try_acquire_many(more).ok());
        let Some(granted) = granted else { return false };
        granted.forget();
        self.taken += more;
        self.used = used;
        true
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.memory.0.add_permits(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_share_what_there_is_and_give_it_back() {
        let memory = Memory::new(4 * PIECE);
        let (mut first, mut second) = (memory.account(), memory.account());
        assert!(first.take(1) && first.take(PIECE - 1) && first.take(2 * PIECE));
        assert!(!second.take(PIECE + 1), "only a piece is left");
        assert!(second.take(PIECE) && !first.take(1));
        drop(first);
        assert!(second.take(3 * PIECE) && !second.take(1));
    }
}
