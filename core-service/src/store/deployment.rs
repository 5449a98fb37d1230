//! Deploying workflows: what is frozen of them, and which of them run by themselves.

use super::activity::Actor;
use super::database::Session;
use super::graph::insert_graph;
use super::value::{Row, values};
use super::workflow::{Workflow, load_for_update, record_workflow, write};
use super::{Graph, Store, StoreError};
use crate::clock;

/// What is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// From 1.
    pub version_no: i64,
    /// The frozen graph.
    pub content_hash: String,
    /// Epoch milliseconds.
    pub deployed_at: i64,
}

/// A deployment to be made.
#[derive(Debug, Clone)]
pub struct NewDeployment<'a> {
    /// The `updated_at` of the draft that was frozen.
    pub expected_updated_at: i64,
    /// The frozen graph.
    pub graph: &'a Graph,
}

/// What came of a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deploy {
    /// This is deployed now; the same version as before when nothing had changed.
    Deployed(Deployment),
    /// Somebody else has written since the draft was frozen.
    Modified {
        /// What it is now.
        updated_at: i64,
    },
}

/// A workflow that runs by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledWorkflow {
    /// `wf_`
    pub id: String,
    /// Its organization.
    pub organization_id: String,
    /// When it runs, as the contract's JSON.
    pub recurrence: Vec<u8>,
    /// What runs.
    pub deployment: Deployment,
    /// Changes when the schedule may have changed.
    pub updated_at: i64,
}

impl Deployment {
    pub(super) fn from_row(row: &Row) -> Result<Option<Self>, StoreError> {
        let version_no: Option<i64> = row.get("version_no")?;
        version_no
            .map(|version_no| {
                Ok(Self {
                    version_no,
                    content_hash: row.get("content_hash")?,
                    deployed_at: row.get("deployed_at")?,
                })
            })
            .transpose()
    }
}

impl ScheduledWorkflow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let deployment = Deployment::from_row(row)?;
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            recurrence: row.get("recurrence")?,
            deployment: deployment.ok_or_else(|| StoreError::Corrupt("no deployed version".to_owned()))?,
            updated_at: row.get("updated_at")?,
        })
    }
}

impl Store {
    /// Publishes a frozen draft as the next version; the deployed one stays when it has the same content.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn deploy_workflow(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
        new: &NewDeployment<'_>,
    ) -> Result<Deploy, StoreError> {
        let mut transaction = self.database.write().await?;
        let workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        // First, so that a repeated deploy finds what it made although that write moved `updated_at`.
        let unchanged = |deployed: &&Deployment| deployed.content_hash == new.graph.content_hash;
        if let Some(deployed) = workflow.deployment.as_ref().filter(unchanged) {
            transaction.rollback().await?;
            return Ok(Deploy::Deployed(deployed.clone()));
        }
        if workflow.updated_at != new.expected_updated_at {
            transaction.rollback().await?;
            return Ok(Deploy::Modified {
                updated_at: workflow.updated_at,
            });
        }
        insert_graph(&mut transaction, organization_id, new.graph).await?;
        let deployment = insert_version(&mut transaction, &workflow, new.graph).await?;
        let set = "version_no = $4, content_hash = $5, deployed_at = $6, deployed_draft_hash = draft_hash";
        let more = values![
            deployment.version_no,
            &deployment.content_hash,
            deployment.deployed_at
        ];
        write(&mut transaction, &workflow, set, &more).await?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.deployed", &[]).await?;
        transaction.commit().await?;
        Ok(Deploy::Deployed(deployment))
    }

    /// Takes the deployed version out of service; its versions stay. Does nothing when none is deployed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn undeploy_workflow(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        if workflow.deployment.is_none() {
            return transaction.rollback().await;
        }
        let set = "version_no = NULL, content_hash = NULL, deployed_at = NULL, deployed_draft_hash = NULL";
        write(&mut transaction, &workflow, set, &[]).await?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.undeployed", &[]).await?;
        transaction.commit().await
    }

    /// Workflows of all organizations that are active, deployed and run by themselves, by id from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn scheduled_workflows(
        &self,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<ScheduledWorkflow>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, organization_id, recurrence, version_no, content_hash, deployed_at, updated_at
                 FROM workflows WHERE recurrence IS NOT NULL AND active AND version_no IS NOT NULL AND id > $1
                 ORDER BY id LIMIT $2",
                &values![after.unwrap_or_default(), limit],
            )
            .await?;
        rows.iter().map(ScheduledWorkflow::from_row).collect()
    }
}

async fn insert_version(
    session: &mut Session,
    workflow: &Workflow,
    graph: &Graph,
) -> Result<Deployment, StoreError> {
    let row = session
        .row(
            "INSERT INTO versions (workflow_id, version_no, organization_id, content_hash, deployed_at)
             SELECT $1, COALESCE(MAX(version_no), 0) + 1, $2, $3, $4 FROM versions WHERE workflow_id = $1
             RETURNING version_no, content_hash, deployed_at",
            &values![
                &workflow.id,
                &workflow.organization_id,
                &graph.content_hash,
                clock::now_ms()
            ],
        )
        .await?;
    let deployment = row.as_ref().map(Deployment::from_row).transpose()?.flatten();
    deployment.ok_or_else(|| StoreError::Corrupt("a new version has no number".to_owned()))
}
