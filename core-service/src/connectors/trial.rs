//! The tests inside manifests: what a module is expected to ask, and to make of what the service answers.
//!
//! Absent on purpose: running them (`nodes::rehearsal`), which shows what would be sent to the byte.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One test. It is of a module, of an rpc, or of a connection's `verify`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trial {
    /// What it shows.
    pub name: String,
    /// The module that works.
    #[serde(default)]
    pub module: Option<String>,
    /// The rpc that is asked.
    #[serde(default)]
    pub rpc: Option<String>,
    /// The connection that is verified.
    #[serde(default)]
    pub verify: Option<String>,
    /// The connection that is used, with its values. A connection that is verified has its values here, too.
    #[serde(default)]
    pub connection: Option<TrialConnection>,
    /// The parameters, as if their templates were evaluated.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// For a trigger with a webhook: what that is known by, `url`, `secret` and what was kept. The requests are those of
    /// `attach`, and `output` is what is kept, unless one of the next two says otherwise.
    #[serde(default)]
    pub webhook: Option<Map<String, Value>>,
    /// The requests are those of `detach`.
    #[serde(default)]
    pub detach: bool,
    /// What the service delivers; `output` is the input of the run that it starts, or the answer.
    #[serde(default)]
    pub delivery: Option<TrialDelivery>,
    /// The requests that must be made, in this order, and what the service answers.
    #[serde(default)]
    pub exchanges: Vec<TrialExchange>,
    /// What must come of it: an action's output.
    #[serde(default)]
    pub output: Option<Value>,
    /// What must come of it: the list of a search, or the items that a trigger that polls starts runs for.
    #[serde(default)]
    pub items: Option<Vec<Value>>,
    /// What must come of it: the choices of an rpc, `{value, label}`.
    #[serde(default)]
    pub options: Option<Vec<Value>>,
    /// Whether the service has more choices than it was asked for.
    #[serde(default)]
    pub truncated: bool,
    /// What must come of it: a failure.
    #[serde(default)]
    pub error: Option<TrialError>,
}

/// A connection in a test.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialConnection {
    /// Its id.
    pub id: String,
    /// Its values, made up; for one that fetches a token, with `accessToken`.
    #[serde(default)]
    pub values: Map<String, Value>,
    /// The headers by which it proves itself in each request of the test. All that it adds must be named, here or in the
    /// request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// A request and what is answered.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialExchange {
    /// The request that must be made.
    pub request: TrialRequest,
    /// What is answered.
    pub response: TrialResponse,
}

/// A request as the service sees it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialRequest {
    /// The method.
    pub method: String,
    /// The path after the host, encoded as it is sent, without the query.
    pub path: String,
    /// The host; by default that of the first request of a test may be any that the app permits.
    #[serde(default)]
    pub host: Option<String>,
    /// The whole query, decoded: a text for each name, or a list of texts.
    #[serde(default)]
    pub query: BTreeMap<String, Value>,
    /// Headers that must be there; others may be, but none by which the connection proves itself. The content type of a body
    /// is `application/json` unless it stands here.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: of JSON and forms the value, else the text. Absent for none.
    #[serde(default)]
    pub body: Option<Value>,
}

/// What a service answers.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialResponse {
    /// The status; 200 by default.
    #[serde(default = "success")]
    pub status: u16,
    /// The headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: a text is sent as it is, all else as JSON. Absent for none.
    #[serde(default)]
    pub body: Option<Value>,
}

/// What a service delivers.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialDelivery {
    /// The method; POST by default.
    #[serde(default = "post")]
    pub method: String,
    /// Parameters of the query by name.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Headers by lower-case name.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// The body, to the byte. It is read as a form where the content type says so, else as JSON.
    #[serde(default)]
    pub text: String,
    /// When it comes, in seconds since 1970.
    #[serde(default)]
    pub at: i64,
    /// What must come of it.
    #[serde(default)]
    pub becomes: Becomes,
    /// The key that it must have, when it starts a run.
    #[serde(default)]
    pub key: Option<Value>,
}

/// What comes of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Becomes {
    /// It starts a run.
    #[default]
    Run,
    /// It is proven and starts none.
    Nothing,
    /// It is no proven one.
    Refused,
    /// It is a challenge.
    Answer,
}

/// A failure that must come.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrialError {
    /// Its code.
    pub code: String,
    /// A part of its message.
    #[serde(default)]
    pub message: Option<String>,
}

fn post() -> String {
    "POST".to_owned()
}

fn success() -> u16 {
    200
}
