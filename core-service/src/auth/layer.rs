//! The layer around all gRPC routes: request id, access, deadline, log line and metrics of every call.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use contract::access::Method;
use contract::v1::ErrorReason;
use http::{HeaderMap, HeaderValue, Request, Response};
use server::PeerAddress;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::Instrument as _;

use super::caller::{Call, KeyHolder, Origin};
use super::gate::Gate;
use super::rate::Standing;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::turns::on_behalf_of;

/// Metadata that carries the request's id both ways.
const REQUEST_ID: &str = "x-request-id";
/// Metadata that carries the client's address.
const CLIENT_IP: &str = "x-client-ip";
/// Metadata that asks only whether the caller may, for a request that cannot be read anyway.
const AUTHORIZE_ONLY: &str = "x-switchyard-authorize-only";
/// The longest that a call may take whatever its deadline says.
const MAX_DEADLINE: Duration = Duration::from_secs(600);

/// Puts [`Access`] around the routes.
#[derive(Clone)]
pub struct AccessLayer {
    gate: Gate,
    metrics: Metrics,
}

impl AccessLayer {
    /// A layer with this gate.
    pub fn new(gate: Gate, metrics: Metrics) -> Self {
        Self { gate, metrics }
    }
}

impl<S> Layer<S> for AccessLayer {
    type Service = Access<S>;

    fn layer(&self, inner: S) -> Access<S> {
        Access {
            inner,
            layer: self.clone(),
        }
    }
}

/// The routes behind the gate.
#[derive(Clone)]
pub struct Access<S> {
    inner: S,
    layer: AccessLayer,
}

impl<S> Service<Request<Body>> for Access<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let spare = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, spare);
        let layer = self.layer.clone();
        Box::pin(async move { Ok(layer.handle(inner, request).await) })
    }
}

impl AccessLayer {
    async fn handle<S>(self, inner: S, mut request: Request<Body>) -> Response<Body>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let started = Instant::now();
        let request_id = request_id(request.headers());
        let rpc = request.uri().path().to_owned();
        let span = tracing::info_span!("rpc", request_id = %request_id, rpc = %rpc);
        let mut standing = None;
        let mut response = async {
            let answer = self
                .answer(inner, &mut request, &rpc, &request_id, &mut standing)
                .await;
            answer.unwrap_or_else(|error| error.into_status().into_http())
        }
        .instrument(span.clone())
        .await;
        let code = grpc_code(response.headers());
        self.metrics.call_ended(&rpc, code, started.elapsed());
        span.in_scope(|| {
            tracing::debug!(
                code,
                elapsed_us = started.elapsed().as_micros() as u64,
                "call ended"
            )
        });
        if let Some(standing) = standing {
            standing.tell(response.headers_mut());
        }
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }

    async fn answer<S>(
        &self,
        mut inner: S,
        request: &mut Request<Body>,
        rpc: &str,
        request_id: &str,
        standing: &mut Option<Standing>,
    ) -> Result<Response<Body>>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        // What the contract does not name (health, reflection, the unknown) is open; the routes answer for it.
        if let Some(method) = Method::find(rpc) {
            let origin = Origin {
                request_id: request_id.to_owned(),
                ip: client_ip(request),
            };
            let mut extensions = std::mem::take(request.extensions_mut());
            self.gate
                .admit(method, request.headers(), origin, &mut extensions, standing)
                .await?;
            *request.extensions_mut() = extensions;
            if request.headers().contains_key(AUTHORIZE_ONLY) {
                return Ok(tonic::Status::ok("").into_http());
            }
        }
        let deadline = deadline(request.headers());
        let taken = std::mem::replace(request, Request::new(Body::empty()));
        let call = taken.extensions().get::<Call<KeyHolder>>();
        let organization_id = call.map(|call| call.organization_id().into());
        let answered = tokio::time::timeout(deadline, inner.call(taken));
        let answered = match organization_id {
            Some(organization_id) => on_behalf_of(organization_id, answered).await,
            None => answered.await,
        };
        let Ok(answered) = answered else {
            return Err(Error::new(
                ErrorReason::DeadlineExceeded,
                "The answer did not come before the deadline.",
            ));
        };
        match answered {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}

/// The caller's request id when it is 1..128 visible ASCII characters, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    match given {
        Some(id) if (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
            id.to_owned()
        }
        _ => uuid::Uuid::now_v7().simple().to_string(),
    }
}

/// The address that the facade names, else the peer's, who then is the client.
fn client_ip(request: &Request<Body>) -> Option<String> {
    let named = request.headers().get(CLIENT_IP);
    if let Some(named) = named.and_then(|value| value.to_str().ok()) {
        return Some(named.to_owned());
    }
    let PeerAddress(peer) = request.extensions().get()?;
    Some(peer.ip().to_string())
}

/// The deadline that `grpc-timeout` asks for: up to eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Duration {
    let text = headers
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let Some((digits, unit)) = text.split_at_checked(text.len().saturating_sub(1)) else {
        return MAX_DEADLINE;
    };
    let Ok(number) = digits.parse::<u32>() else {
        return MAX_DEADLINE;
    };
    let number = u64::from(number);
    let asked = match unit {
        "H" => Duration::from_secs(number.saturating_mul(3600)),
        "M" => Duration::from_secs(number.saturating_mul(60)),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => MAX_DEADLINE,
    };
    asked.min(MAX_DEADLINE)
}

/// The status of an answer that is an error before its body; 0 for any other.
fn grpc_code(headers: &HeaderMap) -> i32 {
    let status = headers.get("grpc-status").and_then(|value| value.to_str().ok());
    status.and_then(|status| status.parse().ok()).unwrap_or_default()
}
