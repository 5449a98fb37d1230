//! Answering a call with what its run says: the output of the node that finished last, or what a `webhook_response` node
//! says as soon as that is durable.
//!
//! A run that ended in its first step is answered from memory. Any other is followed; a repeated delivery follows the
//! first one's run, so it is answered alike.

use contract::v1::{self, ErrorReason};
use engine::event::Outcome;
use engine::graph::NATIVE_APP;
use engine::kinds::ResponseMode;
use engine::state::{NodeStatus, RunState};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::error::{Error, Result};
use crate::runtime::{Followed, Runtime, Started};

const RESPONSE_KIND: &str = "webhook_response";

/// The answer of the run that a call started, when it comes before the deadline.
pub(super) async fn of_run(
    runtime: &Runtime,
    organization_id: &str,
    started: Started,
    mode: ResponseMode,
    deadline: Instant,
) -> Result<v1::ReceiveWebhookResponse> {
    let run_id = &started.run_id;
    let answer = match &started.ended {
        Some(state) => said(mode, state),
        None => {
            let followed = runtime.follow(organization_id, run_id).await?;
            tokio::select! {
                answer = heard(followed, mode) => answer?,
                () = sleep_until(deadline) => return Err(late(run_id)),
                () = runtime.callers_dismissed() => return Err(dismissed(run_id)),
            }
        }
    };
    // A run that ended without its journal saying so was given up by the service.
    answer.unwrap_or(Said::Failure).into_response(run_id)
}

/// What a run says to its caller.
enum Said {
    /// The output of the node that finished last.
    Output(Vec<u8>),
    /// What a `webhook_response` node says.
    Response(Value),
    /// It succeeded, and no node said anything.
    Nothing,
    /// It failed or was cancelled.
    Failure,
}

/// Waits until the run has said something, or has ended.
async fn heard(mut run: Followed, mode: ResponseMode) -> Result<Option<Said>> {
    loop {
        let has_ended = run.has_ended().await?;
        // Only a response node says something before the end.
        if has_ended || mode == ResponseMode::RespondNode {
            run.read().await?;
            let said = said(mode, run.state());
            if has_ended || said.is_some() {
                return Ok(said);
            }
        }
        run.changed().await;
    }
}

/// What the run has said by now.
fn said(mode: ResponseMode, state: &RunState) -> Option<Said> {
    if mode == ResponseMode::RespondNode
        && let Some(response) = first_response(state)
    {
        return Some(Said::Response(response.clone()));
    }
    let outcome = state.finished()?.outcome;
    Some(match (outcome, mode) {
        (Outcome::Failed | Outcome::Cancelled, _) => Said::Failure,
        (Outcome::Succeeded, ResponseMode::RespondNode) => Said::Nothing,
        (Outcome::Succeeded, _) => {
            let output = state.last_output().map(|output| serde_json::to_vec(&**output));
            Said::Output(output.and_then(Result::ok).unwrap_or_else(|| b"null".to_vec()))
        }
    })
}

/// The output of the response node that completed first.
fn first_response(state: &RunState) -> Option<&Value> {
    let responses = state.nodes().filter(|node| {
        let says = node.node.app_id == NATIVE_APP && node.node.module_slug == RESPONSE_KIND;
        says && !node.node.disabled && node.status == NodeStatus::Completed
    });
    let first = responses.min_by_key(|node| node.finished_at_ms)?;
    first.output.map(|output| &**output)
}

impl Said {
    fn into_response(self, run_id: &str) -> Result<v1::ReceiveWebhookResponse> {
        match self {
            Self::Output(output) => Ok(response(200, "application/json", output)),
            Self::Response(said) => Ok(as_told(&said)),
            Self::Nothing => Ok(v1::ReceiveWebhookResponse {
                status: 204,
                ..Default::default()
            }),
            Self::Failure => {
                let message = "The workflow failed; its run tells why to those who may read it.";
                Err(Error::new(ErrorReason::RunFailed, message).with_run_id(run_id))
            }
        }
    }
}

/// An answer with a body.
pub(super) fn response(status: i32, content_type: &str, body: Vec<u8>) -> v1::ReceiveWebhookResponse {
    v1::ReceiveWebhookResponse {
        status,
        headers: vec![header("content-type", content_type)],
        body,
    }
}

/// The answer that a node's status, headers and body describe. The node has checked them.
fn as_told(said: &Value) -> v1::ReceiveWebhookResponse {
    let status = said["status"]
        .as_i64()
        .and_then(|status| i32::try_from(status).ok());
    let (content_type, body) = match &said["body"] {
        Value::Null => (None, Vec::new()),
        Value::String(text) => (Some("text/plain; charset=utf-8"), text.clone().into_bytes()),
        value => (Some("application/json"), value.to_string().into_bytes()),
    };
    let told = said["headers"].as_object().into_iter().flatten();
    let told = told.filter_map(|(name, value)| Some(header(&name.to_ascii_lowercase(), value.as_str()?)));
    let mut headers: Vec<v1::HttpHeader> = told.collect();
    if !headers.iter().any(|header| header.name == "content-type") {
        headers.extend(content_type.map(|value| header("content-type", value)));
    }
    v1::ReceiveWebhookResponse {
        status: status.unwrap_or(200),
        headers,
        body,
    }
}

fn header(name: &str, value: &str) -> v1::HttpHeader {
    v1::HttpHeader {
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    }
}

fn late(run_id: &str) -> Error {
    let message = "The run did not answer in time; it goes on.";
    Error::new(ErrorReason::DeadlineExceeded, message).with_run_id(run_id)
}

fn dismissed(run_id: &str) -> Error {
    Error::unavailable("The server is stopping; the run goes on without an answer to this call.")
        .with_run_id(run_id)
}
