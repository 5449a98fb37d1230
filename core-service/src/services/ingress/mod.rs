//! Calls of webhook URLs: the product's hottest path. A call is answered once its run is durable, or with what the run
//! says (`answer`). What a call is read from is in `body`, how it proves where it comes from in `verify`. Services that
//! call for triggers of their apps are heard in `app`.

mod answer;
mod app;
mod body;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use contract::access::Public;
use contract::v1::{self, ErrorReason};
use engine::kinds::{ResponseMode, WebhookSettings};
use engine::start::{Start, StartError, StartFrom};
use serde_json::json;
use tokio::time::Instant;

pub(super) use verify::Verifier;

use super::run::start;
use super::target::{Target, Trigger as LiveTrigger};
use super::{Services, service};
use crate::auth::Authorized;
use crate::clock;
use crate::error::{Error, Result};
use crate::id::{self, Kind};
use crate::runtime::{GraphRef, Lineage, PlanError, StartRun, StartRunError, Started, Trigger};
use crate::store::{Binding, Deployment, IdempotencyKey, Organization, WebhookTarget};

/// The largest message: the largest body an operator may allow, and its headers.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Headers that make a repeated delivery find the first run, in order of precedence.
const DELIVERY_IDS: [&str; 2] = ["webhook-id", "idempotency-key"];
const MAX_DELIVERY_ID: usize = 255;

pub(super) struct WebhookIngress {
    services: Services,
}

contract::webhook_ingress_service_methods!(service, WebhookIngress);

impl WebhookIngress {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn receive_webhook(
        &self,
        _caller: Authorized<Public>,
        mut request: v1::ReceiveWebhookRequest,
    ) -> Result<v1::ReceiveWebhookResponse> {
        if id::is_valid(Kind::Registration, &request.webhook_id) {
            return Box::pin(self.receive_for_app(request)).await;
        }
        let target = self.services.targets.find(&request.webhook_id).await?;
        let target = target.ok_or_else(|| Error::not_found("webhook"))?;
        if target.method() != request.method {
            let message = format!("The webhook takes {}, not {}.", target.method(), request.method);
            return Err(Error::new(ErrorReason::MethodNotAllowed, message).with_allow(target.method()));
        }
        let live = Live::of(&target)?;
        live.trigger.verifier.check(&request, clock::now_ms())?;
        live.trigger.verifier.hide(&mut request);
        let settings = &live.trigger.settings;
        if settings.response_mode == ResponseMode::Immediate {
            let started = self.start(&live.row.organization, live.run(request)?).await?;
            return Ok(accepted(&started.run_id));
        }
        // Apart, like all that few calls need: thousands of calls wait at the same time, each in memory of its own.
        Box::pin(self.start_and_wait(live, request)).await
    }

    /// Starts a run and answers with what it says. Whoever cannot wait is refused before anything starts.
    async fn start_and_wait(
        &self,
        live: Live<'_>,
        request: v1::ReceiveWebhookRequest,
    ) -> Result<v1::ReceiveWebhookResponse> {
        let settings: &WebhookSettings = &live.trigger.settings;
        let organization_id = &live.row.organization.id;
        let runtime = &self.services.runtime;
        let place = runtime.waiting_place(organization_id);
        let _place =
            place.ok_or_else(|| Error::unavailable("Too many callers wait for runs; try again soon."))?;
        let deadline = Instant::now() + Duration::from_millis(settings.response_timeout_ms);
        let started = self.start(&live.row.organization, live.run(request)?).await?;
        answer::of_run(
            runtime,
            organization_id,
            started,
            settings.response_mode,
            deadline,
        )
        .await
    }

    async fn start(&self, organization: &Organization, run: StartRun) -> Result<Started> {
        // A repeated delivery is answered whatever the bill says: it starts nothing.
        let started = match start::check_billing(organization) {
            Ok(()) => self.start_run(run).await?,
            Err(refusal) => Box::pin(start::replay(&self.services, &run))
                .await?
                .ok_or(refusal)?,
        };
        tracing::debug!(
            run_id = started.run_id,
            replayed = started.replayed,
            "a webhook was accepted"
        );
        Ok(started)
    }

