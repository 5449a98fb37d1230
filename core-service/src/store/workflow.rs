//! Workflows: their draft, what is deployed of it, and how both change.
//!
//! `updated_at` rises strictly with every write, so it serves as the version that optimistic callers compare.

use std::collections::HashSet;

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::{Session, Transaction};
use super::folder::require_folder;
use super::page::name_key;
use super::poll;
use super::registration;
use super::schedule::{self, Plan};
use super::team::resolve_team;
use super::value::{Row, Value, values};
use super::{Deployment, Store, StoreError};
use crate::{clock, id};

/// The editable graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// As the engine wrote it.
    pub graph: Vec<u8>,
    /// Tells whether two drafts are the same.
    pub hash: String,
    /// How many nodes it has.
    pub node_count: i64,
}

/// A workflow with its draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// `wf_`
    pub id: String,
    /// Its organization.
    pub organization_id: String,
    /// Its team.
    pub team_id: String,
    /// The folder it is in.
    pub folder_id: Option<String>,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its triggers fire, when it is deployed too.
    pub active: bool,
    /// The editable graph.
    pub draft: Draft,
    /// When it runs by itself, as the contract's JSON.
    pub recurrence: Option<Vec<u8>>,
    /// How long a run may take, in milliseconds.
    pub execution_timeout_ms: Option<i64>,
    /// What is deployed, if anything.
    pub deployment: Option<Deployment>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds, rising strictly with every write.
    pub updated_at: i64,
}

/// A workflow to be made.
#[derive(Debug, Clone)]
pub struct NewWorkflow<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub description: Option<&'a str>,
    /// The organization's default team when none.
    pub team_id: Option<&'a str>,
    /// The folder it is in.
    pub folder_id: Option<&'a str>,
    /// The empty draft.
    pub draft: &'a Draft,
}

/// What to change; `None` stays, `Some(None)` clears.
#[derive(Debug, Clone, Default)]
pub struct WorkflowChange {
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<Option<String>>,
    /// Whether its triggers fire.
    pub active: Option<bool>,
    /// The folder it is in.
    pub folder_id: Option<Option<String>>,
    /// When it runs by itself.
    pub recurrence: Option<Option<Vec<u8>>>,
    /// How long a run may take, in milliseconds.
    pub execution_timeout_ms: Option<Option<i64>>,
}

/// What came of saving a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Save {
    /// It is saved.
    Saved {
        /// The new value.
        updated_at: i64,
    },
    /// Somebody else has written since.
    Modified {
        /// What it is now.
        updated_at: i64,
    },
}

/// What came of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    /// It is gone.
    Deleted,
    /// It is active or deployed.
    InUse,
}

const COLUMNS: &str = "id, organization_id, team_id, folder_id, name, description, active, draft, draft_hash, \
     node_count, recurrence, execution_timeout_ms, version_no, content_hash, deployed_at, created_at, updated_at";

/// The next `updated_at`, from the time in parameter `$3`.
const NEXT_UPDATE: &str = "CASE WHEN updated_at >= $3 THEN updated_at + 1 ELSE $3 END";

impl Workflow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            team_id: row.get("team_id")?,
            folder_id: row.get("folder_id")?,
            name: row.get("name")?,
            description: row.get("description")?,
            active: row.get("active")?,
            draft: Draft {
                graph: row.get("draft")?,
                hash: row.get("draft_hash")?,
                node_count: row.get("node_count")?,
            },
            recurrence: row.get("recurrence")?,
            execution_timeout_ms: row.get("execution_timeout_ms")?,
            deployment: Deployment::from_row(row)?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

/// Name and description as searches see them. The separator keeps a match from spanning both.
pub(super) fn search_text(name: &str, description: Option<&str>) -> String {
    format!(
        "{}\u{1f}{}",
        name.to_lowercase(),
        description.unwrap_or_default().to_lowercase()
    )
}

