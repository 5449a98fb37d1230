//! Calls to webhook URLs: forwarded as they are, answered as the core says. The hottest path of the service.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use contract::v1::{ErrorReason, HttpHeader, ReceiveWebhookRequest, ReceiveWebhookResponse};
use http::header::{
    CONNECTION, CONTENT_LENGTH, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message;

use crate::Facade;
use crate::call::Call;
use crate::metadata;
use crate::request_id;
use crate::routes::limited;
use crate::status::Failure;

/// Where webhooks are mounted; their URLs are `{base_url}/hooks/{id}`.
pub const HOOKS_PATH: &str = "/hooks/{id}";

/// gRPC path of the method that takes the calls.
const RECEIVE: &str = "/switchyard.v1.WebhookIngressService/ReceiveWebhook";

/// Headers that belong to one connection and not to the message, besides those that `Connection` names.
static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The one route, for every HTTP method: which one a webhook wants is the core's to say.
pub(crate) fn routes(facade: &Arc<Facade>) -> Router {
    let facade = facade.clone();
    let handler = move |path: RawPathParams, request: Request| {
        let facade = facade.clone();
        async move {
            let (parts, body) = request.into_parts();
            let webhook_id = path.iter().next().map(|(_, id)| id).unwrap_or_default();
            let answer = receive(&facade, webhook_id, &parts, body).await;
            answer.unwrap_or_else(|failure| failure.into_response(&request_id::of(&parts.extensions)))
        }
    };
    Router::new().route(HOOKS_PATH, any(handler))
}

async fn receive(facade: &Facade, webhook_id: &str, parts: &Parts, body: Body) -> Result<Response, Failure> {
    let config = &facade.config;
    let body = limited(
        &parts.headers,
        body,
        config.webhook_body_limit,
        config.body_timeout,
    )
    .await?;
    let request = ReceiveWebhookRequest {
        webhook_id: webhook_id.to_owned(),
        method: parts.method.as_str().to_owned(),
        headers: forwarded(&parts.headers),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        body: body.into(),
    };
    let call = Call {
        core: &facade.core,
        rpc: RECEIVE,
        metadata: metadata::of_request(parts, config),
        timeout: config.call_timeout,
    };
    let answer = call.unary(request.encode_to_vec().into()).await?.into_inner();
    let answer = ReceiveWebhookResponse::decode(answer).map_err(|error| {
        Failure::internal(format_args!(
            "the core's answer to a webhook cannot be read: {error}"
        ))
    })?;
    response(answer)
}

/// The headers of a call but those of its connection.
fn forwarded(headers: &HeaderMap) -> Vec<HttpHeader> {
    let header = |(name, value): (&HeaderName, &HeaderValue)| HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    };
    let stays = |(name, _): &(&HeaderName, &HeaderValue)| {
        !HOP_BY_HOP.contains(name) && !is_named_by_connection(headers, name)
    };
    headers.iter().filter(stays).map(header).collect()
}

/// Whether the sender says that a header is for its connection.
fn is_named_by_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    named
        .flat_map(|names| names.split(','))
        .any(|named| named.trim().eq_ignore_ascii_case(name.as_str()))
}

/// The core's answer as an HTTP response. A header that HTTP cannot carry is left out.
fn response(answer: ReceiveWebhookResponse) -> Result<Response, Failure> {
    let status = u16::try_from(answer.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status.filter(|status| !status.is_informational()) else {
        return Err(Failure::new(
            ErrorReason::Internal,
            "The workflow answered with a status that is not one of HTTP.",
        ));
    };
    let mut response = Response::new(Body::from(Bytes::from(answer.body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for HttpHeader { name, value } in answer.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(&value)) else {
            continue;
        };
        // The length is the server's to say.
        if !HOP_BY_HOP.contains(&name) && name != CONTENT_LENGTH {
            headers.append(name, value);
        }
    }
    Ok(response)
}
