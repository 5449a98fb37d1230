//! The generated routes, all served by one handler.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use contract::rest::Route;
use contract::v1::{ErrorDetail, ErrorReason};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use crate::Facade;
use crate::body::json_body;
use crate::call::Call;
use crate::events;
use crate::metadata;
use crate::pages;
use crate::request_id;
use crate::status::{Failure, JSON};
use crate::transcode::{self, AnswerError, Incoming, Outgoing, OutgoingEvent};

/// The route that answered: an extension of the response, for whoever measures.
#[derive(Debug, Clone, Copy)]
pub struct MatchedRoute(pub &'static Route);

/// An endpoint: a route, and what its types make of requests and answers.
struct Endpoint {
    route: &'static Route,
    /// Names of the path parameters, in order.
    parameters: Vec<&'static str>,
    has_body: bool,
    read: fn(&Incoming<'_>) -> Result<Bytes, Vec<ErrorDetail>>,
    answer: Answer,
}

/// How the core's answer becomes a body.
enum Answer {
    Whole(fn(Bytes) -> Result<Outgoing, AnswerError>),
    Events(fn(Bytes) -> Result<Option<OutgoingEvent>, AnswerError>),
}

/// Every route of the contract.
pub(crate) fn api(facade: &Arc<Facade>) -> Router {
    let mut endpoints = Vec::new();
    macro_rules! endpoint {
        ($shape:ident $endpoints:ident, $route:path, $request:path, $response:path) => {
            $endpoints.push(Endpoint {
                route: &$route,
                parameters: parameters($route.path),
                has_body: <$request as contract::rest::RestRequest>::HAS_BODY,
                read: transcode::read::<$request>,
                answer: endpoint!(@$shape $response),
            })
        };
        (@unary $response:path) => { Answer::Whole(transcode::write::<$response>) };
        (@stream $response:path) => { Answer::Events(transcode::write_event::<$response>) };
    }
    contract::for_each_route!(endpoint, endpoints);
    endpoints.into_iter().fold(Router::new(), |router, endpoint| {
        router.route(&by_position(endpoint.route.path), mount(facade.clone(), endpoint))
    })
}

/// Answers in the error envelope for what is not a route: 405 with `Allow`, and 404 when it is no page either.
pub(crate) fn with_fallbacks(router: Router, facade: &Arc<Facade>) -> Router {
    let facade = facade.clone();
    router
        .method_not_allowed_fallback(async |request: Request| {
            let message = "This path has other methods; see the Allow header.";
            Failure::new(ErrorReason::MethodNotAllowed, message)
                .into_response(&request_id::of(request.extensions()))
        })
        .fallback(move |request: Request| {
            let facade = facade.clone();
            async move { pages::serve(&facade, request).await }
        })
}

/// The parameters of a path, in order.
fn parameters(path: &'static str) -> Vec<&'static str> {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .collect()
}

/// The path with its parameters named by position: the router wants one name in one place.
fn by_position(path: &str) -> String {
    let segments = path
        .split('/')
        .enumerate()
        .map(|(position, segment)| match segment.starts_with('{') {
            true => format!("{{p{position}}}"),
            false => segment.to_owned(),
        });
    segments.collect::<Vec<_>>().join("/")
}

fn mount(facade: Arc<Facade>, endpoint: Endpoint) -> MethodRouter {
    let filter = match endpoint.route.verb {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    let endpoint = Arc::new(endpoint);
    on(
        filter,
        move |path: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
            let (facade, endpoint) = (facade.clone(), endpoint.clone());
            async move {
                let mut response = endpoint.handle(&facade, path, request).await;
                response.extensions_mut().insert(MatchedRoute(endpoint.route));
                response
            }
        },
    )
}

impl Endpoint {
    async fn handle(
        &self,
        facade: &Facade,
        path: Result<RawPathParams, RawPathParamsRejection>,
        request: Request,
    ) -> Response {
        let (parts, body) = request.into_parts();
        let id = request_id::of(&parts.extensions);
        let call = Call {
            core: &facade.core,
            rpc: self.route.rpc,
            metadata: metadata::of_request(&parts, &facade.config),
            timeout: facade.config.call_timeout,
        };
        let answer = match self.message(facade, &path, &parts, body).await {
            Ok(message) => self.answer(facade, call, message, &parts).await,
            // Who may not call at all does not learn what is wrong with the request.
            Err(refusal) => Err(match call.authorize().await {
                Ok(metadata) => refusal.telling(&metadata),
                Err(status) => status.into(),
            }),
        };
        answer.unwrap_or_else(|failure| failure.into_response(&id))
    }

    /// The request as an encoded message.
    async fn message(
        &self,
        facade: &Facade,
        path: &Result<RawPathParams, RawPathParamsRejection>,
        parts: &Parts,
        body: Body,
    ) -> Result<Bytes, Failure> {
        let body = match self.has_body {
            true => json_body(&parts.headers, body, facade.config.body_limit).await?,
            false => Bytes::new(),
        };
        let Ok(path) = path else {
            return Err(Failure::invalid(vec![ErrorDetail {
                path: String::new(),
                message: "has a path that is not percent-encoded UTF-8".to_owned(),
            }]));
        };
        let values = path.iter().map(|(_, value)| value);
        let incoming = Incoming {
            path: self.parameters.iter().copied().zip(values).collect(),
            query: parts.uri.query().unwrap_or_default(),
            headers: &parts.headers,
            body: &body,
        };
        (self.read)(&incoming).map_err(Failure::invalid)
    }

    async fn answer(
        &self,
        facade: &Facade,
        call: Call<'_>,
        message: Bytes,
        parts: &Parts,
    ) -> Result<Response, Failure> {
        match self.answer {
            Answer::Whole(write) => {
                let (metadata, message, _) = call.unary(message).await?.into_parts();
                let outgoing = write(message).map_err(Failure::internal)?;
                Ok(self.whole(outgoing, metadata::to_headers(&metadata)))
            }
            Answer::Events(write) => {
                let (metadata, stream, _) = call.streaming(message).await?.into_parts();
                let mut response = events::response(stream, write, parts, &facade.config);
                response.headers_mut().extend(metadata::to_headers(&metadata));
                Ok(response)
            }
        }
    }

    fn whole(&self, outgoing: Outgoing, headers: HeaderMap) -> Response {
        let status = match outgoing.created {
            true => StatusCode::CREATED,
            false => StatusCode::from_u16(self.route.success_status).unwrap_or(StatusCode::OK),
        };
        if status == StatusCode::NO_CONTENT {
            return (status, headers).into_response();
        }
        let mut response = Response::new(Body::from(outgoing.json));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response
    }
}
