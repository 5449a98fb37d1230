//! The timers of one run while it is in memory.
//!
//! They are rebuilt from the journal whenever the run is taken up, so the database keeps only one row for a run that is
//! not in memory: the alarm, which is the earliest of them.

use std::collections::{BTreeSet, HashMap};

use engine::timer::TimerKey;

/// The key of the one timer row that a sleeping run has.
pub(super) const ALARM: &str = "alarm";

#[derive(Debug, Default)]
pub(super) struct Timers {
    due: HashMap<TimerKey, i64>,
    order: BTreeSet<(i64, TimerKey)>,
}

impl Timers {
    /// Sets or moves a timer.
    pub(super) fn set(&mut self, key: TimerKey, due_at_ms: i64) {
        self.cancel(&key);
        self.due.insert(key.clone(), due_at_ms);
        self.order.insert((due_at_ms, key));
    }

    pub(super) fn cancel(&mut self, key: &TimerKey) {
        if let Some((key, due_at_ms)) = self.due.remove_entry(key) {
            self.order.remove(&(due_at_ms, key));
        }
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.order.clear();
    }

    /// When a timer is due, in epoch milliseconds.
    pub(super) fn due_at(&self, key: &TimerKey) -> Option<i64> {
        self.due.get(key).copied()
    }

    /// When the earliest is due, in epoch milliseconds.
    pub(super) fn next_due(&self) -> Option<i64> {
        self.order.first().map(|(due_at_ms, _)| *due_at_ms)
    }

    /// Takes the earliest, when it is due.
    pub(super) fn take_due(&mut self, now_ms: i64) -> Option<TimerKey> {
        if self.next_due()? > now_ms {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use engine::event::NodeKey;

    use super::*;

    fn node(id: i64) -> TimerKey {
        TimerKey::Node(NodeKey::root(id))
    }

    #[test]
    fn timers_come_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        timers.set(node(1), 30);
        timers.set(node(2), 10);
        timers.set(TimerKey::Run, 20);
        assert_eq!(timers.take_due(9), None);
        assert_eq!(timers.take_due(20), Some(node(2)));
        assert_eq!(timers.take_due(20), Some(TimerKey::Run));
        assert_eq!(timers.take_due(20), None);
        assert_eq!((timers.next_due(), timers.due_at(&node(1))), (Some(30), Some(30)));
    }

    #[test]
    fn setting_again_moves_and_cancelling_forgets() {
        let mut timers = Timers::default();
        timers.set(node(1), 10);
        timers.set(node(1), 50);
        assert_eq!(timers.take_due(49), None);
        assert_eq!(timers.next_due(), Some(50));
        timers.cancel(&node(1));
        assert_eq!(timers.next_due(), None);
        assert_eq!(timers.take_due(i64::MAX), None);
    }
}
