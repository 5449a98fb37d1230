//! API keys, found by their keyed hash. The key itself is never here.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::organization::ORGANIZATION_COLUMNS;
use super::plan::PLAN_COLUMNS;
use super::value::{Row, Value, values};
use super::{Organization, Role, Store, StoreError};
use crate::{clock, id};

/// A key's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// `key_`
    pub id: String,
    /// The organization it opens.
    pub organization_id: String,
    /// The member it acts for.
    pub user_id: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub expires_at: Option<i64>,
    /// Epoch milliseconds.
    pub revoked_at: Option<i64>,
}

/// All that a request's key tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The key; it may be expired or revoked.
    pub key: ApiKey,
    /// What its member may do.
    pub role: Role,
    /// Its organization and plan.
    pub organization: Organization,
}

/// A key to be made.
#[derive(Debug, Clone)]
pub struct NewApiKey<'a> {
    /// The organization it opens.
    pub organization_id: &'a str,
    /// The member it acts for.
    pub user_id: &'a str,
    /// The keyed hash of the key.
    pub hash: &'a [u8],
    /// What it may do.
    pub scopes: &'a [&'a str],
    /// Epoch milliseconds.
    pub expires_at: Option<i64>,
}

impl ApiKey {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let scopes: String = row.get("scopes")?;
        Ok(Self {
            id: row.get("key_id")?,
            organization_id: row.get("organization_id")?,
            user_id: row.get("user_id")?,
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            created_at: row.get("key_created_at")?,
            expires_at: row.get("expires_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }
}

/// Stores a key for a member and gives its id.
pub(super) async fn insert_api_key(session: &mut Session, new: &NewApiKey<'_>) -> Result<String, StoreError> {
    let key_id = id::new(id::Kind::ApiKey);
    let inserted = session
        .execute(
            "INSERT INTO api_keys (id, organization_id, user_id, hash, scopes, created_at, expires_at)
             SELECT $1, u.organization_id, u.id, $4, $5, $6, $7
             FROM users u WHERE u.organization_id = $2 AND u.id = $3",
            &values![
                &key_id,
                new.organization_id,
                new.user_id,
                new.hash,
                &new.scopes.join(" "),
                clock::now_ms(),
                new.expires_at
            ],
        )
        .await?;
    if inserted == 0 {
        Err(StoreError::NotFound("member"))
    } else {
        Ok(key_id)
    }
}

impl Store {
    /// Stores a key for a member and gives its id.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the organization has no such member; when the database fails.
    pub async fn create_api_key(&self, actor: &Actor, new: &NewApiKey<'_>) -> Result<String, StoreError> {
        let mut transaction = self.database.write().await?;
        let key_id = insert_api_key(&mut transaction, new).await?;
        let entry = Entry {
            organization_id: new.organization_id,
            action: "api_key.created",
            label: &key_id,
            target_id: &key_id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await?;
        Ok(key_id)
    }

    /// The key with this hash, with its member's role, its organization and plan, in one query.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_by_hash(&self, hash: &[u8]) -> Result<Option<Authentication>, StoreError> {
        self.authentication("k.hash", Value::from(hash)).await
    }

    /// The key with this id, as [`Store::find_by_hash`] gives it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_by_key_id(&self, key_id: &str) -> Result<Option<Authentication>, StoreError> {
        self.authentication("k.id", Value::from(key_id)).await
    }

    async fn authentication(
        &self,
        column: &'static str,
        value: Value<'_>,
    ) -> Result<Option<Authentication>, StoreError> {
        let sql = format!(
            "SELECT k.id AS key_id, k.user_id AS user_id, k.scopes AS scopes, k.created_at AS key_created_at,
                 k.expires_at AS expires_at, k.revoked_at AS revoked_at, u.role AS role,
                 {ORGANIZATION_COLUMNS}, {PLAN_COLUMNS}
             FROM api_keys k JOIN users u ON u.id = k.user_id
                 JOIN organizations o ON o.id = k.organization_id JOIN plans p ON p.id = o.plan_id
             WHERE {column} = $1"
        );
        let mut session = self.database.read().await?;
        let Some(row) = session.row(AssertSqlSafe(sql), &[value]).await? else {
            return Ok(None);
        };
        Ok(Some(Authentication {
            key: ApiKey::from_row(&row)?,
            role: row.word("role")?,
            organization: Organization::from_row(&row)?,
        }))
    }

    /// Revokes a key, of whatever organization; revoking it again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn revoke_api_key(&self, actor: &Actor, key_id: &str) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let row = transaction
            .row(
                "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING organization_id",
                &values![key_id, clock::now_ms()],
            )
            .await?;
        let organization_id: String = row
            .ok_or(StoreError::NotFound("API key"))?
            .get("organization_id")?;
        let entry = Entry {
            organization_id: &organization_id,
            action: "api_key.revoked",
            label: key_id,
            target_id: key_id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await
    }
}
