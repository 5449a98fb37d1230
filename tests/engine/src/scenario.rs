//! A scenario as its file tells it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A run of a workflow and what must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its extension.
    #[serde(skip)]
    pub name: String,
    /// What it shows, in a sentence.
    pub shows: String,
    /// The nodes by id, from 1 without gaps.
    pub nodes: BTreeMap<i64, Node>,
    /// The edges by id.
    #[serde(default)]
    pub edges: BTreeMap<String, Edge>,
    /// How the run begins.
    #[serde(default)]
    pub start: Start,
    /// Variables of the organization.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Secret ones.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// What comes of requests (kind `http_request`), by place (`2`, `2/0`, or `2` for all iterations), attempt by attempt;
    /// the last one stands for all that follow.
    #[serde(default)]
    pub outside: BTreeMap<String, Vec<Outside>>,
    /// Whether it takes more time than a test has, or depends on how long requests take.
    #[serde(default)]
    pub simulated: bool,
    /// What somebody does, in this order.
    #[serde(default)]
    pub then: Vec<Action>,
    /// What must come of it; see [`crate::differences`].
    pub expect: Value,
}

/// A node.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "NodeForm")]
pub struct Node {
    /// Its native kind.
    pub kind: String,
    /// What the kind is told.
    pub params: Map<String, Value>,
    /// What every kind understands.
    pub config: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NodeForm {
    Kind(String),
    Full(FullNode),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullNode {
    kind: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
}

impl From<NodeForm> for Node {
    fn from(form: NodeForm) -> Self {
        let (kind, params, config) = match form {
            NodeForm::Kind(kind) => (kind, Map::new(), Map::new()),
            NodeForm::Full(node) => (node.kind, node.params, node.config),
        };
        Self { kind, params, config }
    }
}

/// An edge, beside what its id says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Option<EdgeForm>")]
pub struct Edge {
    /// When it is taken.
    pub filter: Option<Value>,
    /// Lower comes first.
    pub order: i64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EdgeForm {
    filter: Option<Value>,
    order: i64,
}

impl From<Option<EdgeForm>> for Edge {
    fn from(form: Option<EdgeForm>) -> Self {
        let EdgeForm { filter, order } = form.unwrap_or_default();
        Self { filter, order }
    }
}

/// How a run begins.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Start {
    /// Where a scoped run begins.
    pub node: Option<i64>,
    /// Outputs of nodes that do not run, and of the trigger that it starts at.
    pub outputs: BTreeMap<i64, Value>,
    /// Milliseconds the run may take.
    pub timeout_ms: Option<u64>,
}

/// What comes of one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outside {
    /// The body of the answer.
    pub output: Option<Value>,
    /// Its failure; for the product, which sees a status of 500, `HTTP_ERROR`.
    pub error: Option<OutsideError>,
    /// After so many milliseconds of simulated time.
    #[serde(default = "one")]
    pub after_ms: u64,
}

/// Why an execution failed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutsideError {
    /// Its code.
    pub code: String,
    /// A sentence.
    pub message: String,
    /// How long the other side asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

const fn one() -> u64 {
    1
}

/// Something that somebody does.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Cancels the run once it waits.
    Cancel,
    /// Sets variables.
    Set(BTreeMap<String, String>),
    /// Lets a failed node of a run that has ended run again.
    Retry(i64),
    /// Begins the next attempt of a run that has ended.
    Rerun,
}

impl Scenario {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document: Value =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut scenario: Self =
            serde_json::from_value(document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().and_then(|name| name.to_str());
        scenario.name = name.unwrap_or_default().to_owned();
        scenario
    }

    /// Whether the whole product can let it happen within a test.
    #[must_use]
    pub fn is_for_the_product(&self) -> bool {
        !self.simulated
    }

    /// The operations that draw it; requests go to this URL.
    #[must_use]
    pub fn operations(&self, outside_url: &str) -> Value {
        let nodes = self.nodes.iter().map(|(id, node)| {
            let mut params = node.params.clone();
            if node.kind == "http_request" {
                params.insert("url".to_owned(), outside_url.into());
            }
            json!({
                "op": "add_node", "tempId": format!("n{id}"), "kind": node.kind, "params": params,
                "config": node.config,
            })
        });
        let edges = self.edges.iter().map(|(id, edge)| {
            let (from, to, edge_type) = ends(id);
            let mut operation = json!({
                "op": "connect", "from": from, "to": to, "type": edge_type, "order": edge.order,
            });
            if let Some(filter) = &edge.filter {
                operation["filter"] = filter.clone();
            }
            operation
        });
        nodes.chain(edges).collect()
    }

    /// The result of an attempt (from 1) at a place outside the engine.
    #[must_use]
    pub fn outside(&self, node: i64, iteration: &str, attempt: u32) -> &Outside {
        let of_place = self.outside.get(&format!("{node}/{iteration}"));
        let results = of_place.or_else(|| self.outside.get(&node.to_string()));
        let results = results.unwrap_or_else(|| panic!("{}: nothing is outside of node {node}", self.name));
        let at = usize::try_from(attempt).unwrap_or(usize::MAX).min(results.len()) - 1;
        &results[at]
    }
}

/// The ends and the type of the edge with this id.
#[must_use]
pub fn ends(id: &str) -> (i64, i64, &str) {
    let mut parts = id.splitn(3, '-');
    let mut end = || parts.next().and_then(|end| end.parse().ok());
    let (Some(from), Some(to)) = (end(), end()) else {
        panic!("{id} is no edge: write from-to, from-to-error or from-to-fallback")
    };
    (from, to, parts.next().unwrap_or("normal"))
}
