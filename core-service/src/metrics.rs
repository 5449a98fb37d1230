//! What is counted, for `/metrics` in the Prometheus text format.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

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
    /// Counters at zero; `more` registers those of other parts.
    pub fn new(more: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::with_prefix("switchyard");
        let calls = Family::<CallLabels, Counter>::default();
        let call_seconds = Family::<MethodLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.0005, 2.0, 14))
        });
        registry.register("calls", "Calls of each method, by gRPC status", calls.clone());
        registry.register("call_seconds", "How long calls took", call_seconds.clone());
        more(&mut registry);
        Self { registry: Arc::new(registry), calls, call_seconds }
    }

    /// Counts a call. Methods outside the contract are counted together: their names are the caller's.
    pub fn call_ended(&self, rpc: &str, code: i32, elapsed: Duration) {
        let known = contract::access::Method::find(rpc).map_or("other", |method| method.path);
        let method = known.to_owned();
        self.calls.get_or_create(&CallLabels { method: method.clone(), code: i64::from(code) }).inc();
        self.call_seconds.get_or_create(&MethodLabels { method }).observe(elapsed.as_secs_f64());
    }

    /// All counters as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}
