//! Tells services where to call, as the triggers of apps say: when they go live, and when that is over.
//!
//! What is told is what the database says, so it is told again after a crash. A service that had understood the first time
//! recognizes the idempotency key, or has the URL twice: then each of its events comes twice, and the trigger's `key` tells
//! one from another only where both have the same id. What is known of a registration is detached; what was answered to a
//! process that died before it had noted it is not known.

use std::sync::Arc;
use std::time::Duration;

use engine::canonical::sha256_hex;
use engine::failure::NodeError;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::Shared;
use super::due::Worker;
use super::metrics::count;
use crate::connectors::{TemplateError, Webhook};
use crate::credentials::OpenCredential;
use crate::nodes::app_caller::AppCaller;
use crate::nodes::http::{Caller, account};
use crate::registrations::{OpenRegistration, RegistrationError, Registrations};
use crate::secret::{Mask, Secret};
use crate::store::{
    DueRegistration, LONGEST_CLAIM_MS, NextWake, RegistrationStatus, StoreError, Told, Topic, Trouble,
};

/// How long telling a service may take. Less than a claim: nobody is told by two at the same time.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a registration is left to the process that claimed it, in milliseconds.
const CLAIM_MS: i64 = LONGEST_CLAIM_MS;
/// Before the second time, in milliseconds; twice as long before each further one, up to the longest.
const FIRST_PAUSE_MS: i64 = 5_000;
const LONGEST_PAUSE_MS: i64 = 3_600_000;
/// How often a service is told that it should call no longer, before that is given up: for about six hours.
const MOST_GOODBYES: i64 = 15;

/// What the activity feed is told.
const ATTACH_FAILED: &str = "workflow.attach_failed";
const DETACH_FAILED: &str = "workflow.detach_failed";

/// Codes of failures after which nobody knows whether the service has heard.
const UNANSWERED: [&str; 2] = ["HTTP_UNREACHABLE", NodeError::TIMEOUT];
/// The code by which manifests say that there is nothing any more.
const NOT_FOUND: &str = "NOT_FOUND";
/// The code of requests that cannot be made of what is known.
const EXPRESSION_ERROR: &str = "EXPRESSION_ERROR";

/// What telling takes.
pub(super) struct Registrar {
    pub(super) shared: Arc<Shared>,
    pub(super) registrations: Registrations,
    pub(super) caller: AppCaller,
}

/// What a service is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Attach,
    Detach,
}

impl Worker for Registrar {
    type Due = DueRegistration;
    const TOPIC: Topic = Topic::Registrations;
    const AT_ONCE: usize = 32;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn next(&self) -> Result<Option<NextWake>, StoreError> {
        self.shared.store.next_registration().await
    }

    async fn claim(&self, limit: i64) -> Result<Vec<DueRegistration>, StoreError> {
        self.shared.store.claim_registrations(CLAIM_MS, limit).await
    }

    async fn deal_with(&self, due: DueRegistration) {
        if let Err(error) = self.tell(&due).await {
            let registration = &due.registration;
            tracing::warn!(%error, workflow_id = registration.workflow_id, node_id = registration.node_id, "a service could not be told of a trigger; it will be tried again");
        }
    }
}

impl Word {
    /// A registration that nobody wants any more is detached, even when nobody knows whether it was attached.
    fn of(due: &DueRegistration) -> Self {
        match due.registration.status == RegistrationStatus::Attaching && due.registration.wanted {
            true => Self::Attach,
            false => Self::Detach,
        }
    }
}

impl Registrar {
    async fn tell(&self, due: &DueRegistration) -> Result<(), StoreError> {
        let word = Word::of(due);
        let outcome = match self.registrations.open(&due.registration).await {
            Ok(open) => {
                let asked = timeout(PATIENCE, self.ask(due, &open, word)).await;
                let late = |_elapsed| Err(NodeError::timeout(PATIENCE.as_secs() * 1_000));
                asked.unwrap_or_else(late)
            }
            Err(error) => Err(unusable(error)?),
        };
        let kept = match &outcome {
            Ok(kept) if !kept.is_empty() => {
                let sealed = self.registrations.seal_kept(&due.registration, kept).await;
                sealed.map(Some).map_err(unusable)
            }
            _ => Ok(None),
        };
        let (outcome, kept) = match kept {
            Ok(kept) => (outcome.map(drop), kept),
            Err(error) => (Err(error?), None),
        };
        let reason = outcome
            .as_ref()
            .err()
            .map(NodeError::to_string)
            .unwrap_or_default();
        let trouble = |action| Trouble {
            action,
            node_id: Some(due.registration.node_id),
            reason: &reason,
        };
        let told = match (&outcome, word) {
            (Ok(()), Word::Attach) => Told::Attached {
                kept: kept.as_deref(),
            },
            (Ok(()), Word::Detach) => Told::Detached,
            (Err(error), Word::Attach) => failed(due, error, Some(trouble(ATTACH_FAILED))),
            (Err(error), Word::Detach) => not_detached(due, error, trouble(DETACH_FAILED)),
        };
        self.note(due, told, outcome.err()).await
    }

