//! The stored form of a workflow: its nodes and edges as the JSON of drafts and versions.
//!
//! What a graph means is [`crate::plan`]'s, what makes one acceptable is [`crate::topology`]'s.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical;
use crate::config::NodeConfig;

/// `appId` of a native kind.
pub const NATIVE_APP: &str = "native";
/// Most nodes of a workflow.
pub const MAX_NODES: usize = 500;
/// Most edges of a workflow.
pub const MAX_EDGES: usize = 2_000;
/// Longest name of a node after trimming, in characters; the shortest has one.
pub const MAX_NAME: usize = 200;

/// A workflow's nodes and edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Graph {
    /// In the order they were added.
    pub nodes: Vec<Node>,
    /// In the order they were connected.
    pub edges: Vec<Edge>,
    /// The id of the next node: ids are never reused, so it outlives removed nodes. Not part of the content.
    #[serde(default = "first_node_id")]
    pub next_node_id: i64,
}

fn first_node_id() -> i64 {
    1
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            next_node_id: first_node_id(),
        }
    }
}

/// One step of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// From 1, never reused inside a workflow.
    pub id: i64,
    /// [`NATIVE_APP`], or the app whose module this is.
    pub app_id: String,
    /// The native kind, or the app's module.
    pub module_slug: String,
    /// The native kind; absent for a module of an app.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// For people.
    pub name: String,
    /// Canvas position.
    pub x: f64,
    /// Canvas position.
    pub y: f64,
    /// What the kind is told; strings may hold templates.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What every kind understands.
    #[serde(default)]
    pub config: NodeConfig,
    /// The connection type the node uses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connection_id: Option<String>,
    /// The credential the node uses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub credential_id: Option<String>,
}

/// A connection between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edge {
    /// Derived from the ends and the type, which are unique together: see [`Edge::id_of`].
    pub id: String,
    /// The node it leaves.
    pub from: i64,
    /// The node it enters.
    pub to: i64,
    /// When it is taken.
    #[serde(rename = "type", default)]
    pub edge_type: EdgeType,
    /// Lower first among the edges of one node, ties by id.
    #[serde(default)]
    pub order: i64,
    /// The condition for taking it: see [`crate::filter`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filter: Option<Value>,
}

impl Edge {
    /// The id of the edge between two nodes: `1-2`, `1-2-error`, `1-2-fallback`.
    pub fn id_of(from: i64, to: i64, edge_type: EdgeType) -> String {
        match edge_type {
            EdgeType::Normal => format!("{from}-{to}"),
            other => format!("{from}-{to}-{}", other.as_str()),
        }
    }
}

/// When an edge is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeType {
    /// The source completed and the filter, if any, holds.
    #[default]
    Normal,
    /// The source failed after its retries and the filter, if any, holds.
    Error,
    /// The source completed and none of its normal edges was taken.
    Fallback,
}

impl EdgeType {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Error => "error",
            Self::Fallback => "fallback",
        }
    }
}

impl Graph {
    /// The node with this id.
    pub fn node(&self, id: i64) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The node with this id, to change it.
    pub fn node_mut(&mut self, id: i64) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id)
    }

    /// The edge with this id.
    pub fn edge(&self, id: &str) -> Option<&Edge> {
        self.edges.iter().find(|edge| edge.id == id)
    }

    /// The graph as canonical JSON: keys sorted, nodes and edges by id, no white space. Two graphs with the same
    /// content have the same text, whatever the order they were built in.
    pub fn canonical_json(&self, needs: &Needs) -> String {
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.id);
        let mut edges: Vec<&Edge> = self.edges.iter().collect();
        edges.sort_by(|a, b| a.id.cmp(&b.id));
        let mut functions: Vec<&FrozenFunction> = needs.functions.iter().collect();
        functions.sort();
        let mut apps: Vec<&FrozenApp> = needs.apps.iter().collect();
        apps.sort();
        let mut content = Map::new();
        content.insert("nodes".into(), serde_json::json!(nodes));
        content.insert("edges".into(), serde_json::json!(edges));
        if !functions.is_empty() {
            content.insert("functions".into(), serde_json::json!(functions));
        }
        if !apps.is_empty() {
            content.insert("apps".into(), serde_json::json!(apps));
        }
        canonical::to_string(&Value::Object(content))
    }

    /// SHA-256 of [`Graph::canonical_json`] in lower-case hexadecimal.
    pub fn content_hash(&self, needs: &Needs) -> String {
        canonical::sha256_hex(self.canonical_json(needs).as_bytes())
    }
}

/// What a graph needs besides itself. It is frozen with the graph, so that no change of it reaches what runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The custom functions that its templates and nodes call.
    pub functions: Vec<FrozenFunction>,
    /// The apps of its nodes that organizations brought themselves.
    pub apps: Vec<FrozenApp>,
}

