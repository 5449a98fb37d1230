//! Variables: named values of an organization or a team. A secret's value is sealed by whoever calls; here it is bytes.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::effect::{self, Claim, Effect};
use super::team::require_team;
use super::value::{Row, Value, values};
use super::{Store, StoreError};
use crate::clock;

/// A variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// `var_`
    pub id: String,
    /// Its name, unique within its team or, without one, its organization.
    pub name: String,
    /// The team; null for the organization's.
    pub team_id: Option<String>,
    /// Whether the value is sealed.
    pub is_secret: bool,
    /// Text in UTF-8; sealed when it is secret.
    pub value: Vec<u8>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

/// A variable to be made.
#[derive(Clone, Copy)]
pub struct NewVariable<'a> {
    /// `var_`, chosen by the caller, who seals the value for it.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The team; none for the organization's.
    pub team_id: Option<&'a str>,
    /// Whether the value is sealed.
    pub is_secret: bool,
    /// Text in UTF-8; sealed when it is secret.
    pub value: &'a [u8],
}

/// How a variable is written.
#[derive(Clone, Copy)]
pub enum VariableWrite<'a> {
    /// It is made.
    Create(&'a NewVariable<'a>),
    /// The value of one that is there.
    Set {
        /// `var_`
        id: &'a str,
        /// Text in UTF-8; sealed when it is secret.
        value: &'a [u8],
    },
}

const COLUMNS: &str = "id, name, team_id, is_secret, value, created_at, updated_at";

impl Variable {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            team_id: row.get("team_id")?,
            is_secret: row.get("is_secret")?,
            value: row.get("value")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

impl Store {
    /// An organization's variables, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_variables(
        &self,
        organization_id: &str,
        limit: i64,
    ) -> Result<Vec<Variable>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM variables WHERE organization_id = $1 AND deleted_at IS NULL
             ORDER BY id DESC LIMIT $2"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, limit])
            .await?;
        rows.iter().map(Variable::from_row).collect()
    }

    /// One variable.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn variable(&self, organization_id: &str, variable_id: &str) -> Result<Variable, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM variables WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL"
        );
        let mut session = self.database.read().await?;
        let row = session
            .row(AssertSqlSafe(sql), &values![organization_id, variable_id])
            .await?;
        Variable::from_row(&row.ok_or(StoreError::NotFound("variable"))?)
    }

    /// The variable that a team, or without one the organization, knows by this name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team; when the database fails.
    pub async fn find_variable(
        &self,
        organization_id: &str,
        team_id: Option<&str>,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        let mut session = self.database.read().await?;
        require_team(&mut session, organization_id, team_id).await?;
        let sql = format!(
            "SELECT {COLUMNS} FROM variables WHERE organization_id = $1 AND COALESCE(team_id, '') = $2 AND name = $3
                 AND deleted_at IS NULL"
        );
        let row = session
            .row(
                AssertSqlSafe(sql),
                &values![organization_id, team_id.unwrap_or_default(), name],
            )
            .await?;
        row.as_ref().map(Variable::from_row).transpose()
    }

    /// The variables that a workflow's runs see: its team's and the organization's. A workflow that is gone sees the
    /// organization's.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn workflow_variables(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Vec<Variable>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM variables WHERE organization_id = $1 AND deleted_at IS NULL
                 AND (team_id IS NULL
                      OR team_id = (SELECT w.team_id FROM workflows w WHERE w.organization_id = $1 AND w.id = $2))"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, workflow_id])
            .await?;
        rows.iter().map(Variable::from_row).collect()
    }

    /// Makes a variable; nothing when the name is taken. Gives when it was made.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team; when the database fails.
    pub async fn create_variable(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewVariable<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let mut transaction = self.database.write().await?;
        let created = insert(&mut transaction, actor, organization_id, new).await?;
        match created {
            Some(_) => transaction.commit().await?,
            None => transaction.rollback().await?,
        }
        Ok(created)
    }

    /// Sets a variable's value, or without one only when it was set. Gives that time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn set_variable(
        &self,
        actor: &Actor,
        organization_id: &str,
        variable_id: &str,
        value: Option<&[u8]>,
    ) -> Result<i64, StoreError> {
        let mut transaction = self.database.write().await?;
        let updated = update(&mut transaction, actor, organization_id, variable_id, value).await?;
        transaction.commit().await?;
        updated.ok_or(StoreError::NotFound("variable"))
    }

    /// As [`Store::create_variable`] or [`Store::set_variable`], under an effect: when that is there already, nothing is
    /// written and the first time given. Nothing when the name has been taken or the variable deleted meanwhile.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team; when the database fails.
    pub async fn write_variable_once(
        &self,
        actor: &Actor,
        organization_id: &str,
        effect: &Effect<'_>,
        write: VariableWrite<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let mut transaction = self.database.write().await?;
        let session = &mut transaction;
        if let Claim::Again(result) = effect::claim(session, effect).await? {
            transaction.rollback().await?;
            let written_at = serde_json::from_slice(&result);
            return written_at.map_err(|error| StoreError::Corrupt(format!("an effect: {error}")));
        }
        let written = match write {
            VariableWrite::Create(new) => insert(session, actor, organization_id, new).await?,
            VariableWrite::Set { id, value } => {
                update(session, actor, organization_id, id, Some(value)).await?
            }
        };
        let Some(written_at) = written else {
            transaction.rollback().await?;
            return Ok(None);
        };
        effect::record(session, effect, written_at.to_string().as_bytes()).await?;
        transaction.commit().await?;
        Ok(Some(written_at))
    }

    /// The variable of this name that a workflow's runs see, and the team that a new one would belong to: that of the
    /// workflow, unless it is the default one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn variable_seen_by(
        &self,
        organization_id: &str,
        workflow_id: &str,
        name: &str,
    ) -> Result<(Option<Variable>, Option<String>), StoreError> {
        let mut session = self.database.read().await?;
        let team = session
            .row(
                "SELECT t.id AS id, t.is_default AS is_default FROM workflows w JOIN teams t ON t.id = w.team_id
                 WHERE w.organization_id = $1 AND w.id = $2",
                &values![organization_id, workflow_id],
            )
            .await?;
        let team: Option<(String, bool)> = team
            .map(|row| Ok::<_, StoreError>((row.get("id")?, row.get("is_default")?)))
            .transpose()?;
        let team_id = team.as_ref().map(|(id, _)| id.as_str()).unwrap_or_default();
        let sql = format!(
            "SELECT {COLUMNS} FROM variables WHERE organization_id = $1 AND COALESCE(team_id, '') IN ($2, '')
                 AND name = $3 AND deleted_at IS NULL
             ORDER BY COALESCE(team_id, '') DESC LIMIT 1"
        );
        let row = session
            .row(AssertSqlSafe(sql), &values![organization_id, team_id, name])
            .await?;
        let seen = row.as_ref().map(Variable::from_row).transpose()?;
        Ok((seen, team.filter(|(_, is_default)| !is_default).map(|(id, _)| id)))
    }

    /// Deletes a variable: it is found no more and its name is free, while its row stays, without its value.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_variable(
        &self,
        actor: &Actor,
        organization_id: &str,
        variable_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let row = transaction
            .row(
                "UPDATE variables SET deleted_at = $3, value = $4
                 WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING name",
                &values![organization_id, variable_id, clock::now_ms(), b"".as_slice()],
            )
            .await?;
        let name: String = row.ok_or(StoreError::NotFound("variable"))?.get("name")?;
        let what = ("variable.deleted", name.as_str(), variable_id);
        record_variable(&mut transaction, actor, organization_id, what, &[]).await?;
        transaction.commit().await
    }
}

