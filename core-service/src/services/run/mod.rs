//! Runs: started, listed, read, watched, cancelled, run again.

mod again;
mod report;
mod respond;
pub(super) mod start;
mod watch;

use contract::json::Words as _;
use contract::scope::{WorkflowRead, WorkflowWrite};
use contract::v1::{self, ErrorReason};
use pbjson_types::Timestamp;
use tonic::metadata::MetadataValue;
use wire::cursor::Pages;

use super::{Services, given, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::runtime::RequestError;
use crate::store::Run;

const DEFAULT_PAGE: i64 = 50;
/// Metadata that tells that an answer repeats an earlier one.
const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";

pub(super) struct Runs {
    services: Services,
}

contract::run_service_methods!(service, Runs);

impl Runs {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn start_run(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::StartRunRequest,
    ) -> Result<tonic::Response<v1::StartRunResponse>> {
        let started = start::by_call(&self.services, &caller, request).await?;
        tracing::info!(
            run_id = started.run_id,
            replayed = started.replayed,
            "a run was started"
        );
        let data = Some(v1::RunStarted {
            run_id: started.run_id,
        });
        let mut response = tonic::Response::new(v1::StartRunResponse { data });
        if started.replayed {
            response
                .metadata_mut()
                .insert(IDEMPOTENT_REPLAYED, MetadataValue::from_static("true"));
        }
        Ok(response)
    }

    async fn list_runs(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListRunsRequest,
    ) -> Result<v1::ListRunsResponse> {
        let pages = Pages::of(&["runs", &request.workflow_id, &request.q]);
        let after: Option<String> = pages.position(&request.cursor)?;
        let store = &self.services.store;
        store
            .workflow(caller.organization_id(), &request.workflow_id)
            .await?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let query = given(&request.q);
        let mut rows = store
            .list_runs(
                caller.organization_id(),
                &request.workflow_id,
                query,
                after.as_deref(),
                size + 1,
            )
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.id.clone());
        Ok(v1::ListRunsResponse {
            data: rows.into_iter().map(summary).collect(),
            next_cursor,
        })
    }

    async fn get_run(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::GetRunRequest,
    ) -> Result<v1::GetRunResponse> {
        let report = self
            .services
            .runtime
            .report(caller.organization_id(), &request.id)
            .await?;
        Ok(v1::GetRunResponse {
            data: Some(report::run_report(&report)?),
        })
    }

    async fn list_run_nodes(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListRunNodesRequest,
    ) -> Result<v1::ListRunNodesResponse> {
        let pages = Pages::of(&["run nodes", &request.id]);
        // Nodes are listed in order of start: a place in that order stays the same while more are added.
        let begin: usize = pages.position(&request.cursor)?.unwrap_or_default();
        let size = page_size(request.limit, DEFAULT_PAGE);
        let report = self
            .services
            .runtime
            .report(caller.organization_id(), &request.id)
            .await?;
        let wanted = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
        let nodes = report.state.nodes().enumerate().skip(begin).take(wanted);
        let mut rows = nodes
            .map(|(at, node)| Ok((at, report::run_node(&node)?)))
            .collect::<Result<Vec<_>>>()?;
        let next_cursor = pages.cut(&mut rows, size, |(at, _)| at + 1);
        Ok(v1::ListRunNodesResponse {
            data: rows.into_iter().map(|(_, node)| node).collect(),
            next_cursor,
        })
    }

    async fn cancel_run(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::CancelRunRequest,
    ) -> Result<v1::CancelRunResponse> {
        self.services
            .runtime
            .cancel(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        Ok(v1::CancelRunResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }
}

fn summary(run: Run) -> v1::RunSummary {
    v1::RunSummary {
        status: v1::RunStatus::from_word(run.status.as_word()).unwrap_or_default(),
        created_at: Some(instant(run.created_at)),
        finished_at: run.finished_at.map(instant),
        credits_used: run.credits_used as f64,
        workflow_id: run.workflow_id,
        id: run.id,
    }
}

/// An instant of epoch milliseconds as protobuf has it.
fn instant(epoch_ms: i64) -> Timestamp {
    let nanos = i32::try_from(epoch_ms.rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Timestamp {
        seconds: epoch_ms.div_euclid(1000),
        nanos,
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NotFound => Self::not_found("run"),
            RequestError::Terminal => Self::new(ErrorReason::RunTerminal, "The run has ended already."),
            RequestError::NotTerminal => Self::new(ErrorReason::RunNotTerminal, "The run has not ended yet."),
            RequestError::OutOfCredits => start::out_of_credits(),
            RequestError::NotFailed(node) => {
                Self::invalid("nodeId", format!("names node {node}, which has not failed"))
            }
            RequestError::NotWaiting(_) => Self::not_found("node that waits for an answer"),
            RequestError::Answered(_) => {
                Self::new(ErrorReason::ResumeInFlight, "The node was answered already.")
            }
            RequestError::Unavailable => {
                Self::unavailable("The run cannot be reached at the moment; try again soon.")
            }
            error => Self::internal(error),
        }
    }
}
