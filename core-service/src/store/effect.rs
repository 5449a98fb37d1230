//! Effects: what executions of nodes have written here, and what that gave.
//!
//! A node is executed at least once: a process may die, or be taken for dead, between a write of a node and the journal
//! that tells of it. So the write and its effect are one transaction, and an execution that finds its effect there gives
//! the first result and writes nothing. Kept for as long as the run goes on, and for a day.

use super::database::Session;
use super::value::{Value, values};
use super::{Store, StoreError, Swept};
use crate::clock;

/// The right of an execution to write, which it has once.
#[derive(Debug, Clone)]
pub struct Effect<'a> {
    /// The idempotency key of the execution.
    pub key: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// When the node began in its run, epoch milliseconds. What follows a crash or a failed attempt has the same; a node
    /// that somebody lets run again has another.
    pub started_at: i64,
    /// Tells whether a node that runs again asks for the same; then it is the same effect. Absent when the request must
    /// not be kept, not even as a hash.
    pub request_hash: Option<[u8; 32]>,
}

/// What came of claiming an effect.
pub(super) enum Claim {
    /// Nothing was written yet: write, then [`record`].
    First,
    /// It was written before, and this came of it.
    Again(Vec<u8>),
}

/// Claims an effect for this transaction. Waits for one that is about to write the same.
pub(super) async fn claim(session: &mut Session, effect: &Effect<'_>) -> Result<Claim, StoreError> {
    let parameters = values![
        effect.key,
        effect.run_id,
        effect.started_at,
        b"".as_slice(),
        clock::now_ms()
    ];
    let inserted = session
        .execute(
            "INSERT INTO effects (key, run_id, started_at, result, created_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            &parameters,
        )
        .await?;
    if inserted > 0 {
        return Ok(Claim::First);
    }
    let sql = match session.dialect().for_update() {
        "" => "SELECT started_at, request_hash, result FROM effects WHERE key = $1",
        _ => "SELECT started_at, request_hash, result FROM effects WHERE key = $1 FOR UPDATE",
    };
    let Some(row) = session.row(sql, &values![effect.key]).await? else {
        return Ok(Claim::First);
    };
    let started_at: i64 = row.get("started_at")?;
    let request_hash: Option<Vec<u8>> = row.get("request_hash")?;
    let asks_for_the_same = effect
        .request_hash
        .is_some_and(|hash| request_hash.is_some_and(|known| known == hash));
    if started_at == effect.started_at || asks_for_the_same {
        Ok(Claim::Again(row.get("result")?))
    } else {
        Ok(Claim::First)
    }
}

/// Records what came of a claimed effect, as part of the transaction that wrote it.
pub(super) async fn record(
    session: &mut Session,
    effect: &Effect<'_>,
    result: &[u8],
) -> Result<(), StoreError> {
    let request_hash = effect.request_hash.as_ref().map(<[u8; 32]>::as_slice);
    session
        .execute(
            "UPDATE effects SET started_at = $2, request_hash = $3, result = $4, created_at = $5 WHERE key = $1",
            &values![
                effect.key,
                effect.started_at,
                Value::Bytes(request_hash),
                result,
                clock::now_ms()
            ],
        )
        .await
        .map(drop)
}

impl Store {
    /// Forgets effects recorded before `before` (epoch milliseconds) whose runs are over, at most `limit` of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_effects(&self, before: i64, limit: i64) -> Result<Swept, StoreError> {
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let deleted = sweep
            .transaction
            .execute(
                "DELETE FROM effects WHERE key IN (
                     SELECT e.key FROM effects e WHERE e.created_at < $1
                         AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = e.run_id AND r.finished_at IS NULL)
                     ORDER BY e.created_at LIMIT $2)",
                &values![before, limit],
            )
            .await?;
        sweep.done(deleted).await
    }
}
