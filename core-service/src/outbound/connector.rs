//! Connections as the HTTP client needs them: HTTP/2 where the other side speaks it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use http::uri::Scheme;
use hyper::rt::ReadBufCursor;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::dialer::{CONNECT_TIMEOUT, DialError, Dialer};

const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Opens connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connector {
    dialer: Dialer,
    /// Nothing when the TLS library cannot be set up.
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(dialer: Dialer) -> Self {
        let tls = dialer.tls_config(None).ok().map(|mut config| {
            config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
            Arc::new(config)
        });
        Self { dialer, tls }
    }

    async fn connect(self, uri: Uri) -> Result<Stream, DialError> {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        #[cfg(test)]
        let is_tls = is_tls && self.dialer.stand_in.is_none();
        let host = uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream = self.dialer.tcp(host, port).await?;
        if !is_tls {
            return Ok(Stream::new(stream, false));
        }
        let config = self.tls.ok_or(DialError::NoTls)?;
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| DialError::Tls(io::Error::other(error)))?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(DialError::Tls)?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
        Ok(Stream::new(stream, is_http2))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, DialError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().connect(uri));
        Box::pin(async { connecting.await.unwrap_or(Err(DialError::Timeout)) })
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