impl Store {
    /// Makes a workflow with an empty draft.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team or the folder; when the database fails.
    pub async fn create_workflow(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewWorkflow<'_>,
    ) -> Result<Workflow, StoreError> {
        let mut transaction = self.database.write().await?;
        require_folder(&mut transaction, organization_id, new.folder_id).await?;
        let team_id = resolve_team(&mut transaction, organization_id, new.team_id).await?;
        let workflow_id = id::new(id::Kind::Workflow);
        let sql = format!(
            "INSERT INTO workflows (id, organization_id, team_id, folder_id, name, name_key, search_text, description,
                 active, draft, draft_hash, node_count, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, FALSE, $9, $10, $11, $12, $12) RETURNING {COLUMNS}"
        );
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    &workflow_id,
                    organization_id,
                    &team_id,
                    new.folder_id,
                    new.name,
                    &name_key(new.name),
                    &search_text(new.name, new.description),
                    new.description,
                    &new.draft.graph,
                    &new.draft.hash,
                    new.draft.node_count,
                    clock::now_ms(),
                ],
            )
            .await?;
        let workflow = Workflow::from_row(&row.ok_or(StoreError::NotFound("workflow"))?)?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.created", &[]).await?;
        transaction.commit().await?;
        Ok(workflow)
    }

    /// One workflow.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn workflow(&self, organization_id: &str, workflow_id: &str) -> Result<Workflow, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, workflow_id, "").await
    }

    /// Which of these are workflows of the organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn known_workflows(
        &self,
        organization_id: &str,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let mut session = self.database.read().await?;
        let one_of = session.dialect().one_of(2);
        let sql = format!("SELECT id FROM workflows WHERE organization_id = $1 AND id {one_of}");
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, Value::Texts(ids)])
            .await?;
        rows.iter().map(|row| row.get("id")).collect()
    }

    /// Changes what a PATCH may change. Gives the workflow as it is then.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the workflow or the folder; when the database fails.
    pub async fn update_workflow(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
        change: &WorkflowChange,
    ) -> Result<Workflow, StoreError> {
        let mut transaction = self.database.write().await?;
        let mut workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        if let Some(folder_id) = &change.folder_id {
            require_folder(&mut transaction, organization_id, folder_id.as_deref()).await?;
        }
        let (before, was_active) = (Plan::of(&workflow), workflow.active);
        let fields = change.apply(&mut workflow);
        let sql = format!(
            "UPDATE workflows SET updated_at = {NEXT_UPDATE}, name = $4, name_key = $5, search_text = $6,
                 description = $7, active = $8, folder_id = $9, recurrence = $10, execution_timeout_ms = $11
             WHERE organization_id = $1 AND id = $2 RETURNING updated_at"
        );
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    organization_id,
                    workflow_id,
                    clock::now_ms(),
                    &workflow.name,
                    &name_key(&workflow.name),
                    &search_text(&workflow.name, workflow.description.as_deref()),
                    &workflow.description,
                    workflow.active,
                    &workflow.folder_id,
                    &workflow.recurrence,
                    workflow.execution_timeout_ms,
                ],
            )
            .await?;
        workflow.updated_at = row.ok_or(StoreError::NotFound("workflow"))?.get("updated_at")?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.updated", &fields).await?;
        let rescheduled = schedule::follow(&mut transaction, &workflow, &before).await?;
        let switched = workflow.active != was_active;
        if switched {
            poll::follow(&mut transaction, workflow_id, workflow.active).await?;
            registration::follow(&mut transaction, workflow_id, workflow.active).await?;
        }
        transaction.commit().await?;
        self.announce_schedules(rescheduled).await;
        if switched {
            self.announce_polls().await;
            self.announce_registrations().await;
        }
        Ok(workflow)
    }

    /// Replaces the draft, if the workflow is still as the caller last saw it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn save_draft(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
        expected_updated_at: i64,
        draft: &Draft,
    ) -> Result<Save, StoreError> {
        let mut transaction = self.database.write().await?;
        let workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        if workflow.updated_at != expected_updated_at {
            transaction.rollback().await?;
            return Ok(Save::Modified {
                updated_at: workflow.updated_at,
            });
        }
        let set = "draft = $4, draft_hash = $5, node_count = $6";
        let more = values![&draft.graph, &draft.hash, draft.node_count];
        let updated_at = write(&mut transaction, &workflow, set, &more).await?;
        record_workflow(
            &mut transaction,
            actor,
            &workflow,
            "workflow.updated",
            &["nodes", "edges"],
        )
        .await?;
        transaction.commit().await?;
        Ok(Save::Saved { updated_at })
    }

    /// Deletes a workflow that is neither active nor deployed. Its runs stay.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_workflow(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Delete, StoreError> {
        let mut transaction = self.database.write().await?;
        let workflow = load_for_update(&mut transaction, organization_id, workflow_id).await?;
        if workflow.active || workflow.deployment.is_some() {
            transaction.rollback().await?;
            return Ok(Delete::InUse);
        }
        transaction
            .execute("DELETE FROM workflows WHERE id = $1", &values![workflow_id])
            .await?;
        record_workflow(&mut transaction, actor, &workflow, "workflow.deleted", &[]).await?;
        transaction.commit().await?;
        Ok(Delete::Deleted)
    }
}

