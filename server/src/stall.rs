//! HTTP/2 streams whose client takes nothing of their answer.
//!
//! A client can leave a stream's window closed while the connection goes on, so a blocked socket does not tell. Each
//! stream is a task; a mark that belongs to it says since when a part of the answer waits to be taken. A stream that
//! waits for its own service is not stalled, however long that takes.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static MARK: Mark;
}

/// Since when a part of an answer waits to be taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark(Arc<Mutex<Option<Instant>>>);

impl Mark {
    /// That of the stream whose task this is; none elsewhere.
    pub(crate) fn current() -> Option<Self> {
        MARK.try_with(Clone::clone).ok()
    }

    /// A part was given.
    pub(crate) fn given(&self) {
        self.set(Some(Instant::now()));
    }

    /// The next part is asked for: what was given has been taken.
    pub(crate) fn taken(&self) {
        self.set(None);
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Completes when a part has waited for so long.
    async fn stalled(&self, patience: Duration) {
        let mut look = Instant::now() + patience;
        loop {
            tokio::time::sleep_until(look).await;
            let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            look = since.unwrap_or(now) + patience;
            if look <= now {
                return;
            }
        }
    }
}

/// Runs the tasks of HTTP/2 streams, and resets those whose client takes nothing for so long.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    pub(crate) patience: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let patience = self.patience;
        tokio::spawn(async move {
            let mark = Mark::default();
            let stalled = mark.clone();
            let mut stream = pin!(MARK.scope(mark, stream));
            tokio::select! {
                biased;
                _ = stream.as_mut() => {}
                // Dropping the stream resets it.
                () = stalled.stalled(patience) => tracing::debug!("a stream that nobody reads was reset"),
            }
        });
    }
}
