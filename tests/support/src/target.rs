//! Another service, for the product to send requests to: answers as a test says and remembers what it was asked.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// A running service of a test. Ends when it is dropped.
pub struct Target {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Asked {
    /// A header's text; empty when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Target {
    /// Starts a service on a port of its own that answers by this function.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn start(answer: impl Fn(&Asked) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        Self::start_slow(move |asked| std::future::ready(answer(asked))).await
    }

    /// As [`Self::start`], with answers that take their time.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn start_slow<F: Future<Output = Response<Bytes>> + Send + 'static>(
        answer: impl Fn(&Asked) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                let service =
                    service_fn(move |request| respond(request, Arc::clone(&answer), Arc::clone(&seen)));
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Self { address, asked, task }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, by address.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn respond<F: Future<Output = Response<Bytes>>>(
    request: Request<Incoming>,
    answer: Arc<impl Fn(&Asked) -> F>,
    seen: Arc<Mutex<Vec<Asked>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let asked = Asked {
        method: head.method,
        uri: head.uri,
        headers: head.headers,
        body: body.unwrap_or_default(),
    };
    let response = answer(&asked);
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    Ok(response.await.map(Full::new))
}
