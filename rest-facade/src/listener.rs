//! The HTTP listener: the router behind the server's limits, and how it says that there is no room.

use std::future::Future;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use contract::v1::ErrorReason;
use http::request::Parts;
use server::{Kind, Options, Protocol};
use tokio::net::TcpListener;

use crate::request_id::{self, RequestId};
use crate::status::Failure;

/// Paths that ask whether the process is well, the core's among them.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Serves a router until `shutdown` completes, then lets the requests in flight finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    // One clone here saves the router work in each request.
    server::serve(listener, router.with_state(()), Rest, options, shutdown).await;
}

/// REST, webhooks and pages, as far as the server has to know.
struct Rest;

impl Protocol<Body> for Rest {
    fn kind(&self, request: &Parts) -> Kind {
        match PROBES.contains(&request.uri.path()) {
            true => Kind::Probe,
            false => Kind::Call,
        }
    }

    fn no_room(&self, request: &Parts) -> Response {
        let id = RequestId::of(&request.headers);
        let message = "The service has too many requests in flight; try again soon.";
        let mut response = Failure::new(ErrorReason::Unavailable, message)
            .retry_soon()
            .into_response(&id);
        response
            .headers_mut()
            .insert(request_id::HEADER, id.header().clone());
        response
    }
}