async fn insert(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    new: &NewVariable<'_>,
) -> Result<Option<i64>, StoreError> {
    require_team(session, organization_id, new.team_id).await?;
    let now = clock::now_ms();
    let inserted = session
        .execute(
            "INSERT INTO variables (id, organization_id, team_id, name, is_secret, value, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT DO NOTHING",
            &values![
                new.id,
                organization_id,
                new.team_id,
                new.name,
                new.is_secret,
                new.value,
                now
            ],
        )
        .await?;
    if inserted == 0 {
        return Ok(None);
    }
    let what = ("variable.created", new.name, new.id);
    record_variable(session, actor, organization_id, what, &[]).await?;
    Ok(Some(now))
}

async fn update(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    variable_id: &str,
    value: Option<&[u8]>,
) -> Result<Option<i64>, StoreError> {
    let row = session
        .row(
            "UPDATE variables SET value = COALESCE($3, value),
                 updated_at = CASE WHEN updated_at > $4 THEN updated_at ELSE $4 END
             WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING name, updated_at",
            &values![organization_id, variable_id, Value::Bytes(value), clock::now_ms()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let name: String = row.get("name")?;
    let fields: &[&str] = if value.is_some() { &["value"] } else { &[] };
    let what = ("variable.updated", name.as_str(), variable_id);
    record_variable(session, actor, organization_id, what, fields).await?;
    row.get("updated_at").map(Some)
}

async fn record_variable(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    (action, name, variable_id): (&str, &str, &str),
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: name,
        target_id: variable_id,
        fields,
    };
    record(session, actor, entry).await
}
