//! The HTTP server: connections in, requests to a router, and an orderly end.
//!
//! Slow heads, huge heads and floods of connections are refused here, which is why this is not `axum::serve`.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::ServiceExt;

/// Pause after the operating system refused a connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What operators can set of the server.
#[derive(Clone)]
pub struct ServeOptions {
    /// TLS, or none for plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// Most connections at a time; further ones wait.
    pub max_connections: u32,
    /// How long a client may take for a TLS handshake or a request's head, and how long a connection may idle.
    pub header_timeout: Duration,
    /// Most bytes of a request's head.
    pub max_header_bytes: usize,
    /// How long requests in flight may take after the shutdown began.
    pub drain_timeout: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            tls: None,
            max_connections: 10_000,
            header_timeout: Duration::from_secs(30),
            max_header_bytes: 64 * 1024,
            drain_timeout: Duration::from_secs(8),
        }
    }
}

/// The address of the client's end of the connection: an extension of each request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

/// Serves a router until `shutdown` completes, then lets the requests in flight finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) {
    let (phase, phases) = watch::channel(Phase::Serving);
    let server = Arc::new(Server::new(router, options, Closing(Some(phases))));
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = shutdown.as_mut() => break,
            Some((stream, peer, permit)) = server.accept(&listener) => {
                tokio::spawn(server.clone().connection(stream, peer, permit));
            }
        }
    }
    drop(listener);
    phase.send_replace(Phase::Draining);
    let all = server.permits.acquire_many(server.options.max_connections);
    if tokio::time::timeout(server.options.drain_timeout, all)
        .await
        .is_err()
    {
        tracing::warn!("requests that did not finish in time are dropped");
    }
    phase.send_replace(Phase::Over);
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Phase {
    Serving,
    Draining,
    Over,
}

/// Tells when the server begins to close: an extension of each request, for answers without an end of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing(Option<watch::Receiver<Phase>>);

impl Closing {
    /// Waits until the server closes.
    pub async fn wait(self) {
        self.reach(Phase::Draining).await;
    }

    async fn reach(self, wanted: Phase) {
        match self.0 {
            // A server that is gone has closed.
            Some(mut phase) => _ = phase.wait_for(|phase| *phase >= wanted).await,
            None => std::future::pending().await,
        }
    }
}

struct Server {
    router: Router,
    options: ServeOptions,
    http: Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    permits: Arc<Semaphore>,
    closing: Closing,
}

impl Server {
    fn new(router: Router, options: ServeOptions, closing: Closing) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_timeout)
            .max_buf_size(options.max_header_bytes.max(8 * 1024));
        http.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(options.header_timeout)
            .max_header_list_size(u32::try_from(options.max_header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(250)
            .adaptive_window(true);
        Self {
            // One clone here saves the router work in each request.
            router: router.with_state(()),
            tls: options.tls.clone().map(TlsAcceptor::from),
            permits: Arc::new(Semaphore::new(options.max_connections as usize)),
            http,
            options,
            closing,
        }
    }

    /// The next connection, when there is room for one.
    async fn accept(&self, listener: &TcpListener) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let permit = self.permits.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return Some((stream, peer, permit)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        // Small answers must not wait for the client's acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        let over = self.closing.clone().reach(Phase::Over);
        let served = async {
            match &self.tls {
                None => self.http(stream, peer).await,
                Some(tls) => {
                    match tokio::time::timeout(self.options.header_timeout, tls.accept(stream)).await {
                        Ok(Ok(stream)) => self.http(stream, peer).await,
                        Ok(Err(error)) => tracing::debug!(%error, %peer, "the TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
                    }
                }
            }
        };
        tokio::select! {
            () = served => {}
            () = over => {}
        }
        drop(permit);
    }

    /// Serves HTTP/1.1 or HTTP/2 on a connection.
    async fn http(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketAddr) {
        let used = AtomicBool::new(false);
        let service = service_fn(|request| {
            used.store(true, Ordering::Relaxed);
            self.answer(request, peer)
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        // hyper's own limit starts when the protocol is known; a client that says nothing is not to hold a connection.
        let mut silence = pin!(tokio::time::sleep(self.options.header_timeout));
        let mut closing = pin!(self.closing.clone().wait());
        let (mut first, mut open) = (true, true);
        loop {
            tokio::select! {
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(error, %peer, "a connection broke");
                    }
                    return;
                }
                () = silence.as_mut(), if first => {
                    first = false;
                    if !used.load(Ordering::Relaxed) {
                        return;
                    }
                }
                () = closing.as_mut(), if open => {
                    open = false;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<> {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddress(peer));
        request.extensions_mut().insert(self.closing.clone());
        self.router.clone().oneshot(request)
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate or key file cannot be read as PEM.
    #[error("the {what} is not PEM; give a file that begins with -----BEGIN")]
    Pem {
        /// Which of the two.
        what: &'static str,
        /// What is wrong.
        source: tokio_rustls::rustls::pki_types::pem::Error,
    },
    /// There is no certificate in the file.
    #[error("the certificate file holds no certificate; give the server's certificate and then its issuers")]
    NoCertificate,
    /// Certificate and key do not fit.
    #[error("certificate and key cannot be used together; check that the key is the certificate's")]
    Unusable(#[from] tokio_rustls::rustls::Error),
}

/// The TLS settings of a server from its certificate chain and private key, both PEM.
///
/// # Errors
/// When either cannot be read, or they do not belong together.
pub fn tls_from_pem(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem {
            what: "certificate",
            source,
        })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem { what: "key", source })?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
