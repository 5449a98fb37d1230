//! What crosses between HTTP headers and gRPC metadata, and nothing else.

use std::net::IpAddr;

use axum::http::request::Parts;
use http::header::{ALLOW, AUTHORIZATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use server::PeerAddress;
use tonic::metadata::MetadataMap;

use crate::FacadeConfig;
use crate::request_id;

/// The address of the caller, for the core's audit.
const CLIENT_IP: HeaderName = HeaderName::from_static("x-client-ip");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Metadata of an answer that the caller sees.
static ANSWER_HEADERS: [HeaderName; 5] = [
    ALLOW,
    HeaderName::from_static("idempotent-replayed"),
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    RETRY_AFTER,
];

/// The metadata of a call that answers an HTTP request.
pub(crate) fn of_request(parts: &Parts, config: &FacadeConfig) -> MetadataMap {
    // Four entries, and two that the client adds.
    let mut metadata = HeaderMap::with_capacity(6);
    if let Some(authorization) = parts.headers.get(AUTHORIZATION) {
        metadata.insert(AUTHORIZATION, authorization.clone());
    }
    metadata.insert(
        request_id::HEADER,
        request_id::of(&parts.extensions).header().clone(),
    );
    if let Some(address) = client_address(parts, config.trust_forwarded_for)
        && let Ok(address) = HeaderValue::try_from(address.to_string())
    {
        metadata.insert(CLIENT_IP, address);
    }
    MetadataMap::from_headers(metadata)
}

/// The peer's address; or, behind a trusted proxy, the last address that it put into `X-Forwarded-For`. Those before
/// it are the client's own claim.
fn client_address(parts: &Parts, trust_forwarded_for: bool) -> Option<IpAddr> {
    let forwarded = || {
        let last = parts.headers.get_all(FORWARDED_FOR).iter().next_back()?;
        last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
    };
    let peer = || Some(parts.extensions.get::<PeerAddress>()?.0.ip());
    trust_forwarded_for.then(forwarded).flatten().or_else(peer)
}

/// The headers that the metadata of an answer puts into the response.
pub(crate) fn to_headers(metadata: &MetadataMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in &ANSWER_HEADERS {
        if let Some(value) = metadata.as_ref().get(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers
}
