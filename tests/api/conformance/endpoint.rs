//! The endpoints that are held to the specification: those it lists, and those that the contract adds.

use contract::access::{Access, Method as Rpc};
use contract::json::Words as _;
use contract::rest::{RestRequest, Route};
use contract::v1::Scope;
use serde_json::Value;

/// `spec/endpoints.json`, the one copy of it.
const SPECIFICATION: &str = include_str!("../../contract/endpoints.json");

/// The methods that are not there yet, by gRPC path.
const UNIMPLEMENTED: &str = include_str!("../../golden/unimplemented.txt");

/// One endpoint.
pub(super) struct Endpoint {
    /// `VERB /path` below `/api/v1`, as the specification writes it if it does.
    pub name: String,
    pub route: &'static Route,
    pub rpc: &'static Rpc,
    /// Names of its query parameters.
    pub query: &'static [&'static str],
    pub has_body: bool,
    /// Whether it answers with a stream of events.
    pub streams: bool,
    /// `success` of the specification; null for what the contract adds.
    pub success: Value,
}

impl Endpoint {
    pub fn scope(&self) -> Scope {
        match self.rpc.access {
            Access::Key(scope) => scope,
            Access::Public | Access::Operator => panic!("{} is open", self.name),
        }
    }

    /// The scope's word.
    pub fn scope_word(&self) -> &'static str {
        Scope::to_word(i32::from(self.scope())).unwrap()
    }

    /// Whether it names one thing of an organization in its path.
    pub fn is_about_one(&self) -> bool {
        // The catalog is everybody's; a variable is set by its name, which each organization has for itself.
        let of_nobody = self.name.contains(" /catalog/") || self.name == "PUT /variables/{id}";
        self.route.path.contains('{') && !of_nobody
    }

    /// Path of a request, each parameter filled with this.
    pub fn path_with(&self, value: &str) -> String {
        let segments = self.route.path.split('/');
        let filled = segments.map(|segment| if is_parameter(segment) { value } else { segment });
        filled.collect::<Vec<_>>().join("/")
    }

    /// Names of the path's parameters, in order.
    pub fn path_parameters(&self) -> Vec<&str> {
        let segments = self.route.path.split('/');
        segments
            .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
            .collect()
    }
}

/// The specification as data.
pub(super) fn specification() -> Value {
    serde_json::from_str(SPECIFICATION).unwrap()
}

/// Every endpoint.
///
/// # Panics
/// When the specification lists one that has no route.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let specification = specification();
    let listed = specification["endpoints"].as_array().unwrap();
    let mut endpoints: Vec<Endpoint> = Vec::new();
    macro_rules! collect {
        ($shape:ident $endpoints:ident, $route:path, $request:path, $response:path) => {{
            let has_body = <$request as RestRequest>::HAS_BODY;
            let query = <$request as RestRequest>::QUERY;
            $endpoints.push(of_route(
                &$route,
                listed,
                query,
                has_body,
                stringify!($shape) == "stream",
            ))
        }};
    }
    contract::for_each_route!(collect, endpoints);
    for said in listed {
        let name = name(said);
        assert!(
            endpoints.iter().any(|endpoint| endpoint.name == name),
            "{name} has no route"
        );
    }
    endpoints
}

/// The endpoints that are there; the golden list of those that are not is only ever to get shorter.
pub(super) fn implemented() -> Vec<Endpoint> {
    let mut endpoints = endpoints();
    endpoints.retain(|endpoint| is_implemented(endpoint.rpc.path));
    endpoints
}

/// Whether the catalog has any app: credentials are for them, and came with the first one.
pub(super) fn apps_are_there() -> bool {
    is_implemented("/switchyard.v1.CredentialService/CreateCredential")
}

fn is_implemented(rpc: &str) -> bool {
    UNIMPLEMENTED.lines().all(|path| path != rpc)
}

fn of_route(
    route: &'static Route,
    listed: &[Value],
    query: &'static [&'static str],
    has_body: bool,
    streams: bool,
) -> Endpoint {
    let path = route.path.strip_prefix("/api/v1").unwrap();
    let said = listed
        .iter()
        .find(|said| said["method"] == route.verb && normal(said["path"].as_str().unwrap()) == normal(path));
    Endpoint {
        name: said.map_or_else(|| format!("{} {path}", route.verb), name),
        route,
        rpc: Rpc::find(route.rpc).unwrap(),
        query,
        has_body,
        streams,
        success: said.map_or(Value::Null, |said| said["success"].clone()),
    }
}

fn name(said: &Value) -> String {
    let text = |key| said[key].as_str().unwrap();
    format!("{} {}", text("method"), text("path"))
}

/// A path with its parameters named by position.
fn normal(path: &str) -> String {
    let segments = path.split('/');
    let unnamed = segments.map(|segment| if is_parameter(segment) { "{}" } else { segment });
    unnamed.collect::<Vec<_>>().join("/")
}

fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}
