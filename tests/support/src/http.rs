//! A plain HTTP/1.1 client: one connection a request, so that no test sees what another left behind.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Sends requests to one listener.
#[derive(Clone)]
pub struct HttpClient {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl HttpClient {
    /// A client of a listener; with TLS settings, over TLS to the name `localhost`.
    #[must_use]
    pub fn new(address: SocketAddr, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { address, tls }
    }

    /// Sends a request and reads its whole answer.
    ///
    /// # Errors
    /// When the connection cannot be made or breaks.
    pub async fn send(&self, mut request: Request<Bytes>) -> io::Result<Answer> {
        let host = HeaderValue::try_from(self.address.to_string()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        request
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some(config) => {
                let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
                let stream = TlsConnector::from(Arc::clone(config))
                    .connect(name, stream)
                    .await?;
                exchange(stream, request).await
            }
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
) -> io::Result<Answer> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let response = sender.send_request(request.map(Full::new)).await?;
        let (parts, body) = response.into_parts();
        Ok::<_, hyper::Error>(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    };
    let answer = answer.await.map_err(io::Error::other);
    connection.abort();
    answer
}

impl Answer {
    /// A header's text; empty when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("not JSON ({error}): {} {}", self.status, self.text()))
    }

    /// The whole body of a success with this status.
    ///
    /// # Panics
    /// When the status is another.
    #[track_caller]
    pub fn body(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        self.json()
    }

    /// `data` of a success with this status.
    ///
    /// # Panics
    /// When the status is another, or the body has no `data`.
    #[track_caller]
    pub fn data(&self, status: u16) -> Value {
        let body = self.body(status);
        assert!(body.get("data").is_some(), "no data: {body}");
        body["data"].clone()
    }

    /// `data` and `next_cursor` of a page.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn page(&self) -> (Vec<Value>, Option<String>) {
        let body = self.body(200);
        let rows = body["data"].as_array().cloned();
        let cursor = body
            .get("next_cursor")
            .expect("a page has next_cursor, if only null");
        let cursor = cursor.as_str().map(str::to_owned);
        (rows.expect("a page has data"), cursor)
    }

    /// The `error` of a refusal with this status and code, in the whole envelope.
    ///
    /// # Panics
    /// When it is another answer, or not in the envelope.
    #[track_caller]
    pub fn error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        let body = self.json();
        let error = &body["error"];
        assert_eq!(error["code"], code, "{body}");
        assert_eq!(error["request_id"], self.header("x-request-id"), "{body}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{body}"
        );
        assert!(error["details"].is_array(), "{body}");
        error.clone()
    }

    /// A refusal with 400 `VALIDATION_ERROR` that names the field at this path.
    ///
    /// # Panics
    /// When it is another answer or names other fields only.
    #[track_caller]
    pub fn invalid(&self, path: &str) {
        let error = self.error(400, "VALIDATION_ERROR");
        let details = error["details"].as_array().expect("details");
        assert!(
            details.iter().any(|detail| detail["path"] == path),
            "no detail about {path:?}: {error}"
        );
    }
}