    async fn note(
        &self,
        due: &DueRegistration,
        told: Told<'_>,
        error: Option<NodeError>,
    ) -> Result<(), StoreError> {
        let counters = &self.shared.counters;
        let (workflow_id, node_id) = (&due.registration.workflow_id, due.registration.node_id);
        if let Some(error) = error {
            count(&counters.services_failed, 1);
            tracing::warn!(workflow_id, node_id, %error, "a service was not told of a trigger");
        }
        if !self.shared.store.told(due, told).await? {
            tracing::warn!(workflow_id, node_id, "a service was told of a trigger too late");
            return Ok(());
        }
        match told {
            Told::Attached { .. } => count(&counters.services_attached, 1),
            Told::Detached => count(&counters.services_detached, 1),
            Told::Abandoned { .. } | Told::Failed { .. } => {}
        }
        Ok(())
    }

    /// Tells the service, when it is to be told at all. Gives what is to be remembered of its answer.
    async fn ask(
        &self,
        due: &DueRegistration,
        open: &OpenRegistration,
        word: Word,
    ) -> Result<Map<String, Value>, NodeError> {
        let organization_id = &due.registration.organization_id;
        let (app, module) = (&*open.app, open.module());
        let keeps = module.webhook.as_ref().is_some_and(Webhook::keeps);
        if !module.webhook.as_ref().is_some_and(Webhook::is_attached) {
            return Ok(Map::new());
        }
        let named = open.credential_id.as_deref();
        let credential = self
            .caller
            .credential((app, module), organization_id, named, &open.apps)
            .await?;
        let connected = credential.as_ref().map(OpenCredential::connected);
        let detach = word == Word::Detach;
        let walk = app.attach(module, &open.parameters, connected, &open.webhook, detach);
        let walk = walk.map_err(|error| unmade(&error, open))?;
        let Some(walk) = walk else {
            return Ok(Map::new());
        };
        let caller = Caller {
            app: Some(app),
            credential: credential.as_ref(),
            hide: mask(open).into(),
            idempotency_key: Some(key(due)),
            account: account(organization_id, named),
            timeout: PATIENCE,
        };
        let answer = self.caller.http().walk(walk, caller).await?;
        match answer {
            Value::Object(kept) if keeps && !detach => Ok(kept),
            _ if keeps && !detach => {
                let message = "the service's answer has nothing of what the app remembers of it";
                Err(NodeError::new("HTTP_ERROR", message))
            }
            _ => Ok(Map::new()),
        }
    }
}

/// The same until the service has answered. It gives the URL away to nobody who sees headers.
fn key(due: &DueRegistration) -> String {
    sha256_hex(format!("{} {}", due.registration.id, due.round).as_bytes())
}

/// The failure that a registration is which cannot be used, unless the database will be there again soon.
fn unusable(error: RegistrationError) -> Result<NodeError, StoreError> {
    match error.passing() {
        Ok(error) => Err(error),
        Err(error) => Ok(NodeError::new("ENGINE_ERROR", error.to_string())),
    }
}

/// The failure of templates that make no request of what is known, which nobody may read.
fn unmade(error: &TemplateError, open: &OpenRegistration) -> NodeError {
    let mut message = error.to_string();
    mask(open).text(&mut message);
    NodeError::expression(message)
}

fn mask(open: &OpenRegistration) -> Mask {
    Mask::of(open.secrets().iter().map(Secret::expose))
}

fn failed<'a>(due: &DueRegistration, error: &NodeError, trouble: Option<Trouble<'a>>) -> Told<'a> {
    let doublings = u32::try_from(due.failures).unwrap_or(u32::MAX).min(16);
    let pause_ms = (FIRST_PAUSE_MS << doublings).min(LONGEST_PAUSE_MS);
    let asked_ms = error.retry_after_ms.and_then(|ms| i64::try_from(ms).ok());
    Told::Failed {
        pause_ms: pause_ms.max(asked_ms.unwrap_or(0)),
        answered: !UNANSWERED.contains(&&*error.code),
        trouble,
    }
}

/// What follows when a service was not told that it should call no longer.
fn not_detached<'a>(due: &DueRegistration, error: &NodeError, trouble: Trouble<'a>) -> Told<'a> {
    let nothing_known = due.registration.status == RegistrationStatus::Attaching;
    match &*error.code {
        NOT_FOUND => Told::Detached,
        // Most likely it was never attached.
        EXPRESSION_ERROR if nothing_known => Told::Detached,
        _ if due.failures + 1 >= MOST_GOODBYES => Told::Abandoned { trouble },
        _ => failed(due, error, None),
    }
}
