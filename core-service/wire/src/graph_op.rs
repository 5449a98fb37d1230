//! Graph operations: from the contract's messages to the engine's types.

use contract::v1;
use contract::v1::graph_op::Op;
use contract::v1::node_reference::Reference;
use contract::validation::Violation;
use engine::graph::EdgeType;
use engine::ops::{AddNode, EdgeRef, GraphOp, KindRef, NodeRef, UpdateMode};
use serde_json::{Map, Value};

use crate::{Result, json, refuse};

/// A batch as the engine takes it.
///
/// # Errors
/// The first thing that is wrong, with its path in the request.
pub fn batch(ops: Vec<v1::GraphOp>) -> Result<Vec<GraphOp>> {
    let ops = ops.into_iter().enumerate();
    ops.map(|(index, op)| operation(index, op)).collect()
}

fn operation(index: usize, op: v1::GraphOp) -> Result<GraphOp> {
    let place = Place(index);
    let Some(op) = op.op else {
        return Err(place.refuse("op", "is required"));
    };
    Ok(match op {
        Op::AddNode(op) => GraphOp::AddNode(Box::new(add_node(place, op)?)),
        Op::UpdateParams(op) => GraphOp::UpdateParams {
            mode: mode(op.mode()),
            node: place.node("nodeId", op.node_id)?,
            params: place.object("params", op.params.as_ref())?,
        },
        Op::UpdateConfig(op) => GraphOp::UpdateConfig {
            mode: mode(op.mode()),
            node: place.node("nodeId", op.node_id)?,
            config: place.object("config", op.config.as_ref())?,
        },
        Op::Connect(op) => GraphOp::Connect {
            edge_type: edge_type(op.r#type()).unwrap_or_default(),
            from: place.node("from", op.from)?,
            to: place.node("to", op.to)?,
            order: op.order.map(i64::from),
            filter: place.value("filter", op.filter.as_ref())?,
        },
        Op::Disconnect(op) => {
            let edge_type = edge_type(op.r#type());
            GraphOp::Disconnect(place.edge(op.edge_id, op.from, op.to, edge_type)?)
        }
        Op::RemoveNode(op) => GraphOp::RemoveNode {
            node: place.node("nodeId", op.node_id)?,
            heal: op.heal.unwrap_or_default(),
        },
        Op::RenameNode(op) => GraphOp::RenameNode {
            node: place.node("nodeId", op.node_id)?,
            name: op.name,
        },
        Op::SetCredential(op) => GraphOp::SetCredential {
            node: place.node("nodeId", op.node_id)?,
            credential_id: op.credential_id,
        },
        Op::SetEdgeFilter(op) => {
            let edge_type = edge_type(op.r#type());
            GraphOp::SetEdgeFilter {
                filter: place.value("filter", op.filter.as_ref())?,
                edge: place.edge(op.edge_id, op.from, op.to, edge_type)?,
            }
        }
    })
}

fn add_node(place: Place, op: v1::AddNode) -> Result<AddNode> {
    let kind = match (op.kind, op.app_id, op.module_slug) {
        (Some(kind), None, None) => KindRef::Native(kind),
        (None, Some(app_id), Some(module_slug)) => KindRef::Module { app_id, module_slug },
        _ => return Err(place.refuse("kind", "give either kind, or appId and moduleSlug")),
    };
    Ok(AddNode {
        temp_id: op.temp_id,
        kind,
        name: op.name,
        params: place.object("params", op.params.as_ref())?,
        config: place.object("config", op.config.as_ref())?,
        x: op.x,
        y: op.y,
        connection_id: op.connection_id,
        credential_id: op.credential_id,
        after: op
            .after
            .map(|after| place.node("after", Some(after)))
            .transpose()?,
        scaffold: op.scaffold.unwrap_or_default(),
    })
}

fn mode(mode: v1::UpdateMode) -> UpdateMode {
    match mode {
        v1::UpdateMode::Replace => UpdateMode::Replace,
        v1::UpdateMode::Merge | v1::UpdateMode::Unspecified => UpdateMode::Merge,
    }
}

fn edge_type(edge_type: v1::EdgeType) -> Option<EdgeType> {
    match edge_type {
        v1::EdgeType::Unspecified => None,
        v1::EdgeType::Normal => Some(EdgeType::Normal),
        v1::EdgeType::Error => Some(EdgeType::Error),
        v1::EdgeType::Fallback => Some(EdgeType::Fallback),
    }
}

/// The place of an operation in its batch, for the paths of what is wrong with it.
#[derive(Clone, Copy)]
struct Place(usize);

impl Place {
    fn path(self, field: &str) -> String {
        format!("ops[{}].{field}", self.0)
    }

    fn refuse(self, field: &str, message: &str) -> Violation {
        refuse(self.path(field), message)
    }

    fn node(self, field: &str, reference: Option<v1::NodeReference>) -> Result<NodeRef> {
        match reference.and_then(|reference| reference.reference) {
            Some(Reference::Id(id)) => Ok(NodeRef::Id(id)),
            Some(Reference::TempId(temp_id)) => Ok(NodeRef::Temp(temp_id)),
            None => Err(self.refuse(field, "is required")),
        }
    }

    fn edge(
        self,
        edge_id: Option<String>,
        from: Option<v1::NodeReference>,
        to: Option<v1::NodeReference>,
        edge_type: Option<EdgeType>,
    ) -> Result<EdgeRef> {
        match (edge_id, from, to) {
            (Some(edge_id), None, None) => Ok(EdgeRef::Id(edge_id)),
            (None, Some(from), Some(to)) => Ok(EdgeRef::Ends {
                from: self.node("from", Some(from))?,
                to: self.node("to", Some(to))?,
                edge_type,
            }),
            _ => Err(self.refuse("edgeId", "give either edgeId, or from and to")),
        }
    }

    fn object(self, field: &str, object: Option<&v1::JsonObject>) -> Result<Map<String, Value>> {
        json::object(object, &self.path(field))
    }

    fn value(self, field: &str, value: Option<&v1::JsonValue>) -> Result<Option<Value>> {
        json::value(value, &self.path(field))
    }
}
