//! `openapi.json`: the REST API as OpenAPI 3.1, from the contract's descriptors.

use axum::Router;

/// The route that serves it.
pub(crate) fn routes() -> Router {
    Router::new()
}
