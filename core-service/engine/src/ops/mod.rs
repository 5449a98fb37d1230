//! Graph operations: a batch of edits applied to a graph.
//!
//! An operation that the graph cannot follow is an entry in [`OpsResult::errors`] and the rest still applies. Whether
//! the result is saved is the caller's: a dry run or an atomic batch with errors is not, nor is a result that
//! [`crate::topology::check`] refuses.

mod apply;
mod edges;
mod merge;
mod nodes;
#[cfg(test)]
mod tests;

pub use apply::apply;
pub use merge::merge_patch;

use std::fmt;

use serde_json::{Map, Value};

use crate::expression::CustomFunctions;
use crate::graph::{EdgeType, Graph};
use crate::kind::Kinds;

/// Most operations of a batch.
pub const MAX_OPS: usize = 200;

/// One edit of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphOp {
    /// Adds a node.
    AddNode(Box<AddNode>),
    /// Changes a node's parameters.
    UpdateParams {
        /// Which node.
        node: NodeRef,
        /// The new parameters or what changes in them.
        params: Map<String, Value>,
        /// Which of the two.
        mode: UpdateMode,
    },
    /// Changes a node's config, position or connection.
    UpdateConfig {
        /// Which node.
        node: NodeRef,
        /// The new config or what changes in it; also takes `x`, `y` and `connectionId`.
        config: Map<String, Value>,
        /// Which of the two.
        mode: UpdateMode,
    },
    /// Adds an edge.
    Connect {
        /// Its source.
        from: NodeRef,
        /// Its target.
        to: NodeRef,
        /// When it is taken.
        edge_type: EdgeType,
        /// Its place among the edges of its source; absent means after them.
        order: Option<i64>,
        /// The condition for taking it.
        filter: Option<Value>,
    },
    /// Removes one edge.
    Disconnect(EdgeRef),
    /// Removes a node and its edges.
    RemoveNode {
        /// Which node.
        node: NodeRef,
        /// Whether its predecessors are connected to its successors.
        heal: bool,
    },
    /// Gives a node another name.
    RenameNode {
        /// Which node.
        node: NodeRef,
        /// The name.
        name: String,
    },
    /// Gives a node a credential or takes it away.
    SetCredential {
        /// Which node.
        node: NodeRef,
        /// The credential.
        credential_id: Option<String>,
    },
    /// Gives an edge a filter or takes it away.
    SetEdgeFilter {
        /// Which edge.
        edge: EdgeRef,
        /// The filter.
        filter: Option<Value>,
    },
}

impl GraphOp {
    /// The contract's word for the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AddNode(_) => "add_node",
            Self::UpdateParams { .. } => "update_params",
            Self::UpdateConfig { .. } => "update_config",
            Self::Connect { .. } => "connect",
            Self::Disconnect(_) => "disconnect",
            Self::RemoveNode { .. } => "remove_node",
            Self::RenameNode { .. } => "rename_node",
            Self::SetCredential { .. } => "set_credential",
            Self::SetEdgeFilter { .. } => "set_edge_filter",
        }
    }
}

/// The node to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddNode {
    /// What other operations of the batch call it.
    pub temp_id: String,
    /// The native kind, or the app's module.
    pub kind: KindRef,
    /// Absent means the kind's label.
    pub name: Option<String>,
    /// Its parameters.
    pub params: Map<String, Value>,
    /// Its config.
    pub config: Map<String, Value>,
    /// Canvas position; absent means beside the node it follows.
    pub x: Option<f64>,
    /// Canvas position.
    pub y: Option<f64>,
    /// The connection type.
    pub connection_id: Option<String>,
    /// The credential.
    pub credential_id: Option<String>,
    /// The node it is connected after.
    pub after: Option<NodeRef>,
    /// Whether the nodes its kind needs beside it are added too.
    pub scaffold: bool,
}

/// What a new node is.
#[derive(Clone, Debug, PartialEq)]
pub enum KindRef {
    /// A native kind.
    Native(String),
    /// A module of an app.
    Module {
        /// The app.
        app_id: String,
        /// Its module.
        module_slug: String,
    },
}

impl Default for KindRef {
    fn default() -> Self {
        Self::Native(String::new())
    }
}

/// A node of the graph or one that the same batch adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// Its id.
    Id(i64),
    /// Its `tempId` in this batch.
    Temp(String),
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Temp(temp_id) => write!(f, "{temp_id:?}"),
        }
    }
}

/// An edge of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeRef {
    /// By its id.
    Id(String),
    /// By its ends; without a type there must be only one edge between them.
    Ends {
        /// Its source.
        from: NodeRef,
        /// Its target.
        to: NodeRef,
        /// Its type.
        edge_type: Option<EdgeType>,
    },
}

/// How an object is updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// As RFC 7396 says: null removes, objects merge, anything else replaces.
    #[default]
    Merge,
    /// The new object instead of the old.
    Replace,
}

/// What operations are checked against.
#[derive(Clone, Copy)]
pub struct OpsContext<'a> {
    /// The kinds nodes may have.
    pub kinds: &'a dyn Kinds,
    /// The custom functions templates may call.
    pub functions: &'a dyn CustomFunctions,
    /// The app a credential is for; nothing when there is no such credential.
    pub credential_app: &'a dyn Fn(&str) -> Option<String>,
}

/// What a batch did.
#[derive(Clone, Debug, PartialEq)]
pub struct OpsResult {
    /// The graph after it.
    pub graph: Graph,
    /// The id of each node that was added, by its `tempId`, in the batch's order.
    pub applied: Vec<(String, i64)>,
    /// The operations that were not applied.
    pub errors: Vec<OpError>,
    /// Ids of the nodes that were added or whose parameters or config changed, ascending.
    pub touched: Vec<i64>,
}

/// An operation that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ops[{index}] {op}: {code}: {message}")]
pub struct OpError {
    /// Its place in the batch.
    pub index: usize,
    /// Its name.
    pub op: &'static str,
    /// Such as `NODE_NOT_FOUND`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}
