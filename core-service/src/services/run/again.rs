//! Running a run again: all of it as a new attempt, or from a failed node on.

use contract::json::Words as _;
use contract::scope::WorkflowWrite;
use contract::v1::{self, ErrorReason};

use super::{Runs, start};
use crate::auth::Authorized;
use crate::clock;
use crate::error::{Error, Result};
use crate::store::Run;

impl Runs {
    pub(super) async fn rerun_run(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::RerunRunRequest,
    ) -> Result<v1::RerunRunResponse> {
        self.ended_run(&caller, &request.id).await?;
        let metered = self.check_bill(&caller).await?;
        self.services
            .runtime
            .rerun(&caller.actor(), caller.organization_id(), &request.id, metered)
            .await?;
        let run = self
            .services
            .store
            .run(caller.organization_id(), &request.id)
            .await?;
        let data = v1::RerunResult {
            run_id: request.id,
            status: status(&run),
            attempt_number: attempt_number(&run),
            updated_at: clock::now_ms(),
        };
        Ok(v1::RerunRunResponse { data: Some(data) })
    }

    pub(super) async fn retry_run_node(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::RetryRunNodeRequest,
    ) -> Result<v1::RetryRunNodeResponse> {
        let run = self.ended_run(&caller, &request.id).await?;
        check_attempt(run.attempt_number, request.attempt_number)?;
        let metered = self.check_bill(&caller).await?;
        // Validation has seen that it is there.
        let node_id = request.node_id.unwrap_or_default();
        self.services
            .runtime
            .retry_node(
                &caller.actor(),
                caller.organization_id(),
                &request.id,
                node_id,
                metered,
            )
            .await?;
        let run = self
            .services
            .store
            .run(caller.organization_id(), &request.id)
            .await?;
        let data = v1::RetryNodeResult {
            run_id: request.id,
            status: status(&run),
            attempt_number: attempt_number(&run),
            node_id,
            updated_at: clock::now_ms(),
        };
        Ok(v1::RetryRunNodeResponse { data: Some(data) })
    }

    /// The run, when it has ended: what comes after a bill is only looked at for those.
    async fn ended_run(&self, caller: &Authorized<WorkflowWrite>, run_id: &str) -> Result<Run> {
        let run = self.services.store.run(caller.organization_id(), run_id).await?;
        match run.finished_at {
            Some(_) => Ok(run),
            None => Err(Error::new(
                ErrorReason::RunNotTerminal,
                "The run has not ended yet.",
            )),
        }
    }

    /// Refuses who may start nothing, and gives whether credits are counted: the new start is then to hold one.
    async fn check_bill(&self, caller: &Authorized<WorkflowWrite>) -> Result<bool> {
        let organization = self.services.store.organization(caller.organization_id()).await?;
        start::check_billing(&organization)?;
        Ok(organization.is_metered())
    }
}

/// Refuses when the caller has another attempt in mind than the run is at.
pub(super) fn check_attempt(current: i64, wanted: Option<i32>) -> Result<()> {
    if wanted.is_some_and(|wanted| i64::from(wanted) != current) {
        let message = format!("The run is at attempt {current}.");
        return Err(Error::new(ErrorReason::AttemptMismatch, message));
    }
    Ok(())
}

fn status(run: &Run) -> i32 {
    v1::RunStatus::from_word(run.status.as_word()).unwrap_or_default()
}

fn attempt_number(run: &Run) -> i32 {
    i32::try_from(run.attempt_number).unwrap_or(i32::MAX)
}
