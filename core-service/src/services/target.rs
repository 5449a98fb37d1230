//! What a webhook leads to: its row, and its trigger in the deployed version, with the secret that calls prove.

use std::sync::Arc;
use std::time::Duration;

use engine::kinds::WebhookSettings;

use super::app_target::{AppTarget, AppTargets};
use super::graph;
use super::ingress::Verifier;
use crate::error::{Error, Result};
use crate::lookups::Lookups;
use crate::store::{Store, WebhookTarget};
use crate::variables::{VariableSet, Variables};

/// How long a target is believed on nodes other than the one that changed it.
const BELIEVED: Duration = Duration::from_millis(500);

/// Targets that are kept.
const MOST_TARGETS: u64 = 100_000;

/// A webhook, its workflow and its trigger.
pub(super) struct Target {
    /// What the database says.
    pub(super) row: WebhookTarget,
    /// The trigger of the deployed version; none when nothing is deployed or it lacks the node.
    pub(super) trigger: Option<Trigger>,
}

/// A trigger in use.
pub(super) struct Trigger {
    /// Its parameters.
    pub(super) settings: WebhookSettings,
    /// The check of its calls.
    pub(super) verifier: Verifier,
}

impl Target {
    /// The HTTP method that calls need: the deployed trigger's, else the one it was minted with.
    pub(super) fn method(&self) -> &str {
        self.trigger
            .as_ref()
            .map_or(&self.row.method, |trigger| &trigger.settings.method)
    }
}

/// Looks targets up, once in a while for each.
#[derive(Clone)]
pub struct WebhookTargets {
    store: Store,
    variables: Variables,
    apps: AppTargets,
    known: Lookups<String, Option<Arc<Target>>, Error>,
}

impl WebhookTargets {
    /// Looks targets up in this store, the variables that their secrets are made of, and what triggers of apps are called
    /// by.
    pub fn new(store: Store, variables: Variables, apps: AppTargets) -> Self {
        Self {
            store,
            variables,
            apps,
            known: Lookups::for_a_while(MOST_TARGETS, BELIEVED),
        }
    }

    /// What a webhook leads to, if there is such a webhook.
    pub(super) async fn find(&self, webhook_id: &str) -> Result<Option<Arc<Target>>> {
        self.known.find(webhook_id, || self.look_up(webhook_id)).await
    }

    /// What the URL of an app's trigger leads to, if that is of a deployed version.
    pub(super) async fn find_app(&self, id: &str) -> Result<Option<Arc<AppTarget>>> {
        self.apps.find(id).await
    }

    async fn look_up(&self, webhook_id: &str) -> Result<Option<Arc<Target>>> {
        let Some(row) = self.store.webhook_target(webhook_id).await? else {
            return Ok(None);
        };
        let trigger = self.trigger(&row).await?;
        Ok(Some(Arc::new(Target { row, trigger })))
    }

    async fn trigger(&self, row: &WebhookTarget) -> Result<Option<Trigger>> {
        let (Some(binding), Some(deployment)) = (&row.binding, &row.deployment) else {
            return Ok(None);
        };
        let bytes = self
            .store
            .graph(&row.organization.id, &deployment.content_hash)
            .await?;
        let graph = graph::parse_frozen(&bytes)?;
        let trigger = graph
            .node(binding.node_id)
            .filter(|node| node.kind.as_deref() == Some("webhook_trigger"));
        // What was deployed has passed the check of its parameters.
        let settings = trigger.and_then(|node| WebhookSettings::from_params(&node.params).ok());
        let Some(settings) = settings else { return Ok(None) };
        let variables = match Verifier::reads_variables(&settings.verify) {
            true => {
                // Anew: two times of belief would add up to more than a change may take to be everywhere.
                self.variables
                    .of_workflow_now(&row.organization.id, &binding.workflow_id)
                    .await?
            }
            false => Arc::<VariableSet>::default(),
        };
        let verifier = Verifier::of(&settings.verify, &variables);
        Ok(Some(Trigger { settings, verifier }))
    }

    /// Forgets what was looked up, so that a change made here, to a webhook or a variable, holds at once.
    pub fn forget(&self) {
        self.known.forget();
        self.apps.forget();
    }
}
