//! How a server's end is told.

use tokio::sync::watch;

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Phase {
    Serving,
    Draining,
    Over,
}

/// Tells when the server begins to close: an extension of each request, for answers without an end of their own.
#[derive(Debug, Clone, Default)]
pub struct Closing(Option<watch::Receiver<Phase>>);

impl Closing {
    pub(crate) fn of(phases: watch::Receiver<Phase>) -> Self {
        Self(Some(phases))
    }

    /// Waits until the server closes.
    pub async fn wait(self) {
        self.reach(Phase::Draining).await;
    }

    /// Whether the server closes.
    pub(crate) fn has_begun(&self) -> bool {
        let phase = self.0.as_ref().map(|phase| *phase.borrow());
        phase.is_some_and(|phase| phase >= Phase::Draining)
    }

    pub(crate) async fn reach(self, wanted: Phase) {
        match self.0 {
            // A server that is gone has closed.
            Some(mut phase) => _ = phase.wait_for(|phase| *phase >= wanted).await,
            None => std::future::pending().await,
        }
    }
}
