//! Webhooks: addresses that start a workflow. The id is the capability, so the hot path needs no organization.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::organization::ORGANIZATION_COLUMNS;
use super::page::{Position, like_pattern, name_key};
use super::plan::PLAN_COLUMNS;
use super::value::{Row, Value, values};
use super::{Deployment, Organization, Store, StoreError};
use crate::clock;

/// A webhook as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// `wh_`
    pub id: String,
    /// What it starts; null once that is deleted.
    pub binding: Option<Binding>,
    /// The workflow's name; null once that is deleted.
    pub workflow_name: Option<String>,
    /// The name of the trigger node.
    pub node_name: String,
    /// The HTTP method.
    pub method: String,
    /// Whether it starts anything.
    pub enabled: bool,
    /// Epoch milliseconds.
    pub created_at: i64,
}

/// The trigger node of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The workflow.
    pub workflow_id: String,
    /// Its trigger node.
    pub node_id: i64,
}

/// A webhook to be made, unless the node has one.
#[derive(Debug, Clone)]
pub struct NewWebhook<'a> {
    /// The workflow.
    pub workflow_id: &'a str,
    /// Its trigger node.
    pub node_id: i64,
    /// The node's name.
    pub node_name: &'a str,
    /// The HTTP method.
    pub method: &'a str,
    /// The id to give it (see [`crate::id::new_webhook`]).
    pub webhook_id: &'a str,
}

/// What came of minting a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mint {
    /// It is new.
    Minted(Webhook),
    /// The node has this one already; it may be disabled.
    Existing(Webhook),
}

/// All that a delivery needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    /// The HTTP method it takes.
    pub method: String,
    /// Whether it starts anything.
    pub enabled: bool,
    /// What it starts; null once that is deleted.
    pub binding: Option<Binding>,
    /// The workflow's name; null once that is deleted.
    pub workflow_name: Option<String>,
    /// The workflow's triggers fire.
    pub active: bool,
    /// What the workflow has deployed.
    pub deployment: Option<Deployment>,
    /// How long a run may take, in milliseconds.
    pub execution_timeout_ms: Option<i64>,
    /// Who pays.
    pub organization: Organization,
}

const SELECT: &str = "SELECT h.id AS id, h.workflow_id AS workflow_id, h.node_id AS node_id, w.name AS workflow_name, \
     h.node_name AS node_name, h.method AS method, h.enabled AS enabled, h.created_at AS created_at \
     FROM webhooks h LEFT JOIN workflows w ON w.id = h.workflow_id";

impl Binding {
    fn from_row(row: &Row) -> Result<Option<Self>, StoreError> {
        let workflow_id: Option<String> = row.get("workflow_id")?;
        let node_id: Option<i64> = row.get("node_id")?;
        Ok(workflow_id
            .zip(node_id)
            .map(|(workflow_id, node_id)| Self { workflow_id, node_id }))
    }
}

impl Webhook {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            binding: Binding::from_row(row)?,
            workflow_name: row.get("workflow_name")?,
            node_name: row.get("node_name")?,
            method: row.get("method")?,
            enabled: row.get("enabled")?,
            created_at: row.get("created_at")?,
        })
    }

    /// `<workflow> / <node>`
    #[must_use]
    pub fn name(&self) -> String {
        match &self.workflow_name {
            Some(workflow) => format!("{workflow} / {}", self.node_name),
            None => self.node_name.clone(),
        }
    }
}

