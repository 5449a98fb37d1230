//! Lists: workflows with every filter and sort, and the versions of one.

use contract::json::Words as _;
use contract::scope::WorkflowRead;
use contract::v1;
use wire::cursor::Pages;

use super::{Workflows, graph, version_no};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::services::{given, page_size};
use crate::store::{
    Position, Sort, SortBy, StatusFilter, TagFilter, Version, WorkflowFilter, WorkflowSummary,
};

const DEFAULT_PAGE: i64 = 50;
/// The most tags that one list may ask for.
const MAX_TAGS: usize = 100;

impl Workflows {
    pub(super) async fn list_workflows(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListWorkflowsRequest,
    ) -> Result<v1::ListWorkflowsResponse> {
        let sort = sort(&request);
        let pages = pages(&request);
        let after: Option<Position<String>> = pages
            .position::<(String, String)>(&request.cursor)?
            .map(|(value, id)| Position { value, id });
        let size = page_size(request.limit, DEFAULT_PAGE);
        let filter = filter(&request)?;
        let store = &self.services.store;
        let mut rows = store
            .list_workflows(caller.organization_id(), &filter, sort, after.as_ref(), size + 1)
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| {
            let position = last.position(sort);
            (position.value, position.id)
        });
        Ok(v1::ListWorkflowsResponse {
            data: rows.into_iter().map(summary).collect(),
            next_cursor,
        })
    }

    pub(super) async fn list_workflow_versions(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListWorkflowVersionsRequest,
    ) -> Result<v1::ListWorkflowVersionsResponse> {
        let store = &self.services.store;
        let pages = Pages::of(&["versions", &request.id]);
        let before: Option<i64> = pages.position(&request.cursor)?;
        store.workflow(caller.organization_id(), &request.id).await?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let mut rows = store
            .list_versions(caller.organization_id(), &request.id, before, size + 1)
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.version_no);
        Ok(v1::ListWorkflowVersionsResponse {
            data: rows.into_iter().map(deploy_result).collect(),
            next_cursor,
        })
    }

    pub(super) async fn get_workflow_version(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::GetWorkflowVersionRequest,
    ) -> Result<v1::GetWorkflowVersionResponse> {
        let store = &self.services.store;
        let number = i64::from(request.version_no);
        let version = store
            .version(caller.organization_id(), &request.id, number)
            .await?;
        let graph = self.version_graph(caller.organization_id(), &version).await?;
        let data = v1::WorkflowVersion {
            workflow_id: version.workflow_id,
            content_hash: version.content_hash,
            version_no: version_no(version.version_no),
            deployed_at: version.deployed_at,
            nodes: graph::nodes(&graph)?,
            edges: graph::edges(&graph)?,
        };
        Ok(v1::GetWorkflowVersionResponse { data: Some(data) })
    }
}

/// The sort column; the direction defaults to descending whatever the column.
fn sort(request: &v1::ListWorkflowsRequest) -> Sort {
    let by = match request.sort_by() {
        v1::WorkflowSortBy::Unspecified | v1::WorkflowSortBy::UpdatedAt => SortBy::UpdatedAt,
        v1::WorkflowSortBy::CreatedAt => SortBy::CreatedAt,
        v1::WorkflowSortBy::Name => SortBy::Name,
    };
    Sort {
        by,
        descending: request.sort_dir() != v1::SortDirection::Asc,
    }
}

fn pages(request: &v1::ListWorkflowsRequest) -> Pages {
    Pages::of(&[
        "workflows",
        &request.q,
        &request.folder_id,
        &request.tag_ids,
        &format!(
            "{} {} {} {}",
            request.status, request.sort_by, request.sort_dir, request.tag_match
        ),
    ])
}

fn filter(request: &v1::ListWorkflowsRequest) -> Result<WorkflowFilter> {
    let status = v1::WorkflowStatus::to_word(request.status).and_then(StatusFilter::from_word);
    let tag_ids: Vec<String> = request
        .tag_ids
        .split(',')
        .map(str::trim)
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
        .collect();
    if tag_ids.len() > MAX_TAGS {
        return Err(Error::invalid(
            "tagIds",
            format!("must name at most {MAX_TAGS} tags"),
        ));
    }
    Ok(WorkflowFilter {
        query: given(&request.q).map(str::to_owned),
        status,
        folder_id: given(&request.folder_id).map(str::to_owned),
        tags: (!tag_ids.is_empty()).then(|| TagFilter {
            tag_ids,
            all: request.tag_match() == v1::TagMatch::All,
        }),
    })
}

fn summary(row: WorkflowSummary) -> v1::WorkflowSummary {
    v1::WorkflowSummary {
        id: row.id,
        name: row.name,
        active: row.active,
        folder_id: row.folder_id,
        node_count: i32::try_from(row.node_count).unwrap_or(i32::MAX),
        tag_ids: row.tag_ids,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}

pub(super) fn deploy_result(version: Version) -> v1::DeployResult {
    v1::DeployResult {
        workflow_id: version.workflow_id,
        content_hash: version.content_hash,
        version_no: version_no(version.version_no),
        deployed_at: version.deployed_at,
    }
}
