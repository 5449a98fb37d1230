//! Graphs between the contract's messages and the engine's types.

use contract::v1;
use engine::graph::{Edge, EdgeType, FrozenGraph, Graph, Node};
use engine::problem::Problem;

use contract::v1::ErrorReason;
use contract::validation::Violation;

use crate::error::{Error, Result};

/// Reads a stored graph.
///
/// # Errors
/// When the database holds something else.
pub(super) fn parse(bytes: &[u8]) -> Result<Graph> {
    serde_json::from_slice(bytes).map_err(Error::internal)
}

/// Reads a graph that nothing changes any more.
///
/// # Errors
/// When the database holds something else.
pub(super) fn parse_frozen(bytes: &[u8]) -> Result<Graph> {
    let frozen: FrozenGraph = serde_json::from_slice(bytes).map_err(Error::internal)?;
    Ok(frozen.into_parts().0)
}

/// The nodes as the contract shows them.
pub(super) fn nodes(graph: &Graph) -> Result<Vec<v1::Node>> {
    graph.nodes.iter().map(node).collect()
}

/// The edges as the contract shows them.
pub(super) fn edges(graph: &Graph) -> Result<Vec<v1::Edge>> {
    graph.edges.iter().map(edge).collect()
}

fn node(node: &Node) -> Result<v1::Node> {
    Ok(v1::Node {
        id: node.id,
        app_id: node.app_id.clone(),
        name: node.name.clone(),
        module_slug: node.module_slug.clone(),
        x: node.x,
        y: node.y,
        params: Some(object(&node.params)?),
        connection_id: node.connection_id.clone(),
        credential_id: node.credential_id.clone(),
        kind: node.kind.clone(),
        config: Some(object(&node.config)?),
    })
}

fn edge(edge: &Edge) -> Result<v1::Edge> {
    let filter = edge.filter.as_ref().map(text).transpose()?;
    Ok(v1::Edge {
        id: edge.id.clone(),
        from: edge.from,
        to: edge.to,
        r#type: match edge.edge_type {
            EdgeType::Normal => v1::EdgeType::Normal,
            EdgeType::Error => v1::EdgeType::Error,
            EdgeType::Fallback => v1::EdgeType::Fallback,
        }
        .into(),
        order: i32::try_from(edge.order).unwrap_or(i32::MAX),
        filter: filter.map(|json| v1::JsonValue { json }),
    })
}

/// A value that is a JSON object, as the contract carries it.
pub(super) fn object(value: &impl serde::Serialize) -> Result<v1::JsonObject> {
    Ok(v1::JsonObject { json: text(value)? })
}

fn text(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

/// The refusal of a graph, naming every problem's nodes and edges.
pub(super) fn refusal(problems: &[Problem]) -> Error {
    let violations: Vec<Violation> = problems
        .iter()
        .map(|problem| Violation {
            path: problem.location(),
            message: problem.message.clone(),
        })
        .collect();
    let summary = match problems {
        [one] => format!("The graph cannot be used: {one}."),
        several => format!("The graph cannot be used: it has {} problems.", several.len()),
    };
    Error::new(ErrorReason::TopologyInvalid, summary).with_violations(violations)
}
