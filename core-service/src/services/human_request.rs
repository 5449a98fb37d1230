//! Human requests: what runs ask people. They are answered in `run/respond` and on the page behind their link.

use contract::json::Words as _;
use contract::scope::WorkflowRead;
use contract::v1;
use wire::cursor::Pages;

use super::{Services, given, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::form::Field;
use crate::people;
use crate::store::{HumanRequest, HumanRequestFilter};

const DEFAULT_PAGE: i64 = 50;

pub(super) struct HumanRequests {
    services: Services,
}

contract::human_request_service_methods!(service, HumanRequests);

impl HumanRequests {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_human_requests(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListHumanRequestsRequest,
    ) -> Result<v1::ListHumanRequestsResponse> {
        let (workflow, run, assignee) = (&request.workflow_id, &request.run_id, &request.assignee);
        let pages = Pages::of(&["human requests", workflow, run, assignee]);
        let after: Option<String> = pages.position(&request.cursor)?;
        let filter = HumanRequestFilter {
            workflow_id: given(workflow),
            run_id: given(run),
            assignee: given(assignee.trim()),
        };
        let size = page_size(request.limit, DEFAULT_PAGE);
        let store = &self.services.store;
        let mut rows = store
            .list_human_requests(caller.organization_id(), &filter, after.as_deref(), size + 1)
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.id.clone());
        // The link takes an answer from whoever has it.
        let may_answer = caller.may(v1::Scope::WorkflowWrite);
        let data = rows
            .into_iter()
            .map(|row| self.shown(row, may_answer))
            .collect::<Result<_>>()?;
        Ok(v1::ListHumanRequestsResponse { data, next_cursor })
    }

    fn shown(&self, request: HumanRequest, with_link: bool) -> Result<v1::HumanRequest> {
        let question = people::question(&request).map_err(Error::internal)?;
        Ok(v1::HumanRequest {
            answer_url: with_link.then(|| self.services.people.url(&request.id)),
            id: request.id,
            workflow_id: request.workflow_id,
            run_id: request.run_id,
            attempt_number: i32::try_from(request.run_attempt).unwrap_or(i32::MAX),
            node_id: request.node_id,
            iteration: Some(request.iteration).filter(|iteration| !iteration.is_empty()),
            title: question.title,
            message: question.message,
            fields: question.fields.into_iter().map(field).collect(),
            assignees: question.assignees,
            due_at: request.due_at,
            created_at: request.created_at,
        })
    }
}

fn field(field: Field) -> v1::HumanRequestField {
    v1::HumanRequestField {
        r#type: v1::StructureFieldType::from_word(field.field_type.as_word()).unwrap_or_default(),
        name: field.name,
        required: field.required,
        label: field.label,
    }
}
