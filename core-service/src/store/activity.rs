//! The trail of what was done. Each entry is written in the transaction of the change it tells of.

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::page::Position;
use super::value::{Row, Value, values};
use super::{Store, StoreError};
use crate::{clock, id};

/// Who does something, and through what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The user; null for the operator and for the service itself.
    pub user_id: Option<String>,
    /// The key the request came with.
    pub api_key_id: Option<String>,
    /// The request.
    pub request_id: Option<String>,
    /// Where it came from.
    pub ip: Option<String>,
}

/// One entry of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// `evt_`
    pub id: String,
    /// Epoch milliseconds.
    pub ts: i64,
    /// `<noun>.<verb>`
    pub action: String,
    /// The name of the thing at that time.
    pub label: String,
    /// The noun.
    pub target_type: String,
    /// The thing.
    pub target_id: String,
    /// The user; null for the operator.
    pub actor_user_id: Option<String>,
    /// JSON: `fields`, `requestId`, `apiKeyId`, `ip`.
    pub metadata: Vec<u8>,
}

/// Which entries to list; empty means all.
#[derive(Debug, Clone, Default)]
pub struct ActivityFilter {
    /// The noun.
    pub target_type: Option<String>,
    /// The thing.
    pub target_id: Option<String>,
    /// Who did it.
    pub actor_user_id: Option<String>,
    /// `<noun>.<verb>`
    pub action: Option<String>,
    /// From this instant on, epoch milliseconds.
    pub since: Option<i64>,
    /// Before this instant, epoch milliseconds.
    pub until: Option<i64>,
}

/// What an entry tells, before it is written.
pub(super) struct Entry<'a> {
    pub(super) organization_id: &'a str,
    /// `<noun>.<verb>`
    pub(super) action: &'a str,
    pub(super) label: &'a str,
    pub(super) target_id: &'a str,
    /// The names of the fields that changed.
    pub(super) fields: &'a [&'a str],
}

/// Writes an entry as part of the transaction.
pub(super) async fn record(session: &mut Session, actor: &Actor, entry: Entry<'_>) -> Result<(), StoreError> {
    let target_type = entry.action.split('.').next().unwrap_or_default();
    let metadata = serde_json::json!({
        "fields": entry.fields,
        "requestId": actor.request_id,
        "apiKeyId": actor.api_key_id,
        "ip": actor.ip,
    });
    session
        .execute(
            "INSERT INTO activity (id, ts, organization_id, action, label, target_type, target_id, actor_user_id,
                 metadata)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &values![
                &id::new(id::Kind::Event),
                clock::now_ms(),
                entry.organization_id,
                entry.action,
                entry.label,
                target_type,
                entry.target_id,
                &actor.user_id,
                &metadata.to_string().into_bytes(),
            ],
        )
        .await?;
    Ok(())
}

impl Activity {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            ts: row.get("ts")?,
            action: row.get("action")?,
            label: row.get("label")?,
            target_type: row.get("target_type")?,
            target_id: row.get("target_id")?,
            actor_user_id: row.get("actor_user_id")?,
            metadata: row.get("metadata")?,
        })
    }
}

impl Store {
    /// Records something that changes no row of its own, such as a refused sign-in.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record_activity(
        &self,
        actor: &Actor,
        organization_id: &str,
        action: &str,
        label: &str,
        target_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let entry = Entry {
            organization_id,
            action,
            label,
            target_id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await
    }

    /// An organization's trail, newest first, from the entry after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_activity(
        &self,
        organization_id: &str,
        filter: &ActivityFilter,
        after: Option<&Position<i64>>,
        limit: i64,
    ) -> Result<Vec<Activity>, StoreError> {
        let mut sql = "SELECT id, ts, action, label, target_type, target_id, actor_user_id, metadata
                       FROM activity WHERE organization_id = $1"
            .to_owned();
        let mut parameters = values![organization_id].to_vec();
        let conditions = [
            ("target_type =", filter.target_type.as_deref().map(Value::from)),
            ("target_id =", filter.target_id.as_deref().map(Value::from)),
            (
                "actor_user_id =",
                filter.actor_user_id.as_deref().map(Value::from),
            ),
            ("action =", filter.action.as_deref().map(Value::from)),
            ("ts >=", filter.since.map(Value::from)),
            ("ts <", filter.until.map(Value::from)),
        ];
        for (condition, value) in conditions {
            if let Some(value) = value {
                parameters.push(value);
                sql.push_str(&format!(" AND {condition} ${}", parameters.len()));
            }
        }
        if let Some(after) = after {
            parameters.extend(values![after.value, &after.id]);
            let place = parameters.len();
            sql.push_str(&format!(" AND (ts, id) < (${}, ${place})", place - 1));
        }
        parameters.push(limit.into());
        sql.push_str(&format!(" ORDER BY ts DESC, id DESC LIMIT ${}", parameters.len()));
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Activity::from_row).collect()
    }
}
