//! The trail of what was done. Each entry is written in the transaction of the change it tells of.

use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::page::Position;
use super::run_batch::RunActivity;
use super::value::{Row, Value, values};
use super::{Store, StoreError};
use crate::{clock, id};

/// Who does something, and through what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// JSON: `fields`, `requestId`, `apiKeyId`, `ip`; `nodeId` and `reason` of what the service could not do.
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
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) organization_id: &'a str,
    /// `<noun>.<verb>`
    pub(super) action: &'a str,
    pub(super) label: &'a str,
    pub(super) target_id: &'a str,
    /// The names of the fields that changed.
    pub(super) fields: &'a [&'a str],
}

/// Something that the service could not do for a workflow by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trouble<'a> {
    /// `workflow.<what came of it>`
    pub action: &'a str,
    /// The node that it concerns, if it is not the whole workflow.
    pub node_id: Option<i64>,
    /// Why, as anybody of the organization may read it.
    pub reason: &'a str,
}

/// The workflow for which it could not.
#[derive(Clone, Copy)]
pub(super) struct Troubled<'a> {
    pub(super) organization_id: &'a str,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
}

/// Characters of a reason that are kept.
const LONGEST_REASON: usize = 1_000;

/// Writes an entry as part of the transaction.
pub(super) async fn record(session: &mut Session, actor: &Actor, entry: Entry<'_>) -> Result<(), StoreError> {
    record_all(session, &[(entry, metadata(actor, &entry), actor)]).await
}

/// Writes what the service could not do for a workflow as part of the transaction.
pub(super) async fn record_trouble(
    session: &mut Session,
    workflow: Troubled<'_>,
    trouble: Trouble<'_>,
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id: workflow.organization_id,
        action: trouble.action,
        label: workflow.name,
        target_id: workflow.id,
        fields: &[],
    };
    let service = Actor::default();
    let mut metadata = metadata(&service, &entry);
    metadata["nodeId"] = trouble.node_id.into();
    metadata["reason"] = trouble
        .reason
        .chars()
        .take(LONGEST_REASON)
        .collect::<String>()
        .into();
    record_all(session, &[(entry, metadata, &service)]).await
}

/// Writes the entry of something that concerns several organizations into the feed of each: of those whose ids the
/// statement gives. The entry's own organization does not count.
pub(super) async fn record_for(
    session: &mut Session,
    actor: &Actor,
    (concerned, parameters): (&'static str, &[Value<'_>]),
    entry: Entry<'_>,
) -> Result<(), StoreError> {
    let rows = session.rows(concerned, parameters).await?;
    let organization_ids = rows
        .iter()
        .map(|row| row.get("id"))
        .collect::<Result<Vec<String>, _>>()?;
    let entries: Vec<Written<'_>> = organization_ids
        .iter()
        .map(|organization_id| {
            let entry = Entry {
                organization_id,
                ..entry
            };
            (entry, metadata(actor, &entry), actor)
        })
        .collect();
    record_all(session, &entries).await
}

/// Writes what a batch of runs brings along. Most bring nothing.
pub(super) async fn record_of_runs<'a>(
    session: &mut Session,
    runs: impl Iterator<Item = (&'a String, &'a Vec<RunActivity>)>,
) -> Result<(), StoreError> {
    let entry = |run_id: &'a String, told: &'a RunActivity| {
        let entry = Entry {
            organization_id: &told.organization_id,
            action: told.action,
            label: run_id,
            target_id: run_id,
            fields: &[],
        };
        (entry, metadata(&told.actor, &entry), &told.actor)
    };
    let entries: Vec<Written<'_>> = runs
        .flat_map(|(run_id, told)| told.iter().map(move |told| entry(run_id, told)))
        .collect();
    record_all(session, &entries).await
}

const INSERT_ENTRIES: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("ts", Kind::Integer),
        ("organization_id", Kind::Text),
        ("action", Kind::Text),
        ("label", Kind::Text),
        ("target_type", Kind::Text),
        ("target_id", Kind::Text),
        ("actor_user_id", Kind::Text),
        ("metadata", Kind::Bytes),
    ],
    tail:
        "INSERT INTO activity (id, ts, organization_id, action, label, target_type, target_id, actor_user_id,
               metadata)
           SELECT v.* FROM v",
};

/// An entry, its metadata, and whose it is.
type Written<'a> = (Entry<'a>, serde_json::Value, &'a Actor);

async fn record_all(session: &mut Session, entries: &[Written<'_>]) -> Result<(), StoreError> {
    let made: Vec<(String, Vec<u8>)> = entries
        .iter()
        .map(|(_, metadata, _)| (id::new(id::Kind::Event), metadata.to_string().into_bytes()))
        .collect();
    let now = clock::now_ms();
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(entries.len() * INSERT_ENTRIES.columns.len());
    for ((entry, _, actor), (id, metadata)) in entries.iter().zip(&made) {
        rows.extend(values![
            id,
            now,
            entry.organization_id,
            entry.action,
            entry.label,
            entry.action.split('.').next().unwrap_or_default(),
            entry.target_id,
            &actor.user_id,
            metadata,
        ]);
    }
    session.batch(&INSERT_ENTRIES, &rows).await?;
    Ok(())
}

fn metadata(actor: &Actor, entry: &Entry<'_>) -> serde_json::Value {
    serde_json::json!({
        "fields": entry.fields,
        "requestId": actor.request_id,
        "apiKeyId": actor.api_key_id,
        "ip": actor.ip,
    })
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
