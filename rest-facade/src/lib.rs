//! REST v1 over the gRPC core: paths, JSON bodies and HTTP statuses in, protobuf calls out, and the way back.
//!
//! [`router`] is generic over a service that speaks gRPC: the core's own routes inside the all-in-one process, or a
//! network channel in the `rest-facade` binary. Which endpoints there are, what they take and give, and which errors
//! they answer is derived from the contract; an endpoint is never named here.
//!
//! Deliberately absent: authentication, rate limits, validation of values and every other rule of the domain. They are
//! the core's, so that no way in passes them by.

mod body;
mod call;
mod core;
mod events;
mod hooks;
mod listener;
mod metadata;
pub mod openapi;
mod pages;
mod raw;
mod request_id;
mod routes;
mod status;
mod transcode;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;

pub use crate::core::{ConnectError, CoreService, CoreTls};
pub use crate::hooks::HOOKS_PATH;
pub use crate::listener::serve;
pub use crate::request_id::RequestId;
pub use crate::routes::MatchedRoute;

/// What operators can set of the facade.
#[derive(Debug, Clone)]
pub struct FacadeConfig {
    /// Largest body of an API request, in bytes.
    pub body_limit: usize,
    /// Largest body of a webhook call, in bytes.
    pub webhook_body_limit: usize,
    /// Whether `X-Forwarded-For` of a request tells the client's address; true only behind a proxy that sets it.
    pub trust_forwarded_for: bool,
    /// How long the core may take for one answer; event streams are not limited.
    pub call_timeout: Duration,
    /// How long an event stream may be silent before a comment shows that it lives.
    pub event_keep_alive: Duration,
}

impl Default for FacadeConfig {
    fn default() -> Self {
        Self {
            body_limit: 1024 * 1024,
            webhook_body_limit: 5 * 1024 * 1024,
            trust_forwarded_for: false,
            // Longer than the default time-out of a node, which an endpoint may wait for.
            call_timeout: Duration::from_secs(310),
            event_keep_alive: Duration::from_secs(15),
        }
    }
}

/// The whole REST API over a core: every route of the contract, webhooks, `openapi.json`, `/healthz`, and the core's
/// pages for people.
///
/// The router answers unknown paths itself, so what is merged into it must not have a fallback of its own.
pub fn router(core: CoreService, config: FacadeConfig) -> Router {
    let facade = Arc::new(Facade { core, config });
    let router = Router::new()
        .merge(routes::api(&facade))
        .merge(hooks::routes(&facade))
        .merge(openapi::routes())
        .route("/healthz", axum::routing::get(async || "ok\n"));
    routes::with_fallbacks(router, &facade).layer(axum::middleware::from_fn(request_id::assign))
}

/// `/readyz`: 200 while a core answers gRPC health checks, 503 otherwise. For a facade on a machine of its own; the
/// core has a better answer for itself.
pub fn readiness(core: CoreService) -> Router {
    let ready = axum::routing::get(move || core.clone().readiness());
    Router::new()
        .route("/readyz", ready)
        .layer(axum::middleware::from_fn(request_id::assign))
}

/// What every handler holds.
#[derive(Debug)]
struct Facade {
    core: CoreService,
    config: FacadeConfig,
}
