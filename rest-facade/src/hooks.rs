//! Calls to webhook URLs: forwarded as they are, answered as the core says. The hottest path of the service.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;
use contract::v1::{ReceiveWebhookRequest, ReceiveWebhookResponse};
use prost::Message;

use crate::Facade;
use crate::body::limited;
use crate::call::Call;
use crate::metadata;
use crate::raw;
use crate::request_id;
use crate::status::Failure;

/// Where webhooks are mounted; their URLs are `{base_url}/hooks/{id}`.
pub const HOOKS_PATH: &str = "/hooks/{id}";

/// gRPC path of the method that takes the calls.
const RECEIVE: &str = "/switchyard.v1.WebhookIngressService/ReceiveWebhook";

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
    let body = limited(&parts.headers, body, config.webhook_body_limit).await?;
    let request = ReceiveWebhookRequest {
        webhook_id: webhook_id.to_owned(),
        method: parts.method.as_str().to_owned(),
        headers: raw::headers(&parts.headers),
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
    raw::response(answer.status, answer.headers, answer.body)
}
