//! Nodes and edges as files draw them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A workflow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drawing {
    /// The nodes by id, from 1 without gaps.
    pub nodes: BTreeMap<i64, Node>,
    /// The edges by id.
    #[serde(default)]
    pub edges: BTreeMap<String, Edge>,
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

impl Drawing {
    /// The operations that draw it. Parameters that are one of these names become what that stands for; requests go to
    /// this URL.
    #[must_use]
    pub fn operations(&self, names: &BTreeMap<String, String>, outside_url: &str) -> Value {
        let nodes = self.nodes.iter().map(|(id, node)| {
            let mut params = Value::Object(node.params.clone());
            replace(&mut params, names);
            if node.kind == "http_request" {
                params["url"] = outside_url.into();
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
}

fn replace(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(meant) = names.get(text.as_str()) {
                text.clone_from(meant);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, names)),
        _ => {}
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
