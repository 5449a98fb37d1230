//! What is neither the API's nor a webhook's: pages for people, which are the core's. Which there are is unknown here.

use axum::extract::Request;
use axum::response::Response;
use contract::v1::{ErrorReason, ServePageRequest, ServePageResponse};
use prost::Message;
use tonic::Status;

use crate::Facade;
use crate::body::limited;
use crate::call::Call;
use crate::metadata;
use crate::raw;
use crate::request_id;
use crate::status::Failure;

/// gRPC path of the method that serves them.
const SERVE: &str = "/switchyard.v1.PageService/ServePage";
/// Below this there are no pages.
const API: &str = "/api/";

/// Answers a request that no route has taken.
pub(crate) async fn serve(facade: &Facade, request: Request) -> Response {
    let id = request_id::of(request.extensions());
    let answer = match request.uri().path().starts_with(API) {
        true => Err(no_such_path()),
        false => forward(facade, request).await,
    };
    answer.unwrap_or_else(|failure| failure.into_response(&id))
}

async fn forward(facade: &Facade, request: Request) -> Result<Response, Failure> {
    let config = &facade.config;
    let (parts, body) = request.into_parts();
    let body = limited(&parts.headers, body, config.body_limit).await?;
    let request = ServePageRequest {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: raw::headers(&parts.headers),
        body: body.into(),
    };
    let call = Call {
        core: &facade.core,
        rpc: SERVE,
        metadata: metadata::of_request(&parts, config),
        timeout: config.call_timeout,
    };
    let answer = call.unary(request.encode_to_vec().into()).await;
    let answer = answer.map_err(refusal)?.into_inner();
    let answer = ServePageResponse::decode(answer).map_err(|error| {
        Failure::internal(format_args!(
            "the core's answer to a page's request cannot be read: {error}"
        ))
    })?;
    raw::response(answer.status, answer.headers, answer.body)
}

/// A core that has no such page, or no pages at all, has no such path.
fn refusal(status: Status) -> Failure {
    let failure = Failure::from(status);
    match failure.reason {
        ErrorReason::NotFound | ErrorReason::Unimplemented => no_such_path(),
        _ => failure,
    }
}

fn no_such_path() -> Failure {
    Failure::new(
        ErrorReason::NotFound,
        "There is no such path; see /api/v1/openapi.json.",
    )
}
