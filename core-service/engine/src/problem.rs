//! What is wrong with a graph, said so that the person who drew it can fix it.

use std::fmt;

/// One thing wrong with a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Ids of the nodes concerned.
    pub nodes: Vec<i64>,
    /// Ids of the edges concerned.
    pub edges: Vec<String>,
    /// The place inside the node or edge, such as `params.fields.total`; empty when it is the whole.
    pub path: String,
    /// One sentence.
    pub message: String,
}

impl Problem {
    /// A problem of the graph as a whole.
    pub fn graph(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// A problem of one node.
    pub fn node(node: i64, message: impl Into<String>) -> Self {
        Self {
            nodes: vec![node],
            message: message.into(),
            ..Self::default()
        }
    }

    /// A problem of one edge.
    pub fn edge(edge: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            edges: vec![edge.into()],
            message: message.into(),
            ..Self::default()
        }
    }

    /// Names the nodes concerned.
    #[must_use]
    pub fn with_nodes(mut self, nodes: impl IntoIterator<Item = i64>) -> Self {
        self.nodes.extend(nodes);
        self
    }

    /// Names the edges concerned.
    #[must_use]
    pub fn with_edges(mut self, edges: impl IntoIterator<Item = String>) -> Self {
        self.edges.extend(edges);
        self
    }

    /// Names the place inside the node or edge.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The path in the graph, such as `nodes[3].params.items` or `edges[1-2].filter`: ids, not positions.
    pub fn location(&self) -> String {
        let subject = match (self.nodes.first(), self.edges.first()) {
            (Some(node), _) => format!("nodes[{node}]"),
            (None, Some(edge)) => format!("edges[{edge}]"),
            (None, None) => String::from("graph"),
        };
        if self.path.is_empty() {
            subject
        } else {
            format!("{subject}.{}", self.path)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location(), self.message)
    }
}
