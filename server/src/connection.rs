//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt as _};

use crate::answer::Answer;
use crate::body::Body;
use crate::closing::{Closing, Phase};
use crate::protocol::{Kind, Protocol};
use crate::pulse::{Overdue, Patience, Pulse};
use crate::socket::Socket;
use crate::stall::Streams;
use crate::{Limits, Options, PeerAddress, Tls};

/// How much of a request's body may arrive before the service reads it: of one stream, and of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Largest frame that is accepted: the least that HTTP/2 allows.
const FRAME: u32 = 16 << 10;
/// How much of an answer a stream may keep when the client's window is closed.
const SEND_BUFFER: usize = 64 << 10;
/// How long a connection of HTTP/1.1 waits for one more request when the server closes. Its client may be sending it just
/// now and cannot be told otherwise; HTTP/2 can.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// What all connections of a listener have in common.
pub(crate) struct Connections<S, P> {
    service: S,
    protocol: P,
    http: Builder<Streams>,
    tls: Option<TlsAcceptor>,
    options: Options,
    closing: Closing,
}

impl<S, B, P> Connections<S, P>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    P: Protocol<B>,
{
    pub(crate) fn new(service: S, protocol: P, options: Options, closing: Closing) -> Self {
        let http = builder(&options.limits);
        Self {
            service,
            protocol,
            http: if options.http2_only {
                http.http2_only()
            } else {
                http
            },
            tls: options.tls.clone().map(|tls| acceptor(tls, options.http2_only)),
            options,
            closing,
        }
    }

    /// Serves a connection until either side ends it.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: OwnedSemaphorePermit,
    ) {
        // Small answers must not wait for the client's acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        let served = async {
            let Some(tls) = &self.tls else {
                return self.speak(stream, peer).await;
            };
            match tokio::time::timeout(self.options.limits.header_timeout, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.speak(stream, peer).await,
                Ok(Err(error)) => tracing::debug!(%error, %peer, "the TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
            }
        };
        tokio::select! {
            () = served => {}
            () = self.closing.clone().reach(Phase::Over) => {}
        }
        drop(place);
    }

    /// Speaks HTTP/1.1 or HTTP/2.
    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketAddr) {
        let limits = &self.options.limits;
        let pulse = Arc::new(Pulse::new());
        let socket = Socket::new(stream, Arc::clone(&pulse), limits.write_timeout);
        let service = service_fn(|request| self.answer(request, peer, &pulse));
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(socket), service));
        let farewell = tokio::select! {
            biased;
            result = connection.as_mut() => return tell(result, peer),
            overdue = Patience::new(Arc::clone(&pulse), limits) => match overdue {
                Overdue::Head => return tracing::debug!(%peer, "a client did not send a head in time"),
                Overdue::Idle => limits.write_timeout,
            },
            () = self.closing.clone().wait() => self.options.drain_timeout,
        };
        if self.closing.has_begun()
            && !pulse.is_http2()
            && let Ok(result) = tokio::time::timeout(LAST_REQUEST, connection.as_mut()).await
        {
            return tell(result, peer);
        }
        connection.as_mut().graceful_shutdown();
        match tokio::time::timeout(farewell, connection).await {
            Ok(result) => tell(result, peer),
            Err(_) => tracing::debug!(%peer, "a connection did not end in time"),
        }
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        pulse: &Arc<Pulse>,
    ) -> impl Future<Output = Result<Response<Answer<B>>, Infallible>> + Send + use<S, B, P> {
        let in_flight = pulse.begin();
        let (mut head, incoming) = request.into_parts();
        let kind = self.protocol.kind(&head);
        let place = self.options.capacity.place();
        let is_http1 = head.version < Version::HTTP_2;
        let account = Arc::new(self.options.capacity.account());
        let body = match kind {
            Kind::Conversation => Body::lasting(incoming, is_http1),
            Kind::Probe | Kind::Call => {
                let patience = self.options.limits.body_timeout;
                Body::bounded(incoming, is_http1, Arc::clone(&account), patience)
            }
        };
        let admitted = match place.is_some() || kind == Kind::Probe {
            false => Err(self.protocol.no_room(&head)),
            true => {
                head.extensions.insert(PeerAddress(peer));
                head.extensions.insert(self.closing.clone());
                Ok((self.service.clone(), Request::from_parts(head, body)))
            }
        };
        let closing = self.closing.clone();
        async move {
            let mut response = match admitted {
                Ok((service, request)) => service.oneshot(request).await?,
                Err(refusal) => refusal,
            };
            if is_http1 && closing.has_begun() {
                let headers = response.headers_mut();
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // What was read has been dealt with, however long the answer lasts.
            drop(account);
            Ok(response.map(|body| Answer::new(body, place, in_flight)))
        }
    }
}

fn builder(limits: &Limits) -> Builder<Streams> {
    let mut http = Builder::new(Streams {
        patience: limits.write_timeout,
    });
    // Times of heads and of silence are the pulse's, for both versions.
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(limits.max_header_bytes as usize);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.http2_ping_interval)
        .keep_alive_timeout(limits.http2_ping_timeout)
        .max_concurrent_streams(limits.http2_max_streams)
        .max_pending_accept_reset_streams(usize::from(limits.http2_max_pending_resets))
        .max_local_error_reset_streams(usize::from(limits.http2_max_error_resets))
        .max_header_list_size(limits.max_header_bytes)
        .max_frame_size(FRAME)
        .max_send_buf_size(SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    http
}

fn acceptor(mut tls: Tls, http2_only: bool) -> TlsAcceptor {
    if http2_only {
        Arc::make_mut(&mut tls).alpn_protocols = vec![b"h2".to_vec()];
    }
    TlsAcceptor::from(tls)
}

fn tell(result: Result<(), Box<dyn Error + Send + Sync>>, peer: SocketAddr) {
    if let Err(error) = result {
        tracing::debug!(error, %peer, "a connection broke");
    }
}
