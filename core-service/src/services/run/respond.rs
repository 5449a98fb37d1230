//! Answering a node that waits for a person.

use contract::scope::WorkflowWrite;
use contract::v1::{self, ErrorReason};
use contract::validation::Violation;
use engine::graph::NATIVE_APP;
use engine::iteration::Iteration;
use engine::state::NodeStatus;

use super::Runs;
use super::again::check_attempt;
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::form::Wrong;
use crate::nodes::human_input;
use crate::people::AnswerError;
use crate::runtime::Report;
use crate::store::HumanRequest;

impl Runs {
    pub(super) async fn respond_run_node(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::RespondRunNodeRequest,
    ) -> Result<v1::RespondRunNodeResponse> {
        let response = wire::json::object(request.response.as_ref(), "response")?;
        let iteration = request
            .iteration
            .as_deref()
            .map(str::parse::<Iteration>)
            .transpose();
        let iteration =
            iteration.map_err(|error| Error::invalid("iteration", format!("is wrong: {error}")))?;
        let runtime = &self.services.runtime;
        let report = runtime.report(caller.organization_id(), &request.id).await?;
        let node_id = asking_node(&report, &request.node_id)?;
        let wanted = request.attempt_number;
        check_attempt(report.run.attempt_number, wanted)?;
        let open = self
            .open_request(caller.organization_id(), &report, node_id, iteration.as_ref())
            .await?;
        // The run may have begun its next attempt meanwhile. What answers this request answers nothing else.
        check_attempt(open.run_attempt, wanted)?;
        let answered = self
            .services
            .people
            .answer(&caller.actor(), &open, &response)
            .await;
        let done = answered.map_err(refusal)?;
        let data = v1::RespondNodeResult {
            ok: true,
            resumed: done.resumed,
            terminal: done.ended,
        };
        Ok(v1::RespondRunNodeResponse { data: Some(data) })
    }

    /// The one request that the node waits with.
    async fn open_request(
        &self,
        organization_id: &str,
        report: &Report,
        node_id: i64,
        iteration: Option<&Iteration>,
    ) -> Result<HumanRequest> {
        if report.run.status.is_terminal() {
            return Err(ended());
        }
        let wanted = iteration.map(ToString::to_string);
        let store = &self.services.store;
        let mut open = store
            .human_requests_of_node(organization_id, &report.run.id, node_id, wanted.as_deref(), 2)
            .await?;
        match (open.pop(), open.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(Error::invalid(
                "iteration",
                "is required: the node waits in several iterations",
            )),
            (None, _) => Err(not_open(report, node_id, iteration)),
        }
    }
}

/// The node that a request names, when it is one that asks people.
fn asking_node(report: &Report, node_id: &str) -> Result<i64> {
    let node = node_id.parse().ok().and_then(|id| report.state.plan().node(id));
    let asks =
        |node: &&engine::plan::PlanNode| node.app_id == NATIVE_APP && node.module_slug == human_input::KIND;
    match node.filter(asks) {
        Some(node) => Ok(node.id),
        None => Err(Error::not_found("human_input node in this run")),
    }
}

/// Why a node does not wait for an answer: it was answered, or the run has not come to it.
fn not_open(report: &Report, node_id: i64, iteration: Option<&Iteration>) -> Error {
    let mut nodes = report.state.nodes();
    let was_asked = nodes.any(|node| {
        let meant = node.node.id == node_id && iteration.is_none_or(|iteration| iteration == node.iteration);
        // One that still waited a moment ago has been answered since.
        meant
            && !matches!(
                node.status,
                NodeStatus::Pending | NodeStatus::Running | NodeStatus::Skipped
            )
    });
    match was_asked {
        true => in_flight(),
        false => Error::not_found("node that waits for an answer"),
    }
}

fn in_flight() -> Error {
    Error::new(
        ErrorReason::ResumeInFlight,
        "The node was answered already, or its time is over.",
    )
}

fn ended() -> Error {
    Error::new(
        ErrorReason::RunTerminalConflict,
        "The run has ended; nobody waits for the answer any more.",
    )
}

fn refusal(error: AnswerError) -> Error {
    let violation = |wrong: Wrong| Violation {
        path: format!("response.{}", wrong.name),
        message: wrong.message,
    };
    match error {
        AnswerError::Wrong(wrong) => Error::violations(wrong.into_iter().map(violation).collect()),
        AnswerError::InFlight => in_flight(),
        AnswerError::RunEnded => ended(),
        AnswerError::PastDue => Error::new(
            ErrorReason::PaymentRequired,
            "The organization has an overdue bill; runs go on once it is paid.",
        ),
        AnswerError::Request(error) => error.into(),
        AnswerError::Store(error) => error.into(),
        AnswerError::Damaged(error) => Error::internal(error),
    }
}
