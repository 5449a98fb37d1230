//! Triggers that services call: the URL of each, and whether its service should call it.
//!
//! A registration is made with the version that its trigger is of, and stays until the service has been told that it is
//! over, also when the workflow is there no more. Times are the database's own. Absent on purpose: what is due to be told
//! (`registration_told`), telling it, and what is sealed in a registration.

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::deployment::{LIVE_TABLES, LiveWorkflow, live_columns};
use super::value::{Row, values, words};
use super::{Store, StoreError, Topic};

words! {
    /// What a service has been told of a registration, or is to be told next.
    RegistrationStatus {
        /// That it should call; this may have failed, and is tried again.
        Attaching = "attaching",
        /// It knows that it should call.
        Attached = "attached",
        /// That it should call no longer; this may have failed, and is tried again.
        Detaching = "detaching",
        /// It knows that it should not call, or never heard that it should.
        Detached = "detached",
    }
}

/// A trigger of a version to be deployed.
#[derive(Clone)]
pub struct NewRegistration {
    /// The trigger.
    pub node_id: i64,
    /// Tells what the service is asked to call for. With another question the trigger gets another URL, with the same it
    /// keeps the one that it has.
    pub question: Vec<u8>,
    /// JSON of all that is needed to tell the service.
    pub source: Vec<u8>,
    /// The id to give it (see [`crate::id::new_registration`]).
    pub id: String,
    /// What the service signs its calls with, sealed for this id.
    pub secret: Vec<u8>,
}

/// A registration.
#[derive(Clone, PartialEq, Eq)]
pub struct Registration {
    /// `hook_`: what its URL ends with.
    pub id: String,
    /// Whose it is.
    pub organization_id: String,
    /// The workflow, which may be there no more.
    pub workflow_id: String,
    /// The trigger.
    pub node_id: i64,
    /// JSON of all that is needed to tell the service.
    pub source: Vec<u8>,
    /// What the service signs its calls with, sealed.
    pub secret: Vec<u8>,
    /// JSON of what is to be remembered of the service's answer, sealed.
    pub kept: Option<Vec<u8>>,
    /// Whether the service should call.
    pub wanted: bool,
    /// What the service has been told, or is to be told next.
    pub status: RegistrationStatus,
}

/// A trigger that a call came for, and the workflow it starts.
#[derive(Clone, PartialEq)]
pub struct RegistrationTarget {
    /// The registration.
    pub registration: Registration,
    /// What it starts.
    pub workflow: LiveWorkflow,
}

/// No claim is longer, in milliseconds. What is to be done later than that is claimed by nobody.
pub const LONGEST_CLAIM_MS: i64 = 25_000;

/// The columns of [`Registration`].
pub(super) const COLUMNS: &str =
    "id, organization_id, workflow_id, node_id, source, secret, kept, wanted, status";

/// Writes the triggers of the version that is deployed now; those of the version before that are not among them are over.
pub(super) async fn write_registrations(
    session: &mut Session,
    (organization_id, workflow_id, workflow_name): (&str, &str, &str),
    active: bool,
    registrations: &[NewRegistration],
) -> Result<(), StoreError> {
    let sql = "SELECT id, node_id, question FROM registrations WHERE workflow_id = $1 AND bound";
    let rows = session.rows(sql, &values![workflow_id]).await?;
    let mut kept = Vec::new();
    for row in &rows {
        let (id, node_id): (String, i64) = (row.get("id")?, row.get("node_id")?);
        let question: Vec<u8> = row.get("question")?;
        let same = |new: &&NewRegistration| new.node_id == node_id && new.question == question;
        let Some(new) = registrations.iter().find(same) else {
            want(session, &id, false, false).await?;
            continue;
        };
        want(session, &id, active, true).await?;
        let sql = "UPDATE registrations SET source = $2, workflow_name = $3 WHERE id = $1";
        session
            .execute(sql, &values![&id, &new.source, workflow_name])
            .await?;
        kept.push(node_id);
    }
    let clock = session.dialect().clock_ms();
    let sql = format!(
        "INSERT INTO registrations (id, organization_id, workflow_id, workflow_name, node_id, question, source, secret,
             bound, wanted, status, revision, round, failures, wake_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, TRUE, $9, CASE WHEN $9 THEN 'attaching' ELSE 'detached' END, 1, 1, 0,
             CASE WHEN $9 THEN {clock} END)"
    );
    for new in registrations.iter().filter(|new| !kept.contains(&new.node_id)) {
        let row = values![
            &new.id,
            organization_id,
            workflow_id,
            workflow_name,
            new.node_id,
            &new.question,
            &new.source,
            &new.secret,
            active
        ];
        session.execute(AssertSqlSafe(sql.clone()), &row).await?;
    }
    Ok(())
}

