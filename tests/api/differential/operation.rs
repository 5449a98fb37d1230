//! One call, written once: over REST it is sent as it stands, over gRPC as the message that the contract makes of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use contract::json;
use contract::rest::{RestRequest, RestResponse, Route};
use serde_json::Value;
use test_support::percent_encoded;

/// A call of a method of the contract.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// What path, query and headers hold, by the names of the message's fields.
    pub(crate) parameters: Vec<(&'static str, String)>,
    /// The JSON body; null when there is none.
    pub(crate) body: Value,
}

/// What the contract says of a method, and what its types do.
struct Method {
    route: &'static Route,
    query: &'static [&'static str],
    headers: &'static [(&'static str, &'static str)],
    has_body: bool,
    encode: fn(&Operation) -> Vec<u8>,
    answer: fn(&Route, &[u8]) -> (u16, Value),
}

/// The methods that answer once, by their names.
static METHODS: LazyLock<HashMap<&'static str, Method>> = LazyLock::new(|| {
    let mut methods = HashMap::new();
    macro_rules! method {
        (unary $methods:ident, $route:path, $request:path, $response:path) => {
            let method = Method {
                route: &$route,
                query: <$request as RestRequest>::QUERY,
                headers: <$request as RestRequest>::HEADERS,
                has_body: <$request as RestRequest>::HAS_BODY,
                encode: encode::<$request>,
                answer: answer::<$response>,
            };
            $methods.insert(name($route.rpc), method);
        };
        (stream $methods:ident, $route:path, $request:path, $response:path) => {};
    }
    contract::for_each_route!(method, methods);
    methods
});

fn name(rpc: &'static str) -> &'static str {
    rpc.rsplit('/').next().unwrap_or(rpc)
}

/// The routes of all methods that only read and answer once.
pub(crate) fn reads() -> Vec<&'static Route> {
    let routes = METHODS.values().map(|method| method.route);
    let mut reads: Vec<_> = routes.filter(|route| route.verb == "GET").collect();
    reads.sort_by_key(|route| route.path);
    reads
}

impl Operation {
    pub(crate) fn new(method: &'static str, parameters: Vec<(&'static str, String)>, body: Value) -> Self {
        assert!(METHODS.contains_key(method), "the contract has no {method}");
        Self {
            method,
            parameters,
            body,
        }
    }

    /// A read of this route, of as much at once as there may be.
    pub(crate) fn read(route: &'static Route, parameters: Vec<(&'static str, String)>) -> Self {
        let mut read = Self::new(name(route.rpc), parameters, Value::Null);
        if read.contract().query.contains(&"limit") {
            read.parameters.push(("limit", "200".to_owned()));
        }
        read
    }

    fn contract(&self) -> &'static Method {
        &METHODS[self.method]
    }

    /// Whether the method only reads.
    pub(crate) fn reads(&self) -> bool {
        self.verb() == "GET"
    }

    /// HTTP method.
    pub(crate) fn verb(&self) -> &'static str {
        self.contract().route.verb
    }

    /// gRPC path.
    pub(crate) fn rpc(&self) -> &'static str {
        self.contract().route.rpc
    }

    /// HTTP path with its query, encoded.
    pub(crate) fn path(&self) -> String {
        let mut path = self.contract().route.path.to_owned();
        let mut query = Vec::new();
        for (name, value) in &self.parameters {
            let place = format!("{{{name}}}");
            let value = percent_encoded(value);
            if path.contains(&place) {
                path = path.replace(&place, &value);
            } else if self.header_of(name).is_none() {
                query.push(format!("{name}={value}"));
            }
        }
        match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        }
    }

    /// HTTP headers.
    pub(crate) fn headers(&self) -> Vec<(&'static str, &str)> {
        let parameters = self.parameters.iter();
        let mut headers: Vec<_> = parameters
            .filter_map(|(name, value)| Some((self.header_of(name)?, value.as_str())))
            .collect();
        if self.contract().has_body {
            headers.push(("content-type", "application/json"));
        }
        headers
    }

    fn header_of(&self, field: &str) -> Option<&'static str> {
        let headers = self.contract().headers.iter();
        headers
            .clone()
            .find(|(_, filled)| *filled == field)
            .map(|(header, _)| *header)
    }

    /// HTTP body.
    pub(crate) fn text(&self) -> String {
        match &self.body {
            Value::Null => String::new(),
            body => body.to_string(),
        }
    }

    /// gRPC message.
    pub(crate) fn message(&self) -> Vec<u8> {
        (self.contract().encode)(self)
    }

    /// The HTTP status and body that a gRPC answer stands for.
    pub(crate) fn answer(&self, message: &[u8]) -> (u16, Value) {
        let method = self.contract();
        (method.answer)(method.route, message)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            parameters,
            body,
        } = self;
        write!(formatter, "{method} {parameters:?} {body}")
    }
}

/// The message of a call. A call that only JSON could say has no place in a comparison of both doors.
fn encode<Q: RestRequest>(operation: &Operation) -> Vec<u8> {
    let text = operation.text();
    let mut message = match text.as_str() {
        "" => Q::default(),
        text => json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{operation:?}: {error}")),
    };
    if Q::HAS_MASK {
        message.set_update_mask(&mut json::keys(text.as_bytes()).iter().map(String::as_str));
    }
    for (name, value) in &operation.parameters {
        let bound = message.bind(name, value);
        bound.unwrap_or_else(|error| panic!("{operation:?}: {name} {error}"));
    }
    message.encode_to_vec()
}

fn answer<R: RestResponse>(route: &Route, message: &[u8]) -> (u16, Value) {
    let response = R::decode(message).unwrap();
    match route.success_status {
        204 => (204, Value::Null),
        _ if response.created() => (201, serde_json::to_value(&response).unwrap()),
        status => (status, serde_json::to_value(&response).unwrap()),
    }
}