/// A graph as it is frozen: [`Graph::canonical_json`], read back.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FrozenGraph {
    /// In order of id.
    pub nodes: Vec<Node>,
    /// In order of id.
    pub edges: Vec<Edge>,
    /// The custom functions that its templates and nodes call.
    #[serde(default)]
    pub functions: Vec<FrozenFunction>,
    /// The apps of its nodes that organizations brought themselves.
    #[serde(default)]
    pub apps: Vec<FrozenApp>,
}

impl FrozenGraph {
    /// The graph, and what it needs.
    pub fn into_parts(self) -> (Graph, Needs) {
        let graph = Graph {
            nodes: self.nodes,
            edges: self.edges,
            ..Graph::default()
        };
        let needs = Needs {
            functions: self.functions,
            apps: self.apps,
        };
        (graph, needs)
    }
}

/// Which manifest of an app a version froze. Manifests never change, so their digest stands for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrozenApp {
    /// The app.
    pub id: String,
    /// SHA-256 of its manifest in lower-case hexadecimal.
    pub digest: String,
}

/// A custom function's code as a version froze it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrozenFunction {
    /// `fn_`
    pub id: String,
    /// The camelCase name expressions call it by.
    pub name: String,
    /// In order.
    pub parameters: Vec<FrozenParameter>,
    /// JavaScript.
    pub code: String,
}

/// A parameter of a custom function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrozenParameter {
    /// Its name in the code.
    pub name: String,
    /// Whether a call must give it.
    pub required: bool,
}

impl FrozenFunction {
    /// The least and the greatest number of arguments: a parameter may be left out when it and all after it are
    /// optional.
    pub fn argument_count(&self) -> (usize, usize) {
        let required = self.parameters.iter().rposition(|parameter| parameter.required);
        (required.map_or(0, |last| last + 1), self.parameters.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn parse(text: &str) -> Graph {
        serde_json::from_str(text).unwrap()
    }

    const TWO: &str = r#"{"nodes": [
        {"id": 1, "appId": "native", "moduleSlug": "manual_trigger", "kind": "manual_trigger", "name": "Start", "x": 0, "y": 0},
        {"id": 2, "appId": "native", "moduleSlug": "set", "kind": "set", "name": "Set", "x": 200.5, "y": 0,
         "params": {"fields": {"a": 1, "b": "{{1.x}}"}}}],
        "edges": [{"id": "1-2", "from": 1, "to": 2}]}"#;

    #[test]
    fn content_hash_ignores_order_and_history() {
        let graph = parse(TWO);
        let mut other = graph.clone();
        other.nodes.reverse();
        other.next_node_id = 99;
        let fields = serde_json::json!({"b": "{{1.x}}", "a": 1});
        other.node_mut(2).unwrap().params.insert("fields".into(), fields);
        assert_eq!(
            graph.content_hash(&Needs::default()),
            other.content_hash(&Needs::default())
        );
        assert_eq!(graph.content_hash(&Needs::default()).len(), 64);
    }

    #[test]
    fn content_hash_sees_every_part() {
        let graph = parse(TWO);
        let changes: [fn(&mut Graph); 5] = [
            |g| g.nodes[0].name.push('!'),
            |g| g.nodes[1].x = 7.0,
            |g| g.nodes[1].config.timeout_ms = Some(1),
            |g| g.edges[0].order = 1,
            |g| g.edges[0].filter = Some(Value::Bool(true)),
        ];
        for change in changes {
            let mut changed = graph.clone();
            change(&mut changed);
            assert_ne!(
                graph.content_hash(&Needs::default()),
                changed.content_hash(&Needs::default())
            );
        }
        let function = FrozenFunction {
            id: "fn_1".into(),
            name: "double".into(),
            parameters: Vec::new(),
            code: "return 2".into(),
        };
        let calls = Needs {
            functions: vec![function],
            ..Needs::default()
        };
        assert_ne!(graph.content_hash(&Needs::default()), graph.content_hash(&calls));
    }

    #[test]
    fn content_hash_sees_which_manifest_is_frozen() {
        let graph = parse(TWO);
        let of = |digest: &str| Needs {
            apps: vec![FrozenApp {
                id: "shop".into(),
                digest: digest.into(),
            }],
            ..Needs::default()
        };
        assert_ne!(graph.content_hash(&of("a")), graph.content_hash(&of("b")));
        let frozen: FrozenGraph = serde_json::from_str(&graph.canonical_json(&of("a"))).unwrap();
        assert_eq!(frozen.into_parts().1, of("a"));
    }

    #[test]
    fn stored_json_round_trips() {
        let mut graph = parse(TWO);
        // A number that another one is read for where reading need not be exact.
        graph.nodes[0].x = 5.329_070_518_200_751e-15;
        let text = serde_json::to_string(&graph).unwrap();
        assert_eq!(parse(&text), graph);
        assert!(text.contains(r#""moduleSlug":"set""#) && text.contains(r#""type":"normal""#));
    }
}
