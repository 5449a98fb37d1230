//! The contract against the specification as data, its goldens, and its JSON.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]

mod endpoints;
mod golden;
mod json;
mod manifests;
mod schema;

use contract::rest::Route;

/// Every REST route.
fn routes() -> Vec<&'static Route> {
    let mut routes: Vec<&'static Route> = Vec::new();
    macro_rules! route {
        ($shape:ident $routes:ident, $route:path, $request:path, $response:path) => {
            $routes.push(&$route)
        };
    }
    contract::for_each_route!(route, routes);
    routes
}
