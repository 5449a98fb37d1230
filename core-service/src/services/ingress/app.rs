//! Calls of services, for triggers of their apps: proven as the manifest says, answered once the run is durable.
//!
//! Services read nothing in an answer but its status, and some take fright at a body that they do not know: it is empty.

use std::sync::Arc;

use contract::v1::{self, ErrorReason};
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{WebhookIngress, answer, body, not_live};
use crate::clock;
use crate::connectors::{Delivered, Receiver};
use crate::error::{Error, Result};
use crate::runtime::{GraphRef, Lineage, StartRun, Trigger};
use crate::services::app_target::AppTarget;
use crate::store::IdempotencyKey;

/// The method of deliveries. Others only ask whether the URL is meant.
const DELIVERS: &str = "POST";
/// How long a delivery's id finds its run, in milliseconds. Services deliver again for up to three days.
const KEY_LIFETIME_MS: i64 = 4 * 24 * 60 * 60 * 1000;

impl WebhookIngress {
    /// Takes a call of a service.
    pub(super) async fn receive_for_app(
        &self,
        request: v1::ReceiveWebhookRequest,
    ) -> Result<v1::ReceiveWebhookResponse> {
        let target = self.services.targets.find_app(&request.webhook_id).await?;
        let target = target.ok_or_else(|| Error::not_found("webhook"))?;
        let method = request.method.clone();
        // A body that cannot be read proves nothing less by its bytes, and is refused after that.
        let body = body::read(&request);
        let delivery = delivery(request, body.as_ref().ok().cloned().unwrap_or_default());
        let received = target.trigger.module().receive(
            &delivery,
            &Receiver {
                parameters: &target.trigger.parameters,
                connected: target.connected(),
                webhook: &target.trigger.webhook,
                now_ms: clock::now_ms(),
            },
        );
        match received.map_err(|error| Error::invalid("", error.to_string()))? {
            Delivered::Challenge(answer) => Ok(answered(&answer)),
            _ if method != DELIVERS => {
                let message = format!("Services deliver by {DELIVERS}, not by {method}.");
                Err(Error::new(ErrorReason::MethodNotAllowed, message).with_allow(DELIVERS))
            }
            Delivered::Unproven => Err(Error::new(
                ErrorReason::Unauthenticated,
                "The call does not prove where it comes from: its secret or signature is missing or wrong.",
            )),
            Delivered::Passed => Ok(taken()),
            Delivered::Accepted { input, key } => {
                body?;
                if !target.row.workflow.active {
                    return Err(not_live());
                }
                let run = run(&target, input, key.as_deref());
                self.start(&target.row.workflow.organization, run).await?;
                Ok(taken())
            }
        }
    }
}

/// A call as the manifest's templates see it.
fn delivery(request: v1::ReceiveWebhookRequest, body: Value) -> Value {
    json!({
        "method": request.method,
        "query": body::query_object(&request.query),
        "headers": body::header_object(request.headers),
        "body": body,
        "text": String::from_utf8_lossy(&request.body),
    })
}

/// The answer to a question whether the URL is meant.
fn answered(answer: &Value) -> v1::ReceiveWebhookResponse {
    match answer {
        Value::Null => taken(),
        Value::String(text) => answer::response(200, "text/plain; charset=utf-8", text.clone().into_bytes()),
        value => answer::response(200, "application/json", value.to_string().into_bytes()),
    }
}

fn taken() -> v1::ReceiveWebhookResponse {
    v1::ReceiveWebhookResponse {
        status: 200,
        ..Default::default()
    }
}

/// The run that a delivery starts; one only, however often it comes with the same key.
fn run(target: &AppTarget, input: Value, key: Option<&str>) -> StartRun {
    let (workflow, registration) = (&target.row.workflow, &target.row.registration);
    let input = match input {
        Value::Object(_) => input,
        other => json!({ "value": other }),
    };
    let idempotency = key.map(|key| IdempotencyKey {
        key: format!("{}/{}", registration.id, hex::encode(Sha256::digest(key))),
        body_hash: Vec::new(),
        expires_at: clock::now_ms() + KEY_LIFETIME_MS,
    });
    StartRun {
        organization_id: workflow.organization.id.clone(),
        workflow_id: workflow.id.clone(),
        workflow_name: workflow.name.clone(),
        graph: GraphRef::Stored(workflow.deployment.content_hash.clone()),
        version_no: Some(workflow.deployment.version_no),
        start: Start {
            attempt: 1,
            from: StartFrom::Trigger(registration.node_id),
            input: Arc::new(input),
            seeds: Vec::new(),
            timeout_ms: workflow.execution_timeout_ms.map(i64::unsigned_abs),
        },
        trigger: Trigger {
            kind: "webhook".to_owned(),
            node_id: Some(registration.node_id),
            ..Trigger::default()
        },
        idempotency,
        tick: None,
        lineage: Lineage::default(),
        created_by: None,
        metered: workflow.organization.is_metered(),
        actor: None,
    }
}
