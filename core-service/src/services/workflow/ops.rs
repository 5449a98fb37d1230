//! Batches of graph operations.

use std::collections::HashMap;

use contract::scope::WorkflowWrite;
use contract::v1::graph_op::Op;
use contract::v1::node_reference::Reference;
use contract::v1::{self, ErrorReason};
use contract::validation::Violation;
use engine::graph::{EdgeType, Graph};
use engine::ops::{self, AddNode, EdgeRef, GraphOp, KindRef, NodeRef, OpsContext, UpdateMode};
use serde_json::{Map, Value};

use super::deploy::modified;
use super::edit::draft;
use super::{Workflows, graph};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::functions::Known;
use crate::services::credential::credential_apps;
use crate::store::Save;

impl Workflows {
    pub(super) async fn apply_graph_ops(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::ApplyGraphOpsRequest,
    ) -> Result<v1::ApplyGraphOpsResponse> {
        let store = &self.services.store;
        let operations = request
            .ops
            .into_iter()
            .enumerate()
            .map(|(index, op)| read(index, op))
            .collect::<Result<Vec<_>>>()?;
        let workflow = store.workflow(caller.organization_id(), &request.id).await?;
        // Validation has seen that it is there.
        let expected = request.expected_updated_at.unwrap_or_default();
        if expected != workflow.updated_at {
            return Err(modified(workflow.updated_at));
        }
        let callable = self
            .services
            .callable(caller.organization_id(), &request.id)
            .await?;
        let credential_apps = credential_apps(&self.services, caller.organization_id(), &operations).await?;
        let graph = graph::parse(&workflow.draft.graph)?;
        let result = self.apply(&graph, operations, &callable, &credential_apps);
        if request.atomic == Some(true) && !result.errors.is_empty() {
            return Err(rejected(&result.errors));
        }
        let problems = engine::topology::check(&result.graph, &*self.services.registry);
        if !problems.is_empty() {
            return Err(graph::refusal(&problems));
        }
        let updated_at = match request.dry_run {
            Some(true) => workflow.updated_at,
            _ => {
                let draft = draft(&result.graph)?;
                let actor = caller.actor();
                match store
                    .save_draft(&actor, caller.organization_id(), &request.id, expected, &draft)
                    .await?
                {
                    Save::Saved { updated_at } => updated_at,
                    Save::Modified { updated_at } => return Err(modified(updated_at)),
                }
            }
        };
        let data = v1::GraphOpsResult {
            applied: result.applied.into_iter().collect(),
            errors: result.errors.iter().map(ToString::to_string).collect(),
            touched: result.touched,
            updated_at,
        };
        Ok(v1::ApplyGraphOpsResponse { data: Some(data) })
    }

    fn apply(
        &self,
        graph: &Graph,
        operations: Vec<GraphOp>,
        callable: &Known,
        credential_apps: &HashMap<String, String>,
    ) -> ops::OpsResult {
        let context = OpsContext {
            kinds: &*self.services.registry,
            functions: callable,
            credential_app: &|id| credential_apps.get(id).cloned(),
        };
        ops::apply(graph, operations, &context)
    }
}

/// The refusal of a batch that asked for all or nothing.
fn rejected(errors: &[ops::OpError]) -> Error {
    let violation = |error: &ops::OpError| Violation {
        path: format!("ops[{}]", error.index),
        message: format!("{}: {}", error.code, error.message),
    };
    Error::new(
        ErrorReason::ValidationError,
        "The batch is atomic and some of its operations failed; nothing was saved.",
    )
    .with_violations(errors.iter().map(violation).collect())
}

/// An operation as the engine takes it.
fn read(index: usize, op: v1::GraphOp) -> Result<GraphOp> {
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

    fn refuse(self, field: &str, message: &str) -> Error {
        Error::invalid(self.path(field), message)
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
        graph::read_object(object, &self.path(field))
    }

    fn value(self, field: &str, value: Option<&v1::JsonValue>) -> Result<Option<Value>> {
        graph::read_value(value, &self.path(field))
    }
}
