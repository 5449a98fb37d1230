//! Creating a workflow, and changing what is not its graph.

use contract::scope::WorkflowWrite;
use contract::v1;
use engine::graph::{Graph, Needs};
use engine::schedule::Recurrence;

use super::Workflows;
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::services::change::Change;
use crate::services::reference::unresolvable;
use crate::store::{Draft, NewWorkflow, WorkflowChange};
use contract::validation::Violation;

impl Workflows {
    pub(super) async fn create_workflow(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::CreateWorkflowRequest,
    ) -> Result<v1::CreateWorkflowResponse> {
        let new = NewWorkflow {
            name: &request.name,
            description: request.description.as_deref(),
            team_id: request.team_id.as_deref(),
            folder_id: request.folder_id.as_deref(),
            draft: &draft(&Graph::default())?,
        };
        let created = self
            .services
            .store
            .create_workflow(&caller.actor(), caller.organization_id(), &new)
            .await;
        let workflow = created.map_err(unresolvable)?;
        let data = v1::WorkflowCreateResult {
            id: workflow.id,
            name: workflow.name,
            team_id: workflow.team_id,
            folder_id: workflow.folder_id,
            active: workflow.active,
            created_at: workflow.created_at,
            updated_at: workflow.updated_at,
        };
        Ok(v1::CreateWorkflowResponse { data: Some(data) })
    }

    pub(super) async fn update_workflow(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::UpdateWorkflowRequest,
    ) -> Result<v1::UpdateWorkflowResponse> {
        let change = change(&request)?;
        let store = &self.services.store;
        // An unknown workflow is 404 before an unknown folder is 400.
        store.workflow(caller.organization_id(), &request.id).await?;
        let updated = updated_fields(&change);
        let written = store
            .update_workflow(&caller.actor(), caller.organization_id(), &request.id, &change)
            .await;
        let workflow = written.map_err(unresolvable)?;
        self.services.targets.forget();
        let data = v1::WorkflowPatchResult {
            id: workflow.id,
            updated,
            name: change.name.map(|_| workflow.name),
            active: change.active.map(|_| workflow.active),
            folder_id: workflow.folder_id,
            updated_at: workflow.updated_at,
        };
        Ok(v1::UpdateWorkflowResponse { data: Some(data) })
    }
}

fn change(request: &v1::UpdateWorkflowRequest) -> Result<WorkflowChange> {
    let mask = request.update_mask.as_ref();
    let fields = Change::new(
        mask,
        &[
            "name",
            "active",
            "recurrence",
            "folder_id",
            "description",
            "execution_timeout_ms",
        ],
    )?;
    let recurrence = fields.set_or_clear("recurrence", request.recurrence.as_ref());
    Ok(WorkflowChange {
        name: fields.set("name", request.name.clone())?,
        description: fields.set_or_clear("description", request.description.clone()),
        active: fields.set("active", request.active)?,
        folder_id: fields.set_or_clear("folder_id", request.folder_id.clone()),
        recurrence: recurrence
            .map(|set| set.map(checked_recurrence).transpose())
            .transpose()?,
        execution_timeout_ms: fields.set_or_clear("execution_timeout_ms", request.execution_timeout_ms),
    })
}

/// The names of what a change sets, as REST spells them.
fn updated_fields(change: &WorkflowChange) -> Vec<String> {
    let named = [
        ("name", change.name.is_some()),
        ("active", change.active.is_some()),
        ("recurrence", change.recurrence.is_some()),
        ("folderId", change.folder_id.is_some()),
        ("description", change.description.is_some()),
        ("executionTimeoutMs", change.execution_timeout_ms.is_some()),
    ];
    named
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The recurrence as it is stored: the contract's JSON, once the engine can follow it.
fn checked_recurrence(recurrence: &v1::ScheduleRecurrence) -> Result<Vec<u8>> {
    let mut stored = serde_json::to_value(recurrence).map_err(Error::internal)?;
    // An empty list in protobuf is an absent one.
    if let Some(members) = stored.as_object_mut() {
        members.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty()));
    }
    let followed = Recurrence::parse(&stored).and_then(|recurrence| recurrence.validate());
    followed.map_err(|problems| {
        let place = |path: String| match path.as_str() {
            "" => "recurrence".to_owned(),
            path => format!("recurrence.{path}"),
        };
        let violation = |(path, message)| Violation {
            path: place(path),
            message,
        };
        Error::violations(problems.into_iter().map(violation).collect())
    })?;
    serde_json::to_vec(&stored).map_err(Error::internal)
}

/// The stored form of a draft.
pub(super) fn draft(graph: &Graph) -> Result<Draft> {
    Ok(Draft {
        graph: serde_json::to_vec(graph).map_err(Error::internal)?,
        hash: graph.content_hash(&Needs::default()),
        node_count: i64::try_from(graph.nodes.len()).unwrap_or(i64::MAX),
    })
}
