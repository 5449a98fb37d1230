//! A server of HTTP/1.1 and HTTP/2: connections in, requests to a tower service, and an orderly end.
//!
//! Clients that are slow, broken or too many are dealt with here, whatever they speak on top: [`Limits`] says how. What
//! requests mean, and how a refusal reads, is the [`Protocol`]'s. Deliberately absent: routes, and every protocol above
//! HTTP.

mod answer;
mod body;
mod capacity;
mod closing;
mod connection;
mod limits;
mod protocol;
mod pulse;
mod socket;
mod stall;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::Service;

pub use body::{Body, BodyError};
pub use capacity::Capacity;
pub use closing::Closing;
pub use limits::Limits;
pub use protocol::{Kind, Protocol};
pub use tls::{Tls, TlsError, tls_from_pem};

use closing::Phase;
use connection::Connections;

/// Connections that the operating system keeps until they are accepted; it may keep fewer (`net.core.somaxconn`). A client
/// whose connection finds no place tries again after a second or more, so there is one for each of a large crowd.
const BACKLOG: u32 = 4_096;
/// Pause after the operating system refused a connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a listener serves.
#[derive(Clone)]
pub struct Options {
    /// What clients may ask of it.
    pub limits: Limits,
    /// What all listeners of the process share.
    pub capacity: Capacity,
    /// TLS, or none for plain HTTP.
    pub tls: Option<Tls>,
    /// Whether HTTP/1.1 is refused.
    pub http2_only: bool,
    /// How long requests in flight may take after the shutdown began.
    pub drain_timeout: Duration,
}

impl Options {
    /// Plain HTTP of any version within these limits, and eight seconds to drain.
    pub fn new(limits: Limits) -> Self {
        Self {
            capacity: Capacity::new(&limits),
            limits,
            tls: None,
            http2_only: false,
            drain_timeout: Duration::from_secs(8),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// The address of the client's end of the connection: an extension of each request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

/// Listens on an address, with room for many who come at once.
///
/// # Errors
/// When the address cannot be had.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that starts again takes the address of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves a service until `shutdown` completes, then lets the requests in flight finish. A connection of HTTP/1.1 answers
/// one more request, and says with it that it ends, so that no client loses the request that it is just sending.
pub async fn serve<S, B, P>(
    listener: TcpListener,
    service: S,
    protocol: P,
    options: Options,
    shutdown: impl Future<Output = ()>,
) where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    P: Protocol<B>,
{
    let (phase, phases) = watch::channel(Phase::Serving);
    let (most, drain_timeout) = (options.limits.max_connections, options.drain_timeout);
    let places = Arc::new(Semaphore::new(most as usize));
    let connections = Arc::new(Connections::new(service, protocol, options, Closing::of(phases)));
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = shutdown.as_mut() => break,
            Some((stream, peer, place)) = accept(&listener, &places) => {
                tokio::spawn(Arc::clone(&connections).serve(stream, peer, place));
            }
        }
    }
    drop(listener);
    phase.send_replace(Phase::Draining);
    let all = places.acquire_many(most);
    if tokio::time::timeout(drain_timeout, all).await.is_err() {
        tracing::warn!("requests that did not finish in time are dropped");
    }
    phase.send_replace(Phase::Over);
}

/// The next connection, when there is room for one. Until then clients wait in the listener's backlog, which the
/// operating system bounds.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Some((stream, peer, place)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
