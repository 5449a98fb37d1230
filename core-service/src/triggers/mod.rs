//! What starts runs without anybody asking: schedules.
//!
//! Each is a worker that looks for what the database says is to be done, wherever in the cluster it came up. Absent on
//! purpose: webhooks and calls of the API, whose callers wait for an answer (services), and what a run does (runtime).

mod metrics;
mod schedule;

use std::sync::Arc;

pub use metrics::TriggerFigures;

use crate::runtime::Runtime;
use crate::store::Store;
use metrics::Counters;

/// The workers of this process.
#[derive(Clone)]
pub struct Triggers {
    shared: Arc<Shared>,
}

/// What the workers share.
struct Shared {
    store: Store,
    runtime: Runtime,
    counters: Counters,
}

impl Triggers {
    /// Sets the workers to work, until the runtime drains.
    #[must_use]
    pub fn start(store: Store, runtime: Runtime) -> Self {
        let shared = Arc::new(Shared {
            store,
            runtime,
            counters: Counters::default(),
        });
        shared
            .runtime
            .employ("schedule", schedule::run(Arc::clone(&shared)));
        Self { shared }
    }

    /// The figures of this moment.
    #[must_use]
    pub fn figures(&self) -> TriggerFigures {
        self.shared.counters.read()
    }
}
