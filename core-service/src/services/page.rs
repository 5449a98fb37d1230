//! Pages for people, carried over gRPC, so that any facade serves them. What is on them is in `pages`.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use contract::access::Public;
use contract::v1::{self, ErrorReason};
use http::StatusCode;
use http::header::ALLOW;
use tower::ServiceExt as _;

use super::{Services, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::pages::{self, NoPage};
use crate::store::Actor;

pub(super) struct Pages {
    router: Router,
}

contract::page_service_methods!(service, Pages);

impl Pages {
    pub(super) fn new(services: &Services) -> Self {
        let connections = pages::connect::Desk {
            store: services.store.clone(),
            credentials: services.credentials.clone(),
            app_caller: services.app_caller.clone(),
            base_url: services.base_url.clone(),
        };
        Self {
            router: pages::router(&services.store, connections, &services.people),
        }
    }

    async fn serve_page(
        &self,
        caller: Authorized<Public>,
        request: v1::ServePageRequest,
    ) -> Result<v1::ServePageResponse> {
        let request = http_request(request, caller.actor())?;
        let answer = match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        match answer.extensions().get::<NoPage>() {
            Some(NoPage) => Err(no_page(&answer)),
            None => message(answer).await,
        }
    }
}

fn http_request(request: v1::ServePageRequest, actor: Actor) -> Result<Request> {
    let uri = match request.query.as_str() {
        "" => request.path,
        query => format!("{}?{query}", request.path),
    };
    let mut builder = Request::builder().method(request.method.as_str()).uri(uri);
    for header in &request.headers {
        builder = builder.header(header.name.as_str(), header.value.as_slice());
    }
    builder
        .extension(actor)
        .body(Body::from(request.body))
        .map_err(|error| Error::invalid("", format!("is not an HTTP request: {error}")))
}

fn no_page(answer: &Response) -> Error {
    if answer.status() != StatusCode::METHOD_NOT_ALLOWED {
        return Error::not_found("page");
    }
    let allowed = answer
        .headers()
        .get(ALLOW)
        .and_then(|allowed| allowed.to_str().ok());
    let message = "This page has other methods; see the Allow header.";
    Error::new(ErrorReason::MethodNotAllowed, message).with_allow(allowed.unwrap_or_default())
}

async fn message(answer: Response) -> Result<v1::ServePageResponse> {
    let (parts, body) = answer.into_parts();
    // A page is what this server itself has made: it has no limit.
    let body = to_bytes(body, usize::MAX).await.map_err(Error::internal)?;
    let headers = parts.headers.iter().map(|(name, value)| v1::HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    });
    Ok(v1::ServePageResponse {
        status: i32::from(parts.status.as_u16()),
        headers: headers.collect(),
        body: body.into(),
    })
}
