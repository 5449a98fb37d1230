//! The service behind the facade, in this process or over the network.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

/// How long connecting to a core may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often an idle connection is probed, and how long the probe may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a core may take to say that it is healthy.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Window of one HTTP/2 stream and connection: bodies of the largest size travel without waiting.
const WINDOW: u32 = 8 * 1024 * 1024;

/// A service that takes gRPC requests, cheap to clone.
#[derive(Clone)]
pub struct CoreService {
    service: BoxCloneSyncService<Request<Body>, Response<Body>, Status>,
    /// How many cores a call that could not connect may be offered to.
    attempts: usize,
}

/// How the facade trusts cores that are reached by `https`.
#[derive(Debug, Clone, Default)]
pub struct CoreTls {
    /// PEM of the authority that signed the cores' certificates; the system's authorities when absent.
    pub authority: Option<Vec<u8>>,
    /// Name in the cores' certificates; the host of each address when absent.
    pub domain: Option<String>,
}

/// Why the addresses of the cores cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no address.
    #[error("no core is named; give at least one address such as http://127.0.0.1:50051")]
    NoCore,
    /// An address is not one.
    #[error("{address:?} is not the address of a core; it should read like http://127.0.0.1:50051")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// The TLS settings do not fit.
    #[error("the TLS settings for {address:?} cannot be used; check the authority's PEM file")]
    Tls {
        /// The address.
        address: String,
        /// What is wrong.
        source: tonic::transport::Error,
    },
}

impl CoreService {
    /// A core in this process: its gRPC routes with all their layers.
    pub fn in_process<S>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let service = service.map_err(|never| match never {});
        Self {
            service: BoxCloneSyncService::new(service),
            attempts: 1,
        }
    }

    /// Cores over the network, used in turn. Connections are made when they are needed and made again when they break.
    ///
    /// # Errors
    /// When an address or the TLS settings cannot be used. Must be called inside a Tokio runtime.
    pub fn connect<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        tls: &CoreTls,
    ) -> Result<Self, ConnectError> {
        let channels: Vec<Channel> = addresses
            .into_iter()
            .map(|address| channel(address, tls))
            .collect::<Result<_, _>>()?;
        if channels.is_empty() {
            return Err(ConnectError::NoCore);
        }
        let attempts = channels.len();
        let service = InTurn {
            channels: channels.into(),
            next: Arc::default(),
        };
        Ok(Self {
            service: BoxCloneSyncService::new(service),
            attempts,
        })
    }

    /// How often a call may be tried when no connection could be made.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts
    }

    /// Whether a core says that it serves, as an HTTP answer.
    pub(crate) async fn readiness(self) -> (StatusCode, &'static str) {
        for _ in 0..self.attempts {
            let mut health = HealthClient::new(self.clone());
            let check = health.check(HealthCheckRequest::default());
            if let Ok(Ok(answer)) = tokio::time::timeout(HEALTH_TIMEOUT, check).await
                && answer.get_ref().status() == ServingStatus::Serving
            {
                return (StatusCode::OK, "ready\n");
            }
        }
        (StatusCode::SERVICE_UNAVAILABLE, "no core answers\n")
    }
}

impl fmt::Debug for CoreService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CoreService")
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for CoreService {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.service.call(request)
    }
}

fn channel(address: &str, tls: &CoreTls) -> Result<Channel, ConnectError> {
    let refuse = |source| ConnectError::Address {
        address: address.to_owned(),
        source,
    };
    let endpoint = Endpoint::from_shared(address.to_owned())
        .map_err(refuse)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint.connect_lazy());
    }
    let mut config = match &tls.authority {
        Some(authority) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    if let Some(domain) = &tls.domain {
        config = config.domain_name(domain);
    }
    let endpoint = endpoint.tls_config(config).map_err(|source| ConnectError::Tls {
        address: address.to_owned(),
        source,
    })?;
    Ok(endpoint.connect_lazy())
}

/// Offers each request to the next channel.
#[derive(Clone)]
struct InTurn {
    channels: Arc<[Channel]>,
    next: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for InTurn {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.channels.len();
        let channel = self.channels[index].clone();
        Box::pin(async move { channel.oneshot(request).await.map_err(status_of) })
    }
}

/// A transport failure as a status; a connection that was never made says so by its source.
fn status_of(error: tonic::transport::Error) -> Status {
    let mut status = Status::unavailable("the core cannot be reached");
    status.set_source(Arc::new(error));
    status
}

/// Whether a call failed before anything of it was sent.
pub(crate) fn never_sent(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}
