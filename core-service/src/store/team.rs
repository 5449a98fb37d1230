//! Teams of an organization; each organization has exactly one default team.

use super::database::Session;
use super::page::name_key;
use super::value::{Row, values};
use super::{Store, StoreError};
use crate::{clock, id};

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// `team_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// What belongs to no other team belongs to this one.
    pub is_default: bool,
    /// Epoch milliseconds.
    pub created_at: i64,
}

impl Team {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            is_default: row.get("is_default")?,
            created_at: row.get("created_at")?,
        })
    }
}

impl Store {
    /// An organization's teams by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_teams(&self, organization_id: &str) -> Result<Vec<Team>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, name, is_default, created_at FROM teams WHERE organization_id = $1 ORDER BY name_key, id",
                &values![organization_id],
            )
            .await?;
        rows.iter().map(Team::from_row).collect()
    }
}

/// The team with this id, or the default one when no id is given.
pub(super) async fn resolve_team(
    session: &mut Session,
    organization_id: &str,
    team_id: Option<&str>,
) -> Result<String, StoreError> {
    let row = match team_id {
        Some(team_id) => {
            let sql = "SELECT id FROM teams WHERE organization_id = $1 AND id = $2";
            session.row(sql, &values![organization_id, team_id]).await?
        }
        None => {
            let sql = "SELECT id FROM teams WHERE organization_id = $1 AND is_default";
            session.row(sql, &values![organization_id]).await?
        }
    };
    row.ok_or(StoreError::NotFound("team"))?.get("id")
}

/// Checks that a team, if one is named, is the organization's.
pub(super) async fn require_team(
    session: &mut Session,
    organization_id: &str,
    team_id: Option<&str>,
) -> Result<(), StoreError> {
    match team_id {
        Some(_) => resolve_team(session, organization_id, team_id).await.map(drop),
        None => Ok(()),
    }
}

pub(super) async fn insert_team(
    session: &mut Session,
    organization_id: &str,
    name: &str,
    is_default: bool,
) -> Result<String, StoreError> {
    let team_id = id::new(id::Kind::Team);
    session
        .execute(
            "INSERT INTO teams (id, organization_id, name, name_key, is_default, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
            &values![
                &team_id,
                organization_id,
                name,
                &name_key(name),
                is_default,
                clock::now_ms()
            ],
        )
        .await?;
    Ok(team_id)
}
