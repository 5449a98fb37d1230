//! The workflows that a graph's `run_workflow` nodes name: they have to be the organization's.

use engine::graph::{Graph, Node};
use engine::problem::Problem;
use serde_json::Value;

use crate::error::Result;
use crate::nodes::RunWorkflow;
use crate::store::{Store, StoreError};

/// A node for each workflow that is named and not there. What a template gives is seen when the node runs.
pub(super) async fn problems(store: &Store, organization_id: &str, graph: &Graph) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for node in &graph.nodes {
        let Some(workflow_id) = callee(node) else { continue };
        match store.workflow(organization_id, workflow_id).await {
            Ok(_) => {}
            Err(StoreError::NotFound(_)) => {
                let message = format!("there is no workflow {workflow_id} in the organization");
                problems.push(Problem::node(node.id, message).at("params.workflowId"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(problems)
}

fn callee(node: &Node) -> Option<&str> {
    let is_call = node.kind.as_deref() == Some(RunWorkflow::KIND);
    let named = node.params.get("workflowId").and_then(Value::as_str);
    named.filter(|named| is_call && !named.contains("{{"))
}
