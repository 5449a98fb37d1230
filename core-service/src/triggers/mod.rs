//! What starts runs without a caller: schedules, failures of other runs, nodes of other runs, new items of services; and
//! what services are told so that they call.
//!
//! `schedule`, `ending`, `poll` and `registration` are workers: each looks for what the database says is to be done,
//! wherever in the cluster it came up. `call` is what a node does. Absent on purpose: calls of webhooks and of the API, whose
//! callers wait for an answer (services), and what a run does (runtime).

mod answer;
mod call;
mod due;
mod ending;
mod key;
mod known;
mod metrics;
mod poll;
mod question;
mod registration;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use call::Reach;
pub use call::{MAX_DEPTH, WorkflowCalls};
pub use metrics::TriggerFigures;

use crate::catalog::Catalog;
use crate::nodes::Registry;
use crate::nodes::app_caller::AppCaller;
use crate::registrations::Registrations;
use crate::runtime::Runtime;
use crate::store::{Store, Subscription, Topic};
use ending::Teller;
use metrics::Counters;
use poll::Poller;
use registration::Registrar;
use schedule::Scheduler;
use tokio::time::sleep;

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
    /// Calls go on as long as the workers do.
    _reach: Arc<Reach>,
}

impl Shared {
    /// Waits until something of a topic is announced, but no longer than a pause, nor after the process drains.
    async fn rest(&self, subscription: &mut Subscription, topic: Topic, pause: Duration) {
        let announced = async {
            while subscription
                .next()
                .await
                .is_some_and(|notification| notification.topic != topic)
            {}
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = announced => {}
            () = self.runtime.drained() => {}
        }
    }
}

impl Triggers {
    /// Sets the workers to work, until the runtime drains, and lets calls of workflows begin.
    #[must_use]
    pub fn start(store: Store, runtime: Runtime, registry: Arc<Registry>, calls: &WorkflowCalls) -> Self {
        let reach = Arc::new(Reach {
            store: store.clone(),
            runtime: runtime.clone(),
            registry,
        });
        calls.serve(&reach);
        let shared = Arc::new(Shared {
            store,
            runtime,
            counters: Counters::default(),
            _reach: reach,
        });
        let scheduler = Scheduler {
            shared: Arc::clone(&shared),
        };
        let teller = Teller {
            shared: Arc::clone(&shared),
        };
        shared.runtime.employ("schedule", due::run(Arc::new(scheduler)));
        shared.runtime.employ("ending", due::run(Arc::new(teller)));
        Self { shared }
    }

    /// Sets one more worker to work: the one that asks services for new items, as the triggers of apps say.
    pub fn poll(&self, catalog: Catalog, caller: AppCaller) {
        let poller = Arc::new(Poller {
            shared: Arc::clone(&self.shared),
            catalog,
            caller,
        });
        self.shared.runtime.employ("poll", due::run(poller));
    }

    /// Sets one more worker to work: the one that tells services where to call, as the triggers of apps say.
    pub fn register(&self, registrations: Registrations, caller: AppCaller) {
        let registrar = Arc::new(Registrar {
            shared: Arc::clone(&self.shared),
            registrations,
            caller,
        });
        self.shared.runtime.employ("registration", due::run(registrar));
    }

    /// The figures of this moment.
    #[must_use]
    pub fn figures(&self) -> TriggerFigures {
        self.shared.counters.read()
    }
}