impl WorkflowChange {
    /// Applies the change and names the fields it sets.
    fn apply(&self, workflow: &mut Workflow) -> Vec<&'static str> {
        let mut fields = Vec::new();
        let mut set = |name: &'static str, is_set: bool| is_set.then(|| fields.push(name));
        set("name", assign(&mut workflow.name, self.name.as_ref()));
        set(
            "description",
            assign(&mut workflow.description, self.description.as_ref()),
        );
        set("active", assign(&mut workflow.active, self.active.as_ref()));
        set(
            "folderId",
            assign(&mut workflow.folder_id, self.folder_id.as_ref()),
        );
        set(
            "recurrence",
            assign(&mut workflow.recurrence, self.recurrence.as_ref()),
        );
        set(
            "executionTimeoutMs",
            assign(
                &mut workflow.execution_timeout_ms,
                self.execution_timeout_ms.as_ref(),
            ),
        );
        fields
    }
}

pub(super) fn assign<T: Clone>(field: &mut T, value: Option<&T>) -> bool {
    if let Some(value) = value {
        field.clone_from(value);
    }
    value.is_some()
}

async fn load(
    session: &mut Session,
    organization_id: &str,
    workflow_id: &str,
    lock: &'static str,
) -> Result<Workflow, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM workflows WHERE organization_id = $1 AND id = $2{lock}");
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, workflow_id])
        .await?;
    Workflow::from_row(&row.ok_or(StoreError::NotFound("workflow"))?)
}

pub(super) async fn load_for_update(
    transaction: &mut Transaction,
    organization_id: &str,
    workflow_id: &str,
) -> Result<Workflow, StoreError> {
    let lock = transaction.dialect().for_update();
    load(transaction, organization_id, workflow_id, lock).await
}

/// Sets columns (parameters from `$4` on) of a locked workflow; gives its new `updated_at`.
pub(super) async fn write(
    session: &mut Session,
    workflow: &Workflow,
    set: &'static str,
    more: &[Value<'_>],
) -> Result<i64, StoreError> {
    let sql = format!(
        "UPDATE workflows SET updated_at = {NEXT_UPDATE}, {set}
         WHERE organization_id = $1 AND id = $2 RETURNING updated_at"
    );
    let mut parameters = values![&workflow.organization_id, &workflow.id, clock::now_ms()].to_vec();
    parameters.extend_from_slice(more);
    let row = session.row(AssertSqlSafe(sql), &parameters).await?;
    row.ok_or(StoreError::NotFound("workflow"))?.get("updated_at")
}

pub(super) async fn record_workflow(
    session: &mut Session,
    actor: &Actor,
    workflow: &Workflow,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id: &workflow.organization_id,
        action,
        label: &workflow.name,
        target_id: &workflow.id,
        fields,
    };
    record(session, actor, entry).await
}
