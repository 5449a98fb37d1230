//! Webhooks: minted for a trigger node, listed, disabled, deleted. What calls them is in `ingress`.

use contract::scope::{WebhookWrite, WorkflowRead, WorkflowWrite};
use contract::v1::{self, ErrorReason};
use engine::graph::Node;
use engine::kinds::WebhookSettings;
use wire::cursor::Pages;

use super::{Services, given, graph, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::id;
use crate::registrations::{HOOKS, webhook_of};
use crate::store::{Mint, NewWebhook, Position, Webhook};

const DEFAULT_PAGE: i64 = 50;

pub(super) struct Webhooks {
    services: Services,
}

contract::webhook_service_methods!(service, Webhooks);

impl Webhooks {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn mint_webhook(
        &self,
        caller: Authorized<WebhookWrite>,
        request: v1::MintWebhookRequest,
    ) -> Result<v1::MintWebhookResponse> {
        let store = &self.services.store;
        let node_id: i64 = request
            .node_id
            .parse()
            .map_err(|_| Error::invalid("nodeId", "must be the number of a node, as text"))?;
        let workflow = store
            .workflow(caller.organization_id(), &request.workflow_id)
            .await?;
        let draft = graph::parse(&workflow.draft.graph)?;
        let node = draft.node(node_id).ok_or_else(|| Error::not_found("node"))?;
        if node.kind.as_deref() != Some("webhook_trigger") {
            return self.of_app(caller.organization_id(), &workflow.id, node).await;
        }
        let new = NewWebhook {
            workflow_id: &workflow.id,
            node_id,
            node_name: &node.name,
            method: &method(node),
            webhook_id: &id::new_webhook().map_err(Error::internal)?,
        };
        let (webhook, already_bound) = match store
            .mint_webhook(&caller.actor(), caller.organization_id(), &new)
            .await?
        {
            Mint::Minted(webhook) => (webhook, false),
            Mint::Existing(webhook) => (webhook, true),
        };
        if !webhook.enabled {
            return Err(Error::new(
                ErrorReason::WebhookDisabled,
                format!(
                    "The node is bound to the webhook {}, which is disabled; enable or delete it.",
                    webhook.id
                ),
            ));
        }
        let data = v1::Webhook {
            url: self.url(&webhook.id),
            webhook_id: webhook.id,
            already_bound,
        };
        Ok(v1::MintWebhookResponse { data: Some(data) })
    }

    /// The URL that a service calls for a trigger of its app, which the deploy has made.
    async fn of_app(
        &self,
        organization_id: &str,
        workflow_id: &str,
        node: &Node,
    ) -> Result<v1::MintWebhookResponse> {
        let Services {
            store, registrations, ..
        } = &self.services;
        let apps = self.services.apps(organization_id).await?;
        if webhook_of(node, &apps).is_none() {
            let message = "must name a webhook_trigger node, or a trigger of an app that its service calls";
            return Err(Error::invalid("nodeId", message));
        }
        let registration = store.registration(organization_id, workflow_id, node.id).await?;
        let registration = registration.ok_or_else(|| {
            let message = "names a trigger of an app, which has a URL once its workflow is deployed";
            Error::invalid("nodeId", message)
        })?;
        let data = v1::Webhook {
            url: registrations.url(&registration.id),
            webhook_id: registration.id,
            already_bound: true,
        };
        Ok(v1::MintWebhookResponse { data: Some(data) })
    }

    async fn list_webhooks(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ListWebhooksRequest,
    ) -> Result<v1::ListWebhooksResponse> {
        let pages = Pages::of(&["webhooks", &request.q]);
        let after = pages
            .position::<(i64, String)>(&request.cursor)?
            .map(|(value, id)| Position { value, id });
        let size = page_size(request.limit, DEFAULT_PAGE);
        let mut rows = self
            .services
            .store
            .list_webhooks(
                caller.organization_id(),
                given(&request.q),
                &self.url(""),
                after.as_ref(),
                size + 1,
            )
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| (last.created_at, last.id.clone()));
        let data = rows.into_iter().map(|row| self.summary(row)).collect();
        Ok(v1::ListWebhooksResponse { data, next_cursor })
    }

    async fn update_webhook(
        &self,
        caller: Authorized<WebhookWrite>,
        request: v1::UpdateWebhookRequest,
    ) -> Result<v1::UpdateWebhookResponse> {
        let store = &self.services.store;
        // Validation has seen that it is there.
        let enabled = request.enabled.unwrap_or_default();
        let webhook = store
            .set_webhook_enabled(&caller.actor(), caller.organization_id(), &request.id, enabled)
            .await?;
        self.services.targets.forget();
        Ok(v1::UpdateWebhookResponse {
            data: Some(self.summary(webhook)),
        })
    }

    async fn delete_webhook(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::DeleteWebhookRequest,
    ) -> Result<v1::DeleteWebhookResponse> {
        let store = &self.services.store;
        let only_unbound = request.force != "1";
        let deleted = store
            .delete_webhook(
                &caller.actor(),
                caller.organization_id(),
                &request.id,
                only_unbound,
            )
            .await?;
        self.services.targets.forget();
        match deleted {
            true => Ok(v1::DeleteWebhookResponse {}),
            false => Err(Error::new(
                ErrorReason::WebhookInUse,
                "The webhook is bound to a workflow; delete it with force=1.",
            )),
        }
    }

    fn url(&self, webhook_id: &str) -> String {
        format!("{}{HOOKS}{webhook_id}", self.services.base_url)
    }

    fn summary(&self, webhook: Webhook) -> v1::WebhookSummary {
        v1::WebhookSummary {
            name: webhook.name(),
            url: self.url(&webhook.id),
            id: webhook.id,
            method: webhook.method,
            enabled: webhook.enabled,
            node_id: webhook
                .binding
                .as_ref()
                .map(|binding| binding.node_id.to_string()),
            workflow_id: webhook.binding.map(|binding| binding.workflow_id),
            created_at: webhook.created_at,
        }
    }
}

/// The HTTP method of a webhook trigger node; a draft's may be unusable yet.
pub(super) fn method(node: &Node) -> String {
    WebhookSettings::from_params(&node.params)
        .unwrap_or_default()
        .method
}
