//! Opens connections, to addresses that may be reached only.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::ReadBufCursor;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::AddressRules;

/// How long looking up, connecting and the TLS handshake may take together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// None of the host's addresses may be reached.
    #[error("its address is not allowed")]
    Blocked,
    /// The name leads nowhere.
    #[error("its name cannot be looked up")]
    Name(#[source] io::Error),
    /// The connection is refused or breaks.
    #[error("{0}")]
    Refused(#[source] io::Error),
    /// The other side does not prove who it is.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// TLS cannot be set up here.
    #[error("TLS is not available")]
    NoTls,
    /// Nothing happens.
    #[error("connecting took longer than {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
}

/// Opens connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connector {
    rules: AddressRules,
    /// Nothing when the TLS library cannot be set up.
    tls: Option<Arc<ClientConfig>>,
}

/// The certificates that the operating system trusts.
pub(super) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        tracing::warn!("the operating system has no trusted certificates: requests over https will fail");
    }
    roots
}

impl Connector {
    pub(super) fn new(rules: AddressRules, roots: RootCertStore) -> Self {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let tls = builder.with_safe_default_protocol_versions().ok().map(|builder| {
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
            Arc::new(config)
        });
        Self { rules, tls }
    }

    async fn connect(self, uri: Uri) -> Result<Stream, ConnectError> {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream = self.open(host, port).await?;
        if !is_tls {
            return Ok(Stream::new(stream, false));
        }
        let config = self.tls.ok_or(ConnectError::NoTls)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| ConnectError::Tls(io::Error::other(error)))?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(ConnectError::Tls)?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
        Ok(Stream::new(stream, is_http2))
    }

    /// A connection to the first of the host's addresses that may be reached and answers.
    async fn open(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let found = lookup_host((host, port)).await.map_err(ConnectError::Name)?;
        let addresses: Vec<_> = found.filter(|address| self.rules.permit(address.ip())).collect();
        let share = CONNECT_TIMEOUT / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut failure = ConnectError::Blocked;
        for address in addresses {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).map_err(ConnectError::Refused)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = ConnectError::Refused(error),
                Err(_elapsed) => failure = ConnectError::Timeout,
            }
        }
        Err(failure)
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().connect(uri));
        Box::pin(async { connecting.await.unwrap_or(Err(ConnectError::Timeout)) })
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection, plain or encrypted.
pub(super) struct Stream {
    io: TokioIo<Box<dyn Duplex>>,
    is_http2: bool,
}

impl Stream {
    fn new(stream: impl Duplex + 'static, is_http2: bool) -> Self {
        Self {
            io: TokioIo::new(Box::new(stream)),
            is_http2,
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self.is_http2 {
            true => Connected::new().negotiated_h2(),
            false => Connected::new(),
        }
    }
}

impl hyper::rt::Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, buffers)
    }
}
