//! Keeps workflows that compute for long from holding the threads that everybody needs.
//!
//! A plan whose step once took long is slow from then on: its steps wait for one of a few turns and run where they hold
//! up nobody else. The others pay two looks at the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::block_in_place;

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
    pub(super) async fn turn<'a>(&self, turns: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        if !self.is_slow.load(Relaxed) {
            return None;
        }
        turns.acquire().await.ok()
    }
}

/// Slow steps that may run at once: half of the machine.
pub(super) fn turns() -> Semaphore {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores / 2).max(1))
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_slow_plan_waits_for_its_turn_and_holds_up_nobody() {
        let (pace, turns) = (Pace::default(), Semaphore::new(1));
        assert!(pace.turn(&turns).await.is_none(), "not known to be slow yet");
        pace.run(|| std::thread::sleep(LONG * 2));
        let turn = pace.turn(&turns).await;
        assert!(turn.is_some());
        assert_eq!(turns.available_permits(), 0);
        // The only thread is in a step that ends when another task has run.
        let slow = tokio::spawn(async move {
            let (sender, receiver) = std::sync::mpsc::channel();
            tokio::spawn(async move { sender.send(()) });
            pace.run(|| receiver.recv())
        });
        assert!(slow.await.is_ok_and(|received| received.is_ok()));
    }
}
