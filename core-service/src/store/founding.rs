//! The founding of an organization: itself, its owner, its default team and the owner's first key, all or nothing.

use super::activity::{Actor, Entry, record};
use super::api_key::insert_api_key;
use super::database::Session;
use super::member::insert_member;
use super::organization::insert_organization;
use super::team::insert_team;
use super::value::values;
use super::{NewApiKey, Role, Store, StoreError};
use crate::id;

/// The setting that tells that the first organization was founded.
const FIRST_START: &str = "first-start";

/// An organization to be founded.
#[derive(Debug, Clone)]
pub struct Founding<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its plan, whose credits it gets.
    pub plan_id: &'a str,
    /// The owner's email.
    pub owner_email: &'a str,
    /// The owner's first key, if there is to be one.
    pub key: Option<FoundingKey<'a>>,
}

/// The first key of an organization.
#[derive(Debug, Clone)]
pub struct FoundingKey<'a> {
    /// Its keyed hash.
    pub hash: &'a [u8],
    /// What it may do.
    pub scopes: &'a [&'a str],
}

/// An organization that was founded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Founded {
    /// `org_`
    pub organization_id: String,
    /// The owner.
    pub owner_user_id: String,
    /// The default team.
    pub team_id: String,
}

impl Store {
    /// Founds an organization.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such plan; when the database fails.
    pub async fn found_organization(
        &self,
        actor: &Actor,
        founding: &Founding<'_>,
    ) -> Result<Founded, StoreError> {
        let mut transaction = self.database.write().await?;
        let founded = found(&mut transaction, actor, founding).await?;
        transaction.commit().await?;
        Ok(founded)
    }

    /// Founds the first organization of a database; nothing when there is or was one. Of several nodes that start at
    /// once, one founds it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn found_first_organization(
        &self,
        founding: &Founding<'_>,
    ) -> Result<Option<Founded>, StoreError> {
        let mut transaction = self.database.write().await?;
        let first = transaction
            .execute(
                "INSERT INTO settings (key, value)
                 SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM organizations)
                 ON CONFLICT (key) DO NOTHING",
                &values![FIRST_START, b"done".as_slice()],
            )
            .await?;
        if first == 0 {
            transaction.rollback().await?;
            return Ok(None);
        }
        let founded = found(&mut transaction, &Actor::default(), founding).await?;
        transaction.commit().await?;
        Ok(Some(founded))
    }
}

async fn found(session: &mut Session, actor: &Actor, founding: &Founding<'_>) -> Result<Founded, StoreError> {
    let organization_id = id::new(id::Kind::Organization);
    insert_organization(session, &organization_id, founding.name, founding.plan_id).await?;
    let team_id = insert_team(session, &organization_id, "Default", true).await?;
    let owner_user_id =
        insert_member(session, &organization_id, founding.owner_email, None, Role::Owner).await?;
    let created = ("organization.created", founding.name, organization_id.clone());
    let mut entries = vec![created];
    let key_id = match &founding.key {
        Some(key) => Some(insert_first_key(session, &organization_id, &owner_user_id, key).await?),
        None => None,
    };
    entries.extend(
        key_id
            .as_ref()
            .map(|key_id| ("api_key.created", key_id.as_str(), key_id.clone())),
    );
    for (action, label, target_id) in &entries {
        let entry = Entry {
            organization_id: &organization_id,
            action,
            label,
            target_id,
            fields: &[],
        };
        record(session, actor, entry).await?;
    }
    Ok(Founded {
        organization_id,
        owner_user_id,
        team_id,
    })
}

async fn insert_first_key(
    session: &mut Session,
    organization_id: &str,
    user_id: &str,
    key: &FoundingKey<'_>,
) -> Result<String, StoreError> {
    let new = NewApiKey {
        organization_id,
        user_id,
        hash: key.hash,
        scopes: key.scopes,
        expires_at: None,
    };
    insert_api_key(session, &new).await
}
