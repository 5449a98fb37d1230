//! Idempotency keys: the first start with a key makes the run, later ones find it.

use std::collections::HashMap;

use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::run_batch::{CreateOutcome, NewRun};
use super::value::{Row, Value, values};
use super::{Store, StoreError, Swept};
use crate::clock;

/// Organization, workflow, key.
type Scope<'a> = (&'a str, &'a str, &'a str);

fn scope(run: &NewRun) -> Option<Scope<'_>> {
    let key = run.idempotency.as_ref()?;
    Some((
        run.organization_id.as_str(),
        run.workflow_id.as_str(),
        key.key.as_str(),
    ))
}

const CLAIM: BatchStatement = BatchStatement {
    columns: &[
        ("organization_id", Kind::Text),
        ("workflow_id", Kind::Text),
        ("key", Kind::Text),
        ("run_id", Kind::Text),
        ("body_hash", Kind::Bytes),
        ("expires_at", Kind::Integer),
        ("created_at", Kind::Integer),
    ],
    // An expired key is as good as none. `created_at` of the new run is the time it is judged by.
    tail: "INSERT INTO idempotency_keys (organization_id, workflow_id, key, run_id, body_hash, expires_at, created_at)
           SELECT v.* FROM v WHERE TRUE
           ON CONFLICT (organization_id, workflow_id, key) DO UPDATE SET run_id = excluded.run_id,
               body_hash = excluded.body_hash, expires_at = excluded.expires_at, created_at = excluded.created_at
               WHERE idempotency_keys.expires_at <= excluded.created_at
           RETURNING run_id",
};

const LOOK_UP: BatchStatement = BatchStatement {
    columns: &[
        ("organization_id", Kind::Text),
        ("workflow_id", Kind::Text),
        ("key", Kind::Text),
    ],
    tail: "SELECT k.organization_id AS organization_id, k.workflow_id AS workflow_id, k.key AS key,
               k.run_id AS run_id, k.body_hash AS body_hash
           FROM v JOIN idempotency_keys k
               ON k.organization_id = v.organization_id AND k.workflow_id = v.workflow_id AND k.key = v.key",
};

/// Claims the keys of the starts; those whose key is another run's get their outcome. Of equal keys in one batch the
/// first wins.
pub(super) async fn claim_keys(
    session: &mut Session,
    creates: &[NewRun],
    outcomes: &mut [CreateOutcome],
) -> Result<(), StoreError> {
    let mut firsts: HashMap<Scope<'_>, &NewRun> = HashMap::new();
    for run in creates {
        if let Some(scope) = scope(run) {
            firsts.entry(scope).or_insert(run);
        }
    }
    if firsts.is_empty() {
        return Ok(());
    }
    // In one order everywhere, so that two batches with the same keys cannot wait for each other.
    let mut scopes: Vec<Scope<'_>> = firsts.keys().copied().collect();
    scopes.sort_unstable();

    let mut rows = Vec::new();
    for scope in &scopes {
        if let Some((run, key)) = firsts
            .get(scope)
            .and_then(|run| Some((run, run.idempotency.as_ref()?)))
        {
            rows.extend(values![
                scope.0,
                scope.1,
                scope.2,
                &run.id,
                &key.body_hash,
                key.expires_at,
                run.created_at
            ]);
        }
    }
    let claimed = session.batch_returning(&CLAIM, &rows).await?;
    let all_are_new = claimed.len() == firsts.len();
    if all_are_new && firsts.len() == creates.iter().filter(|run| run.idempotency.is_some()).count() {
        return Ok(());
    }
    let owners = owners(session, &scopes).await?;
    for (run, outcome) in creates.iter().zip(outcomes) {
        let (Some(scope), Some(key)) = (scope(run), &run.idempotency) else {
            continue;
        };
        let owner = owners.iter().find(|owner| owner.is_of(scope));
        let owner = owner.ok_or_else(|| StoreError::Corrupt("an idempotency key vanished".to_owned()))?;
        if owner.run_id != run.id {
            *outcome = if owner.body_hash == key.body_hash {
                CreateOutcome::Replayed {
                    run_id: owner.run_id.clone(),
                }
            } else {
                CreateOutcome::KeyReused
            };
        }
    }
    Ok(())
}

