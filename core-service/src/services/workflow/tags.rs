//! The tags that a workflow carries.

use std::collections::HashSet;

use contract::scope::WorkflowWrite;
use contract::v1;
use contract::validation::Violation;

use super::Workflows;
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::services::change::Change;
use crate::store::StoreError;

impl Workflows {
    pub(super) async fn set_workflow_tags(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::SetWorkflowTagsRequest,
    ) -> Result<v1::SetWorkflowTagsResponse> {
        let asked = Change::new(request.update_mask.as_ref(), &["tag_ids"])?
            .set("tag_ids", Some(&request.tag_ids))?
            .ok_or_else(|| Error::invalid("tagIds", "is required"))?;
        let mut seen = HashSet::new();
        let tag_ids: Vec<&str> = asked
            .iter()
            .map(String::as_str)
            .filter(|id| seen.insert(*id))
            .collect();
        let store = &self.services.store;
        let set = store
            .set_workflow_tags(&caller.actor(), caller.organization_id(), &request.id, &tag_ids)
            .await;
        match set {
            Ok(()) => {}
            Err(StoreError::NotFound("tag")) => {
                return Err(self
                    .unknown_tags(caller.organization_id(), &request.tag_ids)
                    .await?);
            }
            Err(error) => return Err(error.into()),
        }
        let result = v1::WorkflowTagsResult {
            ok: true,
            tag_ids: tag_ids.into_iter().map(str::to_owned).collect(),
        };
        Ok(v1::SetWorkflowTagsResponse { data: Some(result) })
    }

    /// Says which of the tags there are not.
    async fn unknown_tags(&self, organization_id: &str, tag_ids: &[String]) -> Result<Error> {
        let tags = self.services.store.list_tags(organization_id).await?;
        let known: HashSet<&str> = tags.iter().map(|tag| tag.id.as_str()).collect();
        let unknown = tag_ids
            .iter()
            .enumerate()
            .filter(|(_, id)| !known.contains(id.as_str()));
        let violations = unknown.map(|(index, _)| Violation {
            path: format!("tagIds[{index}]"),
            message: "must name a tag of the organization".to_owned(),
        });
        Ok(Error::violations(violations.collect()))
    }
}
