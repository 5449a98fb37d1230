//! Deploying a draft as a version, and taking it out of service.

use contract::scope::WorkflowWrite;
use contract::v1::{self, ErrorReason};
use engine::graph::{Graph, Node};
use engine::plan::Plan;
use sha2::{Digest as _, Sha256};

use super::{Workflows, graph, version_no};
use crate::auth::Authorized;
use crate::connectors::Apps;
use crate::error::{Error, Result};
use crate::services::callable::frozen;
use crate::services::webhook;
use crate::store::{Deploy, ErrorTrigger, NewDeployment, NewPoll};

impl Workflows {
    pub(super) async fn deploy_workflow(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::DeployWorkflowRequest,
    ) -> Result<v1::DeployWorkflowResponse> {
        let store = &self.services.store;
        loop {
            let workflow = store.workflow(caller.organization_id(), &request.id).await?;
            if request
                .expected_updated_at
                .is_some_and(|expected| expected != workflow.updated_at)
            {
                return Err(modified(workflow.updated_at));
            }
            let draft = graph::parse(&workflow.draft.graph)?;
            let callable = self
                .services
                .callable(caller.organization_id(), &request.id)
                .await?;
            let kinds = self.services.kinds(caller.organization_id()).await?;
            Plan::compile(&draft, &kinds, &callable).map_err(|problems| graph::refusal(&problems))?;
            let broken = self.broken_references(caller.organization_id(), &draft).await?;
            if !broken.is_empty() {
                return Err(graph::refusal(&broken));
            }
            let (frozen, error_triggers) = (frozen(&draft, &callable, &kinds), error_triggers(&draft)?);
            let polls = polls(&draft, kinds.apps())?;
            let registrations =
                self.services
                    .registrations
                    .of_graph(caller.organization_id(), &draft, kinds.apps());
            let registrations = registrations.await?;
            let new = NewDeployment {
                expected_updated_at: workflow.updated_at,
                graph: &frozen,
                error_triggers: &error_triggers,
                polls: &polls,
                registrations: &registrations,
            };
            match store
                .deploy_workflow(&caller.actor(), caller.organization_id(), &request.id, &new)
                .await?
            {
                Deploy::Deployed(deployment) => {
                    self.sync_webhooks(caller.organization_id(), &request.id, &draft)
                        .await?;
                    self.services.targets.forget();
                    let data = v1::DeployResult {
                        workflow_id: workflow.id,
                        content_hash: deployment.content_hash,
                        version_no: version_no(deployment.version_no),
                        deployed_at: deployment.deployed_at,
                    };
                    return Ok(v1::DeployWorkflowResponse { data: Some(data) });
                }
                Deploy::Modified { updated_at } if request.expected_updated_at.is_some() => {
                    return Err(modified(updated_at));
                }
                // Somebody wrote between our read and our write: deploy what is there now.
                Deploy::Modified { .. } => {}
            }
        }
    }

    pub(super) async fn undeploy_workflow(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::UndeployWorkflowRequest,
    ) -> Result<v1::UndeployWorkflowResponse> {
        let store = &self.services.store;
        store
            .undeploy_workflow(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        self.services.targets.forget();
        Ok(v1::UndeployWorkflowResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }

    /// Tells webhooks the names and methods of their nodes.
    pub(super) async fn sync_webhooks(
        &self,
        organization_id: &str,
        workflow_id: &str,
        graph: &Graph,
    ) -> Result<()> {
        let triggers = graph
            .nodes
            .iter()
            .filter(|node| node.kind.as_deref() == Some("webhook_trigger"));
        let described: Vec<(i64, &str, String)> = triggers
            .map(|node| (node.id, node.name.as_str(), webhook::method(node)))
            .collect();
        let nodes: Vec<(i64, &str, &str)> = described
            .iter()
            .map(|(id, name, method)| (*id, *name, method.as_str()))
            .collect();
        Ok(self
            .services
            .store
            .sync_webhooks(organization_id, workflow_id, &nodes)
            .await?)
    }
}

/// The graph's triggers that poll.
fn polls(graph: &Graph, apps: &Apps) -> Result<Vec<NewPoll>> {
    let module = |node: &Node| apps.find(&node.app_id)?.module(&node.module_slug);
    let polls =
        |node: &&Node| !node.config.is_disabled() && module(node).is_some_and(|module| module.poll.is_some());
    let poll = |node: &Node| {
        let asks = (&node.app_id, &node.module_slug, &node.params, &node.credential_id);
        let mut asks = serde_json::to_value(asks).map_err(Error::internal)?;
        // Another manifest may tell items apart by something else: what is known of them says nothing then.
        if let (Some(brought), Some(parts)) = (apps.brought(&node.app_id), asks.as_array_mut()) {
            parts.push(brought.digest.as_str().into());
        }
        let question = Sha256::digest(engine::canonical::to_string(&asks)).to_vec();
        Ok(NewPoll {
            node_id: node.id,
            question,
        })
    };
    graph.nodes.iter().filter(polls).map(poll).collect()
}

/// What the graph's error triggers react to.
fn error_triggers(graph: &Graph) -> Result<Vec<ErrorTrigger>> {
    let is_one = |node: &&Node| node.kind.as_deref() == Some("error_trigger") && !node.config.is_disabled();
    let trigger = |node: &Node| {
        Ok(ErrorTrigger {
            node_id: node.id,
            workflow_ids: serde_json::to_vec(&node.params.get("workflowIds")).map_err(Error::internal)?,
        })
    };
    graph.nodes.iter().filter(is_one).map(trigger).collect()
}

pub(super) fn modified(updated_at: i64) -> Error {
    let message =
        format!("The workflow has changed; read it again (its updatedAt is now {updated_at}) and retry.");
    Error::new(ErrorReason::WorkflowModified, message)
}
