//! Tags: coloured labels on workflows. Which workflow carries which is the workflow service's.

use contract::scope::{WorkflowRead, WorkflowWrite};
use contract::v1;

use super::change::Change;
use super::{Services, service};
use crate::auth::Authorized;
use crate::error::Result;
use crate::store::Tag;

pub(super) struct Tags {
    services: Services,
}

contract::tag_service_methods!(service, Tags);

impl Tags {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_tags(
        &self,
        caller: Authorized<WorkflowRead>,
        _request: v1::ListTagsRequest,
    ) -> Result<v1::ListTagsResponse> {
        let rows = self.services.store.list_tags(caller.organization_id()).await?;
        Ok(v1::ListTagsResponse {
            data: rows.into_iter().map(shown).collect(),
        })
    }

    async fn create_tag(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::CreateTagRequest,
    ) -> Result<v1::CreateTagResponse> {
        let store = &self.services.store;
        let tag = store
            .create_tag(
                &caller.actor(),
                caller.organization_id(),
                &request.name,
                &request.color,
            )
            .await?;
        Ok(v1::CreateTagResponse {
            data: Some(shown(tag)),
        })
    }

    async fn update_tag(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::UpdateTagRequest,
    ) -> Result<v1::UpdateTagResponse> {
        let fields = Change::new(request.update_mask.as_ref(), &["name", "color"])?;
        let name = fields.set("name", request.name.as_deref())?;
        let color = fields.set("color", request.color.as_deref())?;
        let store = &self.services.store;
        let tag = store
            .update_tag(
                &caller.actor(),
                caller.organization_id(),
                &request.id,
                name,
                color,
            )
            .await?;
        Ok(v1::UpdateTagResponse {
            data: Some(shown(tag)),
        })
    }

    async fn delete_tag(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::DeleteTagRequest,
    ) -> Result<v1::DeleteTagResponse> {
        let store = &self.services.store;
        store
            .delete_tag(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        Ok(v1::DeleteTagResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }
}

fn shown(tag: Tag) -> v1::Tag {
    v1::Tag {
        id: tag.id,
        name: tag.name,
        color: tag.color,
        created_at: tag.created_at,
        updated_at: tag.updated_at,
    }
}