struct Owner {
    organization_id: String,
    workflow_id: String,
    key: String,
    run_id: String,
    body_hash: Vec<u8>,
}

impl Owner {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            organization_id: row.get("organization_id")?,
            workflow_id: row.get("workflow_id")?,
            key: row.get("key")?,
            run_id: row.get("run_id")?,
            body_hash: row.get("body_hash")?,
        })
    }

    fn is_of(&self, scope: Scope<'_>) -> bool {
        (
            self.organization_id.as_str(),
            self.workflow_id.as_str(),
            self.key.as_str(),
        ) == scope
    }
}

async fn owners(session: &mut Session, scopes: &[Scope<'_>]) -> Result<Vec<Owner>, StoreError> {
    let rows: Vec<Value<'_>> = scopes
        .iter()
        .flat_map(|scope| values![scope.0, scope.1, scope.2])
        .collect();
    session
        .batch_returning(&LOOK_UP, &rows)
        .await?
        .iter()
        .map(Owner::from_row)
        .collect()
}

const RELEASE: BatchStatement = BatchStatement {
    columns: &[
        ("organization_id", Kind::Text),
        ("workflow_id", Kind::Text),
        ("key", Kind::Text),
        ("run_id", Kind::Text),
    ],
    tail: "DELETE FROM idempotency_keys WHERE (organization_id, workflow_id, key, run_id) IN (SELECT v.* FROM v)",
};

/// Gives back the keys of starts that were refused, and refuses what waited for the same key in this batch.
pub(super) async fn release_keys(
    session: &mut Session,
    creates: &[NewRun],
    outcomes: &mut [CreateOutcome],
) -> Result<(), StoreError> {
    let is_refused =
        |outcome: &CreateOutcome| matches!(outcome, CreateOutcome::OutOfCredits | CreateOutcome::ParentEnded);
    let refused: HashMap<&str, (Scope<'_>, CreateOutcome)> = creates
        .iter()
        .zip(outcomes.iter())
        .filter(|(_, outcome)| is_refused(outcome))
        .filter_map(|(run, outcome)| Some((run.id.as_str(), (scope(run)?, outcome.clone()))))
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    for outcome in outcomes.iter_mut() {
        if let CreateOutcome::Replayed { run_id } = outcome
            && let Some((_, refusal)) = refused.get(run_id.as_str())
        {
            *outcome = refusal.clone();
        }
    }
    let rows: Vec<Value<'_>> = refused
        .iter()
        .flat_map(|(run_id, (scope, _))| values![scope.0, scope.1, scope.2, *run_id])
        .collect();
    session.batch(&RELEASE, &rows).await?;
    Ok(())
}

/// The run that a key has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRun {
    /// `run_`
    pub run_id: String,
    /// Tells whether a request is the same.
    pub body_hash: Vec<u8>,
}

impl Store {
    /// The run that a key has started, if it has and is not expired.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn idempotent_run(
        &self,
        organization_id: &str,
        workflow_id: &str,
        key: &str,
    ) -> Result<Option<IdempotentRun>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT run_id, body_hash FROM idempotency_keys
                 WHERE organization_id = $1 AND workflow_id = $2 AND key = $3 AND expires_at > $4",
                &values![organization_id, workflow_id, key, clock::now_ms()],
            )
            .await?;
        let found = |row: Row| {
            Ok(IdempotentRun {
                run_id: row.get("run_id")?,
                body_hash: row.get("body_hash")?,
            })
        };
        row.map(found).transpose()
    }

    /// Forgets idempotency keys that expired before `now` (epoch milliseconds), at most `limit` of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_expired_keys(&self, now: i64, limit: i64) -> Result<Swept, StoreError> {
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let deleted = sweep
            .transaction
            .execute(
                "DELETE FROM idempotency_keys WHERE (organization_id, workflow_id, key) IN
                 (SELECT organization_id, workflow_id, key FROM idempotency_keys WHERE expires_at <= $1
                  ORDER BY expires_at LIMIT $2)",
                &values![now, limit],
            )
            .await?;
        sweep.done(deleted).await
    }
}
