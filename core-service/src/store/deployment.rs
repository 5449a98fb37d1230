//! Deploying workflows: what is frozen of them, and what starts of it need.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Troubled};
use super::database::Session;
use super::ending::{ErrorTrigger, write_error_triggers};
use super::graph::insert_graph;
use super::organization::{ORGANIZATION_COLUMNS, Organization};
use super::plan::PLAN_COLUMNS;
use super::poll::{NewPoll, write_polls};
use super::registration::{NewRegistration, write_registrations};
use super::schedule::{self, Plan};
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
#[derive(Clone)]
pub struct NewDeployment<'a> {
    /// The `updated_at` of the draft that was frozen.
    pub expected_updated_at: i64,
    /// The frozen graph.
    pub graph: &'a Graph,
    /// The error triggers in it.
    pub error_triggers: &'a [ErrorTrigger],
    /// The triggers in it that poll.
    pub polls: &'a [NewPoll],
    /// The triggers in it that services call.
    pub registrations: &'a [NewRegistration],
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

/// A deployed workflow and who pays for its runs: all that is needed to start one without a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveWorkflow {
    /// `wf_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its triggers fire.
    pub active: bool,
    /// What runs.
    pub deployment: Deployment,
    /// How long a run may take, in milliseconds.
    pub execution_timeout_ms: Option<i64>,
    /// Who pays.
    pub organization: Organization,
}

/// Workflows with what their starts need, as tables `w`, `o` and `p` of a statement.
pub(super) const LIVE_TABLES: &str =
    "workflows w JOIN organizations o ON o.id = w.organization_id JOIN plans p ON p.id = o.plan_id";

/// The columns of [`LiveWorkflow`] in a statement over [`LIVE_TABLES`].
pub(super) fn live_columns() -> String {
    format!(
        "w.id AS workflow_id, w.name AS workflow_name, w.active AS active, w.version_no AS version_no,
         w.content_hash AS content_hash, w.deployed_at AS deployed_at,
         w.execution_timeout_ms AS execution_timeout_ms, {ORGANIZATION_COLUMNS}, {PLAN_COLUMNS}"
    )
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

impl LiveWorkflow {
    pub(super) fn troubled(&self) -> Troubled<'_> {
        Troubled {
            organization_id: &self.organization.id,
            id: &self.id,
            name: &self.name,
        }
    }

    /// Reads a row that selects the columns of [`live_columns`].
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        let deployment = Deployment::from_row(row)?;
        Ok(Self {
            id: row.get("workflow_id")?,
            name: row.get("workflow_name")?,
            active: row.get("active")?,
            deployment: deployment.ok_or_else(|| StoreError::Corrupt("no deployed version".to_owned()))?,
            execution_timeout_ms: row.get("execution_timeout_ms")?,
            organization: Organization::from_row(row)?,
        })
    }
}

impl Store {
    /// A workflow with what its starts need; nothing when it is not deployed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn live_workflow(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Option<LiveWorkflow>, StoreError> {
        let sql = format!(
            "SELECT {} FROM {LIVE_TABLES} WHERE w.organization_id = $1 AND w.id = $2",
            live_columns()
        );
        let mut session = self.database.read().await?;
        let row = session
            .row(AssertSqlSafe(sql), &values![organization_id, workflow_id])
            .await?
            .ok_or(StoreError::NotFound("workflow"))?;
        match Deployment::from_row(&row)? {
            Some(_) => LiveWorkflow::from_row(&row).map(Some),
            None => Ok(None),
        }
    }

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
        let mut workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
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
        write_error_triggers(&mut transaction, organization_id, workflow_id, new.error_triggers).await?;
        write_polls(&mut transaction, workflow_id, workflow.active, new.polls).await?;
        let place = (organization_id, workflow_id, workflow.name.as_str());
        write_registrations(&mut transaction, place, workflow.active, new.registrations).await?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.deployed", &[]).await?;
        let before = Plan::of(&workflow);
        workflow.deployment = Some(deployment.clone());
        let rescheduled = schedule::follow(&mut transaction, &workflow, &before).await?;
        transaction.commit().await?;
        self.announce_schedules(rescheduled).await;
        if !new.polls.is_empty() {
            self.announce_polls().await;
        }
        self.announce_registrations().await;
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
        let mut workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        if workflow.deployment.is_none() {
            return transaction.rollback().await;
        }
        let set = "version_no = NULL, content_hash = NULL, deployed_at = NULL, deployed_draft_hash = NULL";
        write(&mut transaction, &workflow, set, &[]).await?;
        write_error_triggers(&mut transaction, organization_id, workflow_id, &[]).await?;
        write_polls(&mut transaction, workflow_id, false, &[]).await?;
        let place = (organization_id, workflow_id, workflow.name.as_str());
        write_registrations(&mut transaction, place, false, &[]).await?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.undeployed", &[]).await?;
        let before = Plan::of(&workflow);
        workflow.deployment = None;
        let rescheduled = schedule::follow(&mut transaction, &workflow, &before).await?;
        transaction.commit().await?;
        self.announce_schedules(rescheduled).await;
        self.announce_registrations().await;
        Ok(())
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
