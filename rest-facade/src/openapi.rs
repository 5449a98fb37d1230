//! `openapi.json`: the REST API as OpenAPI 3.1, from the contract's descriptors, comments and options.

mod comments;
mod operations;
mod schemas;

use std::fmt::Write;
use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use contract::options::Contract;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use prost_reflect::{DescriptorError, DescriptorPool};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::status::{Failure, JSON};
use comments::Comments;
use operations::Operations;
use schemas::Schemas;

/// Where the document is served.
pub const PATH: &str = "/api/v1/openapi.json";

const DESCRIPTION: &str = "Workflow automation: build workflows, deploy and run them, and manage what they use. \
    A success is `{\"data\": …}`, an error `{\"error\": {code, message, request_id, details}}`; clients branch on \
    `code`. Times are epoch milliseconds unless they are typed as date-time.";

/// The document as it is served.
struct Served {
    body: Bytes,
    etag: HeaderValue,
}

/// The public route that serves the document.
pub(crate) fn routes() -> Router {
    Router::new().route(PATH, get(serve))
}

async fn serve(headers: HeaderMap, request_id: axum::Extension<crate::RequestId>) -> Response {
    static SERVED: OnceLock<Result<Served, String>> = OnceLock::new();
    let served = match SERVED.get_or_init(render) {
        Ok(served) => served,
        Err(cause) => return Failure::internal(cause).into_response(&request_id),
    };
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|etag| etag.trim() == "*" || etag.trim().trim_start_matches("W/") == served.etag);
    let mut response = match known {
        true => Response::new(Body::empty()),
        false => Response::new(Body::from(served.body.clone())),
    };
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        response.headers_mut().insert(CONTENT_TYPE, JSON);
    }
    response.headers_mut().insert(ETAG, served.etag.clone());
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn render() -> Result<Served, String> {
    let document =
        document().map_err(|error| format!("the contract's descriptors cannot be read: {error}"))?;
    let body = document.to_string();
    let mut etag = String::from("\"");
    for byte in &Sha256::digest(&body)[..16] {
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    Ok(Served {
        body: body.into(),
        etag: HeaderValue::try_from(etag).map_err(|error| error.to_string())?,
    })
}

/// The document.
///
/// # Errors
/// When the contract's descriptors are not ones.
pub fn document() -> Result<Value, DescriptorError> {
    let contract = Contract::new(DescriptorPool::decode(contract::DESCRIPTORS)?);
    let comments = Comments::new(
        contract
            .services()
            .map(|service| service.parent_file())
            .chain(contract.messages().map(|message| message.parent_file())),
    );
    let mut schemas = Schemas::new(&contract, &comments);
    let mut operations = Operations::new(&contract, &comments, &mut schemas);
    let (mut tags, mut paths) = (Vec::new(), Map::new());
    for service in contract.services() {
        let tag = service.name().trim_end_matches("Service");
        let mut used = false;
        for method in service.methods() {
            if let Some((path, verb, operation)) = operations.operation(&method, tag) {
                let item = paths.entry(path).or_insert_with(|| json!({}));
                item[verb] = operation;
                used = true;
            }
        }
        if used {
            tags.push(
                json!({"name": tag, "description": comments.of(&service.parent_file(), service.path())}),
            );
        }
    }
    paths.insert(PATH.to_owned(), json!({"get": operations.of_this_document()}));
    paths.sort_keys();
    let responses = operations.shared_responses();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {"title": "Switchyard", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key. The role names of an operation are the scopes that the key needs.",
            }},
            "headers": operations::shared_headers(),
            "responses": responses,
            "schemas": schemas.into_components(),
        },
    }))
}
