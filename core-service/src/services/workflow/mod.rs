//! Workflows: drafts, their edits, and the versions that are deployed.

mod deploy;
mod edit;
mod list;
mod ops;
mod references;
mod resolve;
mod tags;
mod test_module;

use contract::scope::{WorkflowRead, WorkflowWrite};
use contract::v1::{self, ErrorReason};
use engine::graph::Graph;

use super::{Services, graph, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::store::{Delete, Deployment, Version, Workflow};

pub(super) struct Workflows {
    services: Services,
}

contract::workflow_service_methods!(service, Workflows);

impl Workflows {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn get_workflow(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::GetWorkflowRequest,
    ) -> Result<v1::GetWorkflowResponse> {
        let store = &self.services.store;
        let workflow = store.workflow(caller.organization_id(), &request.id).await?;
        let graph = match request.view() {
            v1::WorkflowView::Deployed => {
                let version = store.last_version(caller.organization_id(), &request.id).await?;
                let version = version.ok_or_else(|| {
                    Error::new(
                        ErrorReason::WorkflowNotDeployed,
                        "The workflow was never deployed.",
                    )
                })?;
                self.version_graph(caller.organization_id(), &version).await?
            }
            v1::WorkflowView::Draft | v1::WorkflowView::Unspecified => graph::parse(&workflow.draft.graph)?,
        };
        Ok(v1::GetWorkflowResponse {
            data: Some(full_workflow(workflow, &graph)?),
        })
    }

    async fn delete_workflow(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::DeleteWorkflowRequest,
    ) -> Result<v1::DeleteWorkflowResponse> {
        let store = &self.services.store;
        match store
            .delete_workflow(&caller.actor(), caller.organization_id(), &request.id)
            .await?
        {
            Delete::Deleted => Ok(v1::DeleteWorkflowResponse {
                data: Some(v1::Acknowledgement { ok: true }),
            }),
            Delete::InUse => Err(Error::new(
                ErrorReason::WorkflowInUse,
                "The workflow is active or deployed; deactivate and undeploy it first.",
            )),
        }
    }

    async fn validate_workflow(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ValidateWorkflowRequest,
    ) -> Result<v1::ValidateWorkflowResponse> {
        let workflow = self
            .services
            .store
            .workflow(caller.organization_id(), &request.id)
            .await?;
        let graph = graph::parse(&workflow.draft.graph)?;
        let callable = self
            .services
            .callable(caller.organization_id(), &request.id)
            .await?;
        let kinds = self.services.kinds(caller.organization_id()).await?;
        let mut issues = match engine::plan::Plan::compile(&graph, &kinds, &callable) {
            Ok(plan) => plan
                .start_nodes(&engine::start::StartFrom::Manual)
                .err()
                .map(|error| error.to_string())
                .into_iter()
                .collect(),
            Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        };
        let broken = self.broken_references(caller.organization_id(), &graph).await?;
        issues.extend(broken.iter().map(ToString::to_string));
        let result = v1::ValidateResult {
            valid: issues.is_empty(),
            issues,
        };
        Ok(v1::ValidateWorkflowResponse { data: Some(result) })
    }

    /// The graph that a version froze.
    async fn version_graph(&self, organization_id: &str, version: &Version) -> Result<Graph> {
        graph::parse_frozen(
            &self
                .services
                .store
                .graph(organization_id, &version.content_hash)
                .await?,
        )
    }
}

fn full_workflow(workflow: Workflow, graph: &Graph) -> Result<v1::Workflow> {
    let recurrence = workflow
        .recurrence
        .as_deref()
        .map(serde_json::from_slice)
        .transpose()
        .map_err(Error::internal)?;
    Ok(v1::Workflow {
        id: workflow.id,
        name: workflow.name,
        active: workflow.active,
        nodes: graph::nodes(graph)?,
        edges: graph::edges(graph)?,
        description: workflow.description,
        folder_id: workflow.folder_id,
        team_id: workflow.team_id,
        schedule: Some(v1::WorkflowSchedule {
            recurrence,
            execution_timeout_ms: workflow.execution_timeout_ms,
        }),
        created_at: workflow.created_at,
        updated_at: workflow.updated_at,
        deployed: workflow.deployment.as_ref().map(deployed),
    })
}

fn deployed(deployment: &Deployment) -> v1::WorkflowDeployed {
    v1::WorkflowDeployed {
        deployed_at: deployment.deployed_at,
        version_no: version_no(deployment.version_no),
        content_hash: deployment.content_hash.clone(),
    }
}

/// A version's number in the contract's width; a workflow with two thousand million versions does not exist.
fn version_no(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
