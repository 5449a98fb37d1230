//! The one HTTP client, for all requests that leave the service on behalf of its users, and the one dialer below it, which
//! also opens the connections of drivers for other protocols (`native`).
//!
//! Those requests go where users say, so they must not reach what only this machine can reach. The check is made where
//! a connection is opened, on the address that it is opened to: a name, a literal, a redirect and a name that suddenly
//! leads elsewhere all pass there. Connections are pooled, so an address in the pool has been checked.
//!
//! Built on hyper-util's client with a connector of its own, over the rustls and ring that the rest of the service has
//! anyway: the check on the final address needs the connector, and redirects need to be ours because secrets must stay
//! behind. What a larger client adds to that (cookies, proxies, multipart) is not wanted or a few lines.
//!
//! Absent on purpose: proxies from the environment, cookies, retries (the engine's), the meaning of statuses.

mod address;
mod body;
mod connector;
mod dialer;
mod error;
mod memory;
mod redirect;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use ipnet::IpNet;
use tokio_rustls::rustls::pki_types::CertificateDer;
use url::Url;

pub use address::{AddressRules, network};
pub use dialer::{CONNECT_TIMEOUT, DialError, Dialer, is_distrust};
pub use error::OutboundError;

use self::connector::Connector;
use self::memory::Memory;
use self::redirect::Hop;
use crate::secret::Secret;

/// The most bytes of a response's body, decompressed.
pub const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// The most redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;
/// How long a connection that nobody uses is kept.
const KEEP_IDLE: Duration = Duration::from_secs(60);
/// Idle connections kept for each host.
const MOST_IDLE_PER_HOST: usize = 16;

const OWN_NAME: HeaderValue = HeaderValue::from_static(concat!("switchyard/", env!("CARGO_PKG_VERSION")));
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Sends requests. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Outbound {
    client: Client<Connector, Full<Bytes>>,
    memory: Memory,
    dialer: Dialer,
}

/// A request to be sent.
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where to; `http` or `https`.
    pub url: Url,
    /// Headers without secrets.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// What proves who is asking.
    pub secrets: Secrets,
    /// Whether redirects are followed or given back.
    pub follow_redirects: bool,
    /// How long all of it may take: connecting, redirects and reading the body.
    pub timeout: Duration,
}

/// What a credential adds to a request. Goes to the request's own scheme, host and port and nowhere else.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Headers, in place of the request's own of the same name.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Query parameters by name.
    pub query: Vec<(String, Secret)>,
    /// What stands before the request's path.
    pub path: Option<Secret>,
}

/// What came back.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers; those of an encoding that was undone are left out.
    pub headers: HeaderMap,
    /// The body, decompressed; at most [`MAX_BODY_BYTES`].
    pub body: Bytes,
}

impl Request {
    /// A request without headers and body, which follows redirects.
    pub fn new(method: Method, url: Url, timeout: Duration) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            secrets: Secrets::default(),
            follow_redirects: true,
            timeout,
        }
    }
}

impl Secrets {
    /// A URL with what belongs into it, in the place of parameters of the same name: a link that the service made may have
    /// a key from before.
    pub fn join(&self, mut url: Url) -> Url {
        if let Some(prefix) = &self.path {
            let path = format!("{}{}", prefix.expose(), url.path());
            url.set_path(&path);
        }
        if self.query.is_empty() {
            return url;
        }
        let is_secret = |name: &str| self.query.iter().any(|(secret, _)| secret == name);
        if url.query_pairs().any(|(name, _)| is_secret(&name)) {
            without_parameters(&mut url, |name, _| is_secret(name));
        }
        let secrets = self.query.iter().map(|(name, value)| (name, value.expose()));
        url.query_pairs_mut().extend_pairs(secrets);
        url
    }

    /// Whether a URL's path begins with what would be put before it.
    pub fn has_path_of(&self, url: &Url) -> bool {
        let Some(prefix) = &self.path else { return false };
        let mut beginning = url.clone();
        beginning.set_path(prefix.expose());
        let rest = url.path().strip_prefix(beginning.path());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Takes parameters out of a URL's query.
fn without_parameters(url: &mut Url, unwanted: impl Fn(&str, &str) -> bool) {
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, value)| !unwanted(name, value))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(kept);
}

impl Outbound {
    /// A client that may also reach these networks although they are private.
    pub fn new(allowed: &[IpNet]) -> Self {
        Self::trusting(allowed, dialer::native_certificates())
    }

    fn trusting(allowed: &[IpNet], trusted: Vec<CertificateDer<'static>>) -> Self {
        Self::over(Dialer::new(AddressRules::new(allowed), trusted))
    }

    /// A client for which one address stands in for every host, without encryption.
    #[cfg(test)]
    pub fn standing_in(address: std::net::SocketAddr) -> Self {
        Self::over(Dialer::standing_in(address))
    }

    fn over(dialer: Dialer) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MOST_IDLE_PER_HOST)
            .pool_timer(TokioTimer::new())
            .build(Connector::new(dialer.clone()));
        Self {
            client,
            memory: Memory::new(memory::MOST_BYTES),
            dialer,
        }
    }

    /// Opens connections for what is no HTTP, to addresses that requests may go to as well.
    pub fn dialer(&self) -> Dialer {
        self.dialer.clone()
    }

    /// Sends a request and reads the whole response. Dropping the future gives the request up.
    ///
    /// # Errors
    /// When it leads to an address that is refused, nothing answers in time, or the answer cannot be used. A status
    /// that tells of a failure is no error here.
    pub async fn send(&self, request: Request) -> Result<Response, OutboundError> {
        let timeout = request.timeout;
        let answered = tokio::time::timeout(timeout, self.follow(request)).await;
        answered.unwrap_or(Err(OutboundError::Timeout(timeout)))
    }

    async fn follow(&self, request: Request) -> Result<Response, OutboundError> {
        let mut hop = Hop::first(request)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(&hop).await?;
            match hop.redirected(&response)? {
                Some(next) => hop = next,
                None => return body::read(response, hop.host(), &self.memory).await,
            }
        }
        Err(OutboundError::TooManyRedirects)
    }

    /// One request, up to the head of its response.
    async fn exchange(&self, hop: &Hop) -> Result<http::Response<Incoming>, OutboundError> {
        let uri = Uri::try_from(hop.full_url().as_str())
            .map_err(|error| OutboundError::Invalid(format!("the URL cannot be requested: {error}")))?;
        let mut request = http::Request::new(Full::new(hop.body.clone()));
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.clone_from(&hop.headers);
        headers.entry(USER_AGENT).or_insert(OWN_NAME);
        headers.entry(ACCEPT_ENCODING).or_insert(GZIP);
        for (name, value) in &hop.secrets.headers {
            headers.insert(name, value.clone());
        }
        let answered = self.client.request(request).await;
        answered.map_err(|error| OutboundError::of_exchange(hop.host(), Arc::new(error)))
    }
}

#[cfg(test)]
mod tests;