impl Store {
    /// Gives the webhook of a trigger node, making it when there is none. Of several calls at once, one makes it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the workflow; when the database fails.
    pub async fn mint_webhook(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewWebhook<'_>,
    ) -> Result<Mint, StoreError> {
        let mut transaction = self.database.write().await?;
        let inserted = transaction
            .execute(
                "INSERT INTO webhooks (id, organization_id, workflow_id, node_id, node_name, node_name_key, method,
                     enabled, created_at)
                 SELECT $1, w.organization_id, w.id, $4, $5, $6, $7, TRUE, $8
                 FROM workflows w WHERE w.organization_id = $2 AND w.id = $3
                 ON CONFLICT (workflow_id, node_id) DO NOTHING",
                &values![
                    new.webhook_id,
                    organization_id,
                    new.workflow_id,
                    new.node_id,
                    new.node_name,
                    &name_key(new.node_name),
                    new.method,
                    clock::now_ms(),
                ],
            )
            .await?;
        let sql = format!("{SELECT} WHERE h.organization_id = $1 AND h.workflow_id = $2 AND h.node_id = $3");
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![organization_id, new.workflow_id, new.node_id],
            )
            .await?;
        let webhook = Webhook::from_row(&row.ok_or(StoreError::NotFound("workflow"))?)?;
        if inserted == 0 {
            transaction.rollback().await?;
            return Ok(Mint::Existing(webhook));
        }
        record_webhook(
            &mut transaction,
            actor,
            organization_id,
            &webhook,
            "webhook.created",
            &[],
        )
        .await?;
        transaction.commit().await?;
        Ok(Mint::Minted(webhook))
    }

    /// What a delivery to this id starts, in one query.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhook_target(&self, webhook_id: &str) -> Result<Option<WebhookTarget>, StoreError> {
        let sql = format!(
            "SELECT h.method AS method, h.enabled AS enabled, h.workflow_id AS workflow_id, h.node_id AS node_id,
                 COALESCE(w.active, FALSE) AS active, w.version_no AS version_no, w.content_hash AS content_hash,
                 w.deployed_at AS deployed_at, w.execution_timeout_ms AS execution_timeout_ms,
                 w.name AS workflow_name, {ORGANIZATION_COLUMNS}, {PLAN_COLUMNS}
             FROM webhooks h LEFT JOIN workflows w ON w.id = h.workflow_id
                 JOIN organizations o ON o.id = h.organization_id JOIN plans p ON p.id = o.plan_id
             WHERE h.id = $1"
        );
        let mut session = self.database.read().await?;
        let Some(row) = session.row(AssertSqlSafe(sql), &values![webhook_id]).await? else {
            return Ok(None);
        };
        Ok(Some(WebhookTarget {
            method: row.get("method")?,
            enabled: row.get("enabled")?,
            binding: Binding::from_row(&row)?,
            workflow_name: row.get("workflow_name")?,
            active: row.get("active")?,
            deployment: Deployment::from_row(&row)?,
            execution_timeout_ms: row.get("execution_timeout_ms")?,
            organization: Organization::from_row(&row)?,
        }))
    }

    /// One webhook.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn webhook(&self, organization_id: &str, webhook_id: &str) -> Result<Webhook, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, webhook_id).await
    }

    /// An organization's webhooks, newest first, from the one after `after`. `query` is searched for in the name
    /// (`<workflow> / <node>`) and in the URL, which is `url_prefix` and the id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_webhooks(
        &self,
        organization_id: &str,
        query: Option<&str>,
        url_prefix: &str,
        after: Option<&Position<i64>>,
        limit: i64,
    ) -> Result<Vec<Webhook>, StoreError> {
        let pattern = query.map(like_pattern);
        let url_prefix = url_prefix.to_lowercase();
        let mut sql = format!("{SELECT} WHERE h.organization_id = $1");
        let mut parameters: Vec<Value<'_>> = values![organization_id, limit].to_vec();
        if let Some(pattern) = &pattern {
            parameters.extend(values![pattern, &url_prefix]);
            sql.push_str(
                " AND (COALESCE(w.name_key || ' / ', '') || h.node_name_key LIKE $3 ESCAPE '\\'
                       OR $4 || h.id LIKE $3 ESCAPE '\\')",
            );
        }
        if let Some(after) = after {
            parameters.extend(values![after.value, &after.id]);
            let place = parameters.len();
            sql.push_str(&format!(" AND (h.created_at, h.id) < (${}, ${place})", place - 1));
        }
        sql.push_str(" ORDER BY h.created_at DESC, h.id DESC LIMIT $2");
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Webhook::from_row).collect()
    }

    /// Switches a webhook on or off.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn set_webhook_enabled(
        &self,
        actor: &Actor,
        organization_id: &str,
        webhook_id: &str,
        enabled: bool,
    ) -> Result<Webhook, StoreError> {
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "UPDATE webhooks SET enabled = $3 WHERE organization_id = $1 AND id = $2",
                &values![organization_id, webhook_id, enabled],
            )
            .await?;
        let webhook = load(&mut transaction, organization_id, webhook_id).await?;
        record_webhook(
            &mut transaction,
            actor,
            organization_id,
            &webhook,
            "webhook.updated",
            &["enabled"],
        )
        .await?;
        transaction.commit().await?;
        Ok(webhook)
    }

    /// Follows renamed trigger nodes and changed methods: (node, name, method) of a workflow's trigger nodes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sync_webhooks(
        &self,
        organization_id: &str,
        workflow_id: &str,
        nodes: &[(i64, &str, &str)],
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        for (node_id, name, method) in nodes {
            transaction
                .execute(
                    "UPDATE webhooks SET node_name = $4, node_name_key = $5, method = $6
                     WHERE organization_id = $1 AND workflow_id = $2 AND node_id = $3",
                    &values![
                        organization_id,
                        workflow_id,
                        *node_id,
                        *name,
                        &name_key(name),
                        *method
                    ],
                )
                .await?;
        }
        transaction.commit().await
    }

    /// Deletes a webhook; with `only_unbound`, one that is bound to a workflow stays and `false` is the answer.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_webhook(
        &self,
        actor: &Actor,
        organization_id: &str,
        webhook_id: &str,
        only_unbound: bool,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let webhook = load(&mut transaction, organization_id, webhook_id).await?;
        if only_unbound && webhook.binding.is_some() {
            transaction.rollback().await?;
            return Ok(false);
        }
        let deleted = transaction
            .execute("DELETE FROM webhooks WHERE id = $1", &values![webhook_id])
            .await?;
        if deleted == 0 {
            // Somebody else was faster.
            transaction.rollback().await?;
            return Err(StoreError::NotFound("webhook"));
        }
        record_webhook(
            &mut transaction,
            actor,
            organization_id,
            &webhook,
            "webhook.deleted",
            &[],
        )
        .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

async fn load(session: &mut Session, organization_id: &str, webhook_id: &str) -> Result<Webhook, StoreError> {
    let sql = format!("{SELECT} WHERE h.organization_id = $1 AND h.id = $2");
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, webhook_id])
        .await?;
    Webhook::from_row(&row.ok_or(StoreError::NotFound("webhook"))?)
}

async fn record_webhook(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    webhook: &Webhook,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    // The id is a capability, so the trail names the webhook by its label and keeps the id as its target only.
    let entry = Entry {
        organization_id,
        action,
        label: &webhook.name(),
        target_id: &webhook.id,
        fields,
    };
    record(session, actor, entry).await
}
