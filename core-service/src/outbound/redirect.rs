//! From one request to the next: what a redirect asks for, and what does not go along.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap,
    LOCATION, PROXY_AUTHORIZATION,
};
use http::{Method, StatusCode};
use url::{Origin, Url};

use super::{OutboundError, Request, Secrets, without_parameters};

/// One request of perhaps several.
pub(super) struct Hop {
    pub(super) method: Method,
    url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Empty once a redirect has led to another scheme, host or port.
    pub(super) secrets: Secrets,
    follow_redirects: bool,
}

impl Hop {
    pub(super) fn first(request: Request) -> Result<Self, OutboundError> {
        let mut url = checked(request.url).map_err(|why| OutboundError::Invalid(format!("the URL {why}")))?;
        url.set_fragment(None);
        Ok(Self {
            method: request.method,
            url,
            headers: request.headers,
            body: request.body,
            secrets: request.secrets,
            follow_redirects: request.follow_redirects,
        })
    }

    /// The host, for people.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The URL with the secrets that belong into it.
    pub(super) fn full_url(&self) -> Url {
        self.secrets.join(self.url.clone())
    }

    /// The request that this response asks for; nothing when it is the answer itself.
    pub(super) fn redirected<T>(&self, response: &http::Response<T>) -> Result<Option<Self>, OutboundError> {
        let status = response.status();
        let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = response.headers().get(LOCATION);
        let (true, true, Some(location)) = (self.follow_redirects, is_redirect, location) else {
            return Ok(None);
        };
        let refuse = |why: &str| OutboundError::BadAnswer {
            host: self.host().to_owned(),
            why: format!("the redirect's URL {why}"),
        };
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| refuse("is not text"))?;
        let joined = self.url.join(location).map_err(|_| refuse("is not one"))?;
        let mut url = checked(joined).map_err(|why| refuse(&why))?;
        url.set_fragment(None);
        let stays = self.origin() == url.origin();
        if !stays {
            without_secrets(&mut url, &self.secrets);
        }
        let mut next = Self {
            method: self.method.clone(),
            url,
            headers: self.headers.clone(),
            body: self.body.clone(),
            secrets: if stays {
                // The path is the other side's from here on.
                Secrets {
                    path: None,
                    ..self.secrets.clone()
                }
            } else {
                Secrets::default()
            },
            follow_redirects: true,
        };
        if !stays {
            for private in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                next.headers.remove(private);
            }
        }
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.body = Bytes::new();
            for of_body in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_LANGUAGE] {
                next.headers.remove(of_body);
            }
        }
        Ok(Some(next))
    }

    fn origin(&self) -> Origin {
        self.url.origin()
    }
}

/// A URL that can be requested, or what is wrong with it.
fn checked(url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password; a credential does".to_owned());
    }
    match url.has_host() {
        true => Ok(url),
        false => Err("must name a host".to_owned()),
    }
}

/// Takes out of a URL what the other side copied into it.
fn without_secrets(url: &mut Url, secrets: &Secrets) {
    let is_secret = |value: &str| secrets.query.iter().any(|(_, secret)| secret.expose() == value);
    if url.query_pairs().any(|(_, value)| is_secret(&value)) {
        without_parameters(url, |_, value| is_secret(value));
    }
}

/// As browsers do it: 303 always asks for a GET, 301 and 302 make one of a POST.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => *method != Method::GET && *method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        _ => false,
    }
}