    async fn start_run(&self, run: StartRun) -> Result<Started> {
        let started = self.services.runtime.start_run(run).await;
        started.map_err(|error| match error {
            StartRunError::Start(StartError::UnknownNode(_) | StartError::NotATrigger(_))
            | StartRunError::Plan(PlanError::NotFound) => not_live(),
            error => error.into(),
        })
    }
}

fn accepted(run_id: &str) -> v1::ReceiveWebhookResponse {
    let body = format!("{{\"data\":{{\"runId\":\"{run_id}\",\"accepted\":true}}}}");
    answer::response(202, "application/json", body.into_bytes())
}

fn not_live() -> Error {
    Error::new(
        ErrorReason::WorkflowNotLive,
        "The workflow behind the webhook is not active, not deployed, or lacks its trigger.",
    )
}

/// A webhook whose calls start runs.
struct Live<'a> {
    row: &'a WebhookTarget,
    binding: &'a Binding,
    deployment: &'a Deployment,
    trigger: &'a LiveTrigger,
}

impl<'a> Live<'a> {
    fn of(target: &'a Target) -> Result<Self> {
        let row = &target.row;
        let parts = (
            &row.binding,
            &row.deployment,
            &target.trigger,
            row.enabled && row.active,
        );
        let (Some(binding), Some(deployment), Some(trigger), true) = parts else {
            return Err(not_live());
        };
        Ok(Self {
            row,
            binding,
            deployment,
            trigger,
        })
    }

    /// The run that a call starts.
    fn run(&self, request: v1::ReceiveWebhookRequest) -> Result<StartRun> {
        let body = body::read(&request)?;
        let idempotency = delivery_id(&request);
        let v1::ReceiveWebhookRequest {
            webhook_id,
            method,
            headers,
            query,
            ..
        } = request;
        let input = json!({
            "body": body,
            "headers": body::header_object(headers),
            "query": body::query_object(&query),
            "method": method,
        });
        Ok(StartRun {
            organization_id: self.row.organization.id.clone(),
            workflow_id: self.binding.workflow_id.clone(),
            workflow_name: self.row.workflow_name.clone().unwrap_or_default(),
            graph: GraphRef::Stored(self.deployment.content_hash.clone()),
            version_no: Some(self.deployment.version_no),
            start: Start {
                attempt: 1,
                from: StartFrom::Trigger(self.binding.node_id),
                input: Arc::new(input),
                seeds: Vec::new(),
                timeout_ms: self.row.execution_timeout_ms.map(i64::unsigned_abs),
            },
            trigger: Trigger {
                kind: "webhook".to_owned(),
                node_id: Some(self.binding.node_id),
                webhook_id: Some(webhook_id),
                ..Trigger::default()
            },
            idempotency,
            tick: None,
            lineage: Lineage::default(),
            created_by: None,
            metered: self.row.organization.is_metered(),
            actor: None,
        })
    }
}

/// The key that a delivery's own id makes; the body does not count, a repeated id is a repeated delivery.
fn delivery_id(request: &v1::ReceiveWebhookRequest) -> Option<IdempotencyKey> {
    let id = DELIVERY_IDS.iter().find_map(|name| header(request, name))?;
    let usable = (1..=MAX_DELIVERY_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    usable.then(|| IdempotencyKey {
        key: format!("{}/{id}", request.webhook_id),
        body_hash: Vec::new(),
        expires_at: clock::now_ms() + start::KEY_LIFETIME_MS,
    })
}

/// The first header of this name, which is in lower case.
fn header<'a>(request: &'a v1::ReceiveWebhookRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|header| header.name == name)?;
    std::str::from_utf8(&found.value).ok()
}
