//! Keeps workflows that compute for long from holding the threads that everybody needs.
//!
//! A plan whose step once took long is slow from then on: its steps wait for one of a few turns, which go round among
//! organizations, and run where they hold up nobody else. The others pay two looks at the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::turns::{Turn, Turns};

/// A step that takes longer makes its plan a slow one.
const LONG: Duration = Duration::from_millis(5);

/// How long the steps of a plan take.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    is_slow: Arc<AtomicBool>,
}

impl Pace {
    /// Runs a step of the plan.
    pub(super) fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        if self.is_slow.load(Relaxed) {
            return apart(step);
        }
        let began = Instant::now();
        let stepped = step();
        if began.elapsed() > LONG {
            self.is_slow.store(true, Relaxed);
        }
        stepped
    }

    /// The turn of a slow plan's next steps. Others need none.
    pub(super) async fn turn(&self, turns: &Turns, organization_id: &str) -> Option<Turn> {
        if !self.is_slow.load(Relaxed) {
            return None;
        }
        turns.turn(organization_id).await.ok()
    }
}

/// Slow steps that may run at once: half of the machine.
pub(super) fn slow_steps_at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).max(1)
}

/// Lets the other tasks of this thread go on elsewhere meanwhile, where there is an elsewhere.
fn apart<T>(step: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(step),
        _ => step(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Share;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_slow_plan_waits_for_its_turn_and_holds_up_nobody() {
        let (pace, turns) = (Pace::default(), Turns::new(1, Share::of_each(1), usize::MAX));
        assert!(
            pace.turn(&turns, "org_1").await.is_none(),
            "not known to be slow yet"
        );
        pace.run(|| std::thread::sleep(LONG * 2));
        let turn = pace.turn(&turns, "org_1").await;
        assert!(turn.is_some());
        assert_eq!(turns.taken(), 1);
        // The only thread is in a step that ends when another task has run.
        let slow = tokio::spawn(async move {
            let (sender, receiver) = std::sync::mpsc::channel();
            tokio::spawn(async move { sender.send(()) });
            pace.run(|| receiver.recv())
        });
        assert!(slow.await.is_ok_and(|received| received.is_ok()));
    }
}
