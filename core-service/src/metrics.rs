//! What is counted, for `/metrics` in the Prometheus text format.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::retention::{Retention, RetentionFigures};
use crate::runtime::{MetricsSnapshot, Runtime};
use crate::triggers::{TriggerFigures, Triggers};

/// All counters of one process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<MethodLabels, Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: String,
    code: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: String,
}

impl Metrics {
    /// Counters at zero, and those of a runtime, its triggers and what it keeps.
    pub fn new(runtime: Runtime, triggers: Triggers, retention: Retention) -> Self {
        let mut registry = Registry::with_prefix("switchyard");
        let calls = Family::<CallLabels, Counter>::default();
        let call_seconds = Family::<MethodLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.0005, 2.0, 14))
        });
        registry.register("calls", "Calls of each method, by gRPC status", calls.clone());
        registry.register("call_seconds", "How long calls took", call_seconds.clone());
        registry.register_collector(Box::new(Figures {
            runtime,
            triggers,
            retention,
        }));
        Self {
            registry: Arc::new(registry),
            calls,
            call_seconds,
        }
    }

    /// Counts a call. Methods outside the contract are counted together: their names are the caller's.
    pub fn call_ended(&self, rpc: &str, code: i32, elapsed: Duration) {
        let known = contract::access::Method::find(rpc).map_or("other", |method| method.path);
        let method = known.to_owned();
        self.calls
            .get_or_create(&CallLabels {
                method: method.clone(),
                code: i64::from(code),
            })
            .inc();
        self.call_seconds
            .get_or_create(&MethodLabels { method })
            .observe(elapsed.as_secs_f64());
    }

    /// All counters as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// The figures of the runtime, the triggers and the retention, read when they are asked for.
struct Figures {
    runtime: Runtime,
    triggers: Triggers,
    retention: Retention,
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Figures")
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let figures = self.runtime.metrics();
        let counted = counters(&figures)
            .into_iter()
            .chain(trigger_counters(&self.triggers.figures()))
            .chain(retention_counters(&self.retention.figures()));
        for (name, help, value) in counted {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        for (name, help, value) in gauges(&figures) {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

type Figure = (&'static str, &'static str, u64);

fn counters(figures: &MetricsSnapshot) -> [Figure; 14] {
    [
        ("runs_started", "Runs started here", figures.runs_started),
        (
            "runs_replayed",
            "Starts that found the run of their idempotency key",
            figures.runs_replayed,
        ),
        (
            "starts_refused",
            "Starts refused because too much was under way",
            figures.starts_refused,
        ),
        ("runs_succeeded", "Runs that ended well", figures.runs_succeeded),
        ("runs_failed", "Runs that failed", figures.runs_failed),
        (
            "runs_cancelled",
            "Runs that were cancelled",
            figures.runs_cancelled,
        ),
        ("runs_claimed", "Runs woken or taken over", figures.runs_claimed),
        (
            "runs_taken_over",
            "Runs whose process was lost",
            figures.runs_taken_over,
        ),
        (
            "executions_started",
            "Executions outside the engine",
            figures.executions_started,
        ),
        ("commits", "Transactions of the journal", figures.commits),
        (
            "commits_failed",
            "Transactions of the journal that failed",
            figures.commits_failed,
        ),
        (
            "writes_committed",
            "Writes in those transactions",
            figures.writes_committed,
        ),
        (
            "commit_microseconds",
            "Time spent in those transactions",
            figures.commit_micros,
        ),
        ("leases_lost", "Leases lost", figures.leases_lost),
    ]
}

fn trigger_counters(figures: &TriggerFigures) -> [Figure; 14] {
    [
        (
            "schedule_ticks_fired",
            "Instants of schedules that started a run here",
            figures.ticks_fired,
        ),
        (
            "schedule_ticks_skipped",
            "Instants left out because an earlier run went on",
            figures.ticks_skipped,
        ),
        (
            "schedule_ticks_missed",
            "Instants noticed too late to be run",
            figures.ticks_missed,
        ),
        (
            "schedule_ticks_refused",
            "Instants whose run was refused",
            figures.ticks_refused,
        ),
        (
            "error_triggers_fired",
            "Runs that error triggers started here",
            figures.errors_fired,
        ),
        (
            "error_triggers_refused",
            "Runs of error triggers that were refused",
            figures.errors_refused,
        ),
        (
            "polls_asked",
            "Times that triggers asked a service for its items",
            figures.polls_asked,
        ),
        (
            "polls_failed",
            "Times that a service did not answer as its app expects",
            figures.polls_failed,
        ),
        (
            "polls_incomplete",
            "Times that new items of a service may have been missed",
            figures.polls_incomplete,
        ),
        ("items_fired", "New items that started a run", figures.items_fired),
        (
            "items_refused",
            "New items whose run was refused",
            figures.items_refused,
        ),
        (
            "services_attached",
            "Services told to call for triggers",
            figures.services_attached,
        ),
        (
            "services_detached",
            "Services told to call for triggers no longer",
            figures.services_detached,
        ),
        (
            "services_failed",
            "Times that a service could not be told",
            figures.services_failed,
        ),
    ]
}

fn retention_counters(figures: &RetentionFigures) -> [Figure; 4] {
    [
        (
            "runs_deleted",
            "Runs deleted because their time was over",
            figures.runs,
        ),
        (
            "activity_deleted",
            "Entries of the activity feed deleted because their time was over",
            figures.entries,
        ),
        (
            "retention_transactions",
            "Transactions that deleted what was past its time",
            figures.transactions,
        ),
        (
            "retention_microseconds",
            "Time spent in those transactions",
            figures.micros,
        ),
    ]
}

fn gauges(figures: &MetricsSnapshot) -> [Figure; 6] {
    [
        (
            "starts_waiting",
            "Starts of runs waiting for their organization's turn",
            figures.starts_waiting,
        ),
        ("runs_live", "Runs in memory", figures.runs_live),
        (
            "executions_pending",
            "Executions under way or waiting for their turn",
            figures.executions_pending,
        ),
        (
            "writes_queued",
            "Writes waiting for the journal",
            figures.writes_queued,
        ),
        (
            "largest_batch",
            "The largest transaction of the journal, in writes",
            figures.largest_batch,
        ),
        (
            "longest_commit_microseconds",
            "The longest transaction of the journal",
            figures.longest_commit_micros,
        ),
    ]
}
