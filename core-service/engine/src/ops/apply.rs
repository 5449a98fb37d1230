//! A batch, operation by operation.

use crate::graph::{EdgeType, Graph, MAX_NAME, Node};
use crate::ops::{GraphOp, NodeRef, OpError, OpsContext, OpsResult};

/// Why an operation is not applied: a code and a sentence.
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A batch at work.
pub(super) struct Editor<'a> {
    pub(super) graph: Graph,
    pub(super) context: &'a OpsContext<'a>,
    pub(super) applied: Vec<(String, i64)>,
    pub(super) touched: Vec<i64>,
}

/// Applies a batch to a graph.
pub fn apply(graph: &Graph, ops: Vec<GraphOp>, context: &OpsContext<'_>) -> OpsResult {
    let mut editor = Editor {
        graph: graph.clone(),
        context,
        applied: Vec::new(),
        touched: Vec::new(),
    };
    let mut errors = Vec::new();
    for (index, op) in ops.into_iter().enumerate() {
        let name = op.name();
        if let Err(Refusal { code, message }) = editor.apply(op) {
            errors.push(OpError {
                index,
                op: name,
                code,
                message,
            });
        }
    }
    let Editor {
        graph,
        applied,
        mut touched,
        ..
    } = editor;
    touched.sort_unstable();
    touched.dedup();
    touched.retain(|id| graph.node(*id).is_some());
    OpsResult {
        graph,
        applied,
        errors,
        touched,
    }
}

impl Editor<'_> {
    /// Applies one operation wholly or not at all.
    fn apply(&mut self, op: GraphOp) -> Result<(), Refusal> {
        match op {
            GraphOp::AddNode(add) => self.add_node(*add),
            GraphOp::UpdateParams { node, params, mode } => self.update_params(&node, params, mode),
            GraphOp::UpdateConfig { node, config, mode } => self.update_config(&node, config, mode),
            GraphOp::Connect {
                from,
                to,
                edge_type,
                order,
                filter,
            } => {
                let (from, to) = (self.node_id(&from)?, self.node_id(&to)?);
                self.connect(from, to, edge_type, order, filter)
            }
            GraphOp::Disconnect(edge) => self.disconnect(&edge),
            GraphOp::RemoveNode { node, heal } => self.remove_node(&node, heal),
            GraphOp::RenameNode { node, name } => {
                let name = checked_name(&name)?;
                self.node_mut(&node)?.name = name;
                Ok(())
            }
            GraphOp::SetCredential { node, credential_id } => self.set_credential(&node, credential_id),
            GraphOp::SetEdgeFilter { edge, filter } => self.set_edge_filter(&edge, filter),
        }
    }

    /// The id of a node that exists.
    pub(super) fn node_id(&self, reference: &NodeRef) -> Result<i64, Refusal> {
        let id = match reference {
            NodeRef::Id(id) => Some(*id),
            NodeRef::Temp(temp_id) => self
                .applied
                .iter()
                .find(|(known, _)| known == temp_id)
                .map(|(_, id)| *id),
        };
        let exists = id.filter(|id| self.graph.node(*id).is_some());
        exists.ok_or_else(|| Refusal::new("NODE_NOT_FOUND", format!("node {reference} does not exist")))
    }

    pub(super) fn node_mut(&mut self, reference: &NodeRef) -> Result<&mut Node, Refusal> {
        let id = self.node_id(reference)?;
        let missing = || Refusal::new("NODE_NOT_FOUND", format!("node {reference} does not exist"));
        self.graph.node_mut(id).ok_or_else(missing)
    }

    /// The order that puts an edge after its source's others of the same type.
    pub(super) fn next_order(&self, from: i64, edge_type: EdgeType) -> i64 {
        let siblings = self
            .graph
            .edges
            .iter()
            .filter(|edge| edge.from == from && edge.edge_type == edge_type);
        siblings
            .map(|edge| edge.order.saturating_add(1))
            .max()
            .unwrap_or(0)
    }
}

/// A name without the white space around it.
pub(super) fn checked_name(name: &str) -> Result<String, Refusal> {
    let trimmed = name.trim();
    match trimmed.chars().count() {
        1..=MAX_NAME => Ok(trimmed.to_owned()),
        _ => Err(Refusal::new(
            "INVALID_NAME",
            format!("a name has 1 to {MAX_NAME} characters"),
        )),
    }
}
