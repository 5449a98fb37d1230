//! Payloads: node outputs too large for the journal, apart from it and found by their content. Equal ones of an
//! organization are stored once; which runs refer to one is kept, so that it goes with the last of them.

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::{BatchStatement, Dialect, Kind};
use super::value::{Value, values};
use super::{Store, StoreError};

/// A node output kept outside the journal.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The run whose journal refers to it.
    pub run_id: String,
    /// The organization it belongs to.
    pub organization_id: String,
    /// Its SHA-256, in hexadecimal.
    pub content_hash: String,
    /// The output.
    pub payload: Vec<u8>,
}

/// The advisory lock between those who use payloads and who deletes unused ones ("payloads" as a number). Without it a
/// payload could be found there and deleted before its new use can be seen.
const LOCK: i64 = 0x7061_796c_6f61_6473;

const INSERT: BatchStatement = BatchStatement {
    columns: &[
        ("organization_id", Kind::Text),
        ("content_hash", Kind::Text),
        ("payload", Kind::Bytes),
    ],
    tail: "INSERT INTO payloads (organization_id, content_hash, payload, uses_known) SELECT v.*, TRUE FROM v WHERE TRUE
           ON CONFLICT (organization_id, content_hash) DO NOTHING",
};

const INSERT_USES: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("organization_id", Kind::Text),
        ("content_hash", Kind::Text),
    ],
    tail: "INSERT INTO payload_uses (run_id, organization_id, content_hash) SELECT v.* FROM v WHERE TRUE
           ON CONFLICT (run_id, content_hash) DO NOTHING",
};

const DELETE_UNUSED: BatchStatement = BatchStatement {
    columns: &[("organization_id", Kind::Text), ("content_hash", Kind::Text)],
    tail: "DELETE FROM payloads WHERE uses_known
               AND (organization_id, content_hash) IN (SELECT v.organization_id, v.content_hash FROM v)
               AND NOT EXISTS (SELECT 1 FROM payload_uses u WHERE u.organization_id = payloads.organization_id
                                   AND u.content_hash = payloads.content_hash)",
};

/// Stores what segments of the same transaction refer to.
pub(super) async fn insert_payloads(session: &mut Session, payloads: &[&Payload]) -> Result<(), StoreError> {
    if payloads.is_empty() {
        return Ok(());
    }
    if session.dialect() == Dialect::Postgres {
        session
            .execute("SELECT pg_advisory_xact_lock_shared($1)", &values![LOCK])
            .await?;
    }
    let contents: Vec<Value<'_>> = payloads
        .iter()
        .flat_map(|one| values![&one.organization_id, &one.content_hash, &one.payload])
        .collect();
    session.batch(&INSERT, &contents).await?;
    let uses: Vec<Value<'_>> = payloads
        .iter()
        .flat_map(|one| values![&one.run_id, &one.organization_id, &one.content_hash])
        .collect();
    session.batch(&INSERT_USES, &uses).await?;
    Ok(())
}

/// Deletes up to `limit` uses by these runs, and the payloads that nobody uses any more. Gives the number of uses.
pub(super) async fn delete_uses(
    session: &mut Session,
    run_ids: &[&str],
    limit: i64,
) -> Result<u64, StoreError> {
    let one_of = session.dialect().one_of(1);
    let found = format!("SELECT run_id, content_hash FROM payload_uses WHERE run_id {one_of} LIMIT $2");
    let parameters = [Value::Texts(run_ids), Value::from(limit)];
    if session
        .row(AssertSqlSafe(found.clone()), &parameters)
        .await?
        .is_none()
    {
        return Ok(0);
    }
    if session.dialect() == Dialect::Postgres {
        session
            .execute("SELECT pg_advisory_xact_lock($1)", &values![LOCK])
            .await?;
    }
    let sql = format!(
        "DELETE FROM payload_uses WHERE (run_id, content_hash) IN ({found})
         RETURNING organization_id, content_hash"
    );
    let mut hashes: Vec<(String, String)> = Vec::new();
    for row in session.rows(AssertSqlSafe(sql), &parameters).await? {
        hashes.push((row.get("organization_id")?, row.get("content_hash")?));
    }
    let unused: Vec<Value<'_>> = hashes
        .iter()
        .flat_map(|(organization_id, content_hash)| values![organization_id, content_hash])
        .collect();
    session.batch(&DELETE_UNUSED, &unused).await?;
    Ok(hashes.len() as u64)
}

impl Store {
    /// A large node output, by its content hash.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn load_payload(
        &self,
        organization_id: &str,
        content_hash: &str,
    ) -> Result<Vec<u8>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT payload FROM payloads WHERE organization_id = $1 AND content_hash = $2",
                &values![organization_id, content_hash],
            )
            .await?;
        row.ok_or(StoreError::NotFound("payload"))?.get("payload")
    }
}