/// Lets the triggers of a workflow follow a change of its being active.
pub(super) async fn follow(session: &mut Session, workflow_id: &str, active: bool) -> Result<(), StoreError> {
    let sql = "SELECT id FROM registrations WHERE workflow_id = $1 AND bound";
    for row in session.rows(sql, &values![workflow_id]).await? {
        let id: String = row.get("id")?;
        want(session, &id, active, true).await?;
    }
    Ok(())
}

/// Says whether a service should call, and whether the registration is of the deployed version. What has failed is tried
/// again at once; what is under way is left to whoever is at it.
async fn want(session: &mut Session, id: &str, wanted: bool, bound: bool) -> Result<(), StoreError> {
    let clock = session.dialect().clock_ms();
    let sql = format!(
        "UPDATE registrations SET wanted = $2, bound = $3, round = round + 1, failures = 0,
             status = CASE WHEN $2 AND status = 'detached' THEN 'attaching'
                 WHEN NOT $2 AND status = 'attached' THEN 'detaching' ELSE status END,
             wake_at = CASE WHEN $2 AND status = 'detached' OR NOT $2 AND status = 'attached'
                 OR wake_at > {clock} + {LONGEST_CLAIM_MS} THEN {clock} ELSE wake_at END
         WHERE id = $1"
    );
    session
        .execute(AssertSqlSafe(sql), &values![id, wanted, bound])
        .await?;
    if !bound {
        let sql = "DELETE FROM registrations WHERE id = $1 AND status = 'detached'";
        session.execute(sql, &values![id]).await?;
    }
    Ok(())
}

impl Registration {
    /// Reads a row that selects [`COLUMNS`].
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            workflow_id: row.get("workflow_id")?,
            node_id: row.get("node_id")?,
            source: row.get("source")?,
            secret: row.get("secret")?,
            kept: row.get("kept")?,
            wanted: row.get("wanted")?,
            status: row.word("status")?,
        })
    }
}

impl Store {
    /// Wakes whoever tells services. The change stands anyway: it is found by looking.
    pub(super) async fn announce_registrations(&self) {
        if let Err(error) = self.notify(Topic::Registrations, "").await {
            tracing::debug!(%error, "nobody was told of a changed trigger");
        }
    }

    /// The registration of a trigger of the deployed version, if there is one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn registration(
        &self,
        organization_id: &str,
        workflow_id: &str,
        node_id: i64,
    ) -> Result<Option<Registration>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM registrations
             WHERE organization_id = $1 AND workflow_id = $2 AND node_id = $3 AND bound"
        );
        let mut session = self.database.read().await?;
        let place = values![organization_id, workflow_id, node_id];
        let row = session.row(AssertSqlSafe(sql), &place).await?;
        row.as_ref().map(Registration::from_row).transpose()
    }

    /// What a call of this URL starts; nothing when its trigger is not of a deployed version.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn registration_target(&self, id: &str) -> Result<Option<RegistrationTarget>, StoreError> {
        let mut session = self.database.read().await?;
        let sql = format!("SELECT {COLUMNS} FROM registrations WHERE id = $1 AND bound");
        let Some(row) = session.row(AssertSqlSafe(sql), &values![id]).await? else {
            return Ok(None);
        };
        let registration = Registration::from_row(&row)?;
        let sql = format!(
            "SELECT {} FROM {LIVE_TABLES} WHERE w.id = $1 AND w.version_no IS NOT NULL",
            live_columns()
        );
        let place = values![&registration.workflow_id];
        let workflow = session.row(AssertSqlSafe(sql), &place).await?;
        let workflow = workflow.as_ref().map(LiveWorkflow::from_row).transpose()?;
        Ok(workflow.map(|workflow| RegistrationTarget {
            registration,
            workflow,
        }))
    }
}
