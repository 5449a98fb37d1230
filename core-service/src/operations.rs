//! What operators ask over HTTP: is it ready, what has it counted. And the same over gRPC's health service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tonic_health::pb::health_server::{Health as HealthService, HealthServer};
use tonic_health::server::HealthReporter;

use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::store::Store;

/// What the process says of itself to load balancers.
#[derive(Clone)]
pub struct Health {
    reporter: HealthReporter,
    stopping: Arc<AtomicBool>,
}

impl Health {
    /// A process that is well.
    pub async fn new() -> Self {
        let reporter = HealthReporter::new();
        reporter
            .set_service_status("", tonic_health::ServingStatus::Serving)
            .await;
        Self {
            reporter,
            stopping: Arc::default(),
        }
    }

    /// The gRPC health service.
    pub fn service(&self) -> HealthServer<impl HealthService + use<>> {
        HealthServer::new(tonic_health::server::HealthService::from_health_reporter(
            self.reporter.clone(),
        ))
    }

    /// Says from now on that no more requests should come.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.reporter
            .set_service_status("", tonic_health::ServingStatus::NotServing)
            .await;
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

#[derive(Clone)]
struct Operations {
    store: Store,
    runtime: Runtime,
    metrics: Metrics,
    health: Health,
}

/// `/readyz` and `/metrics`.
pub fn router(store: Store, runtime: Runtime, metrics: Metrics, health: Health) -> Router {
    let operations = Operations {
        store,
        runtime,
        metrics,
        health,
    };
    Router::new()
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(operations)
}

/// Ready means: the database answers, its tables are up to date (or the process would not run), the workers run, and
/// no shutdown has begun.
async fn ready(State(operations): State<Operations>) -> Response {
    let problem = if operations.health.is_stopping() {
        "stopping"
    } else if operations.store.ping().await.is_err() {
        "the database does not answer"
    } else if !operations.runtime.is_ready() {
        "the workers do not run"
    } else {
        return (StatusCode::OK, "ready\n").into_response();
    };
    (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response()
}

async fn metrics_text(State(operations): State<Operations>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(header::CONTENT_TYPE, content_type)],
        operations.metrics.render(),
    )
        .into_response()
}
