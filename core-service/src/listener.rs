//! The gRPC listener: the core's routes behind the server's limits, and how it refuses what they forbid.

use std::error::Error as StdError;
use std::future::Future;

use contract::v1::ErrorReason;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use server::{BodyError, Kind, Options, Protocol};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::service::Routes;
use tower::ServiceExt as _;

use crate::auth::Access;
use crate::error::Error;

/// The one method that asks whether the process is well.
const PROBE: &str = "/grpc.health.v1.Health/Check";
/// Services whose clients keep asking on one stream.
const CONVERSATIONS: &str = "/grpc.reflection.";

/// Serves gRPC until the shutdown comes and what is in flight is done.
pub async fn serve(
    listener: TcpListener,
    routes: Access<Routes>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let options = Options {
        http2_only: true,
        ..options
    };
    let service = routes.map_request(|request: Request<server::Body>| request.map(with_statuses));
    server::serve(listener, service, Grpc, options, shutdown).await;
}

/// gRPC, as far as the server has to know.
struct Grpc;

impl Protocol<Body> for Grpc {
    fn kind(&self, request: &Parts) -> Kind {
        match request.uri.path() {
            PROBE => Kind::Probe,
            path if path.starts_with(CONVERSATIONS) => Kind::Conversation,
            _ => Kind::Call,
        }
    }

    fn no_room(&self, _: &Parts) -> Response<Body> {
        Error::unavailable("The service has too many requests in flight; try again soon.")
            .into_status()
            .into_http()
    }
}

/// A body whose errors are what gRPC clients are told.
fn with_statuses(body: server::Body) -> Body {
    Body::new(body.map_err(|error| -> Box<dyn StdError + Send + Sync> {
        let told = match error {
            BodyError::Late => Error::new(
                ErrorReason::RequestTimeout,
                "The message did not arrive in time; send the request again.",
            ),
            BodyError::NoRoom => {
                Error::unavailable("The service has no memory for the message now; try again soon.")
            }
            // gRPC's library knows what to make of it.
            BodyError::Broken(error) => return Box::new(error),
        };
        Box::new(told.into_status())
    }))
}
