//! A run as the contract reports it.

use contract::json::Words as _;
use contract::v1;
use engine::event::LogLine;
use engine::report::NodeReport;

use super::instant;
use crate::error::{Error, Result};
use crate::runtime::{PlanError, Report, ReportError};

/// The most nodes that a report itself lists.
const MAX_NODES: usize = 1_000;

/// A run and its nodes.
pub(super) fn run_report(report: &Report) -> Result<v1::RunReport> {
    let run = &report.run;
    let mut nodes = report.state.nodes();
    let listed = nodes
        .by_ref()
        .take(MAX_NODES)
        .map(|node| run_node(&node))
        .collect::<Result<Vec<_>>>()?;
    Ok(v1::RunReport {
        id: run.id.clone(),
        workflow_id: run.workflow_id.clone(),
        status: v1::RunStatus::from_word(run.status.as_word()).unwrap_or_default(),
        created_at: Some(instant(run.created_at)),
        finished_at: run.finished_at.map(instant),
        error: run.error.clone(),
        nodes: listed,
        nodes_truncated: nodes.next().is_some(),
        attempt_number: i32::try_from(run.attempt_number).unwrap_or(i32::MAX),
        trigger: Some(v1::RunTrigger {
            kind: v1::RunTriggerKind::from_word(&report.trigger.kind).unwrap_or_default(),
            node_id: report.trigger.node_id,
            webhook_id: report.trigger.webhook_id.clone(),
            parent_run_id: report.trigger.parent_run_id.clone(),
        }),
        version_no: run
            .version_no
            .map(|number| i32::try_from(number).unwrap_or(i32::MAX)),
        created_by: run.created_by.clone(),
        credits_used: run.credits_used as f64,
    })
}

/// A node of a run.
pub(super) fn run_node(node: &NodeReport<'_>) -> Result<v1::RunNode> {
    let iteration = node.iteration.to_string();
    let output = node
        .output
        .map(|output| serde_json::to_string(&**output))
        .transpose()
        .map_err(Error::internal)?;
    Ok(v1::RunNode {
        node_id: node.node.id,
        label: node.node.label.clone(),
        status: v1::RunNodeStatus::from_word(node.status.as_str()).unwrap_or_default(),
        output: output.map(|json| v1::JsonObject { json }),
        kind: (node.node.app_id == engine::graph::NATIVE_APP).then(|| node.node.module_slug.clone()),
        app_id: node.node.app_id.clone(),
        module_slug: node.node.module_slug.clone(),
        attempt: i32::try_from(node.attempt).unwrap_or(i32::MAX),
        iteration: Some(iteration).filter(|iteration| !iteration.is_empty()),
        started_at: node.started_at_ms.map(instant),
        finished_at: node.finished_at_ms.map(instant),
        duration_ms: node
            .started_at_ms
            .zip(node.finished_at_ms)
            .map(|(start, end)| end.saturating_sub(start)),
        error: node.failure.map(|failure| v1::RunNodeError {
            code: failure.code.clone(),
            message: failure.message.clone(),
        }),
        credits_used: f64::from(node.credits_used),
        logs: node.log.iter().map(log_line).collect(),
    })
}

fn log_line(line: &LogLine) -> v1::RunNodeLog {
    v1::RunNodeLog {
        level: v1::RunNodeLogLevel::from_word(line.level.as_str()).unwrap_or_default(),
        message: line.message.clone(),
    }
}

impl From<ReportError> for Error {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::NotFound => Self::not_found("run"),
            ReportError::Store(error) => error.into(),
            ReportError::Plan(PlanError::Store(error)) => error.into(),
            error => Self::internal(error),
        }
    }
}
