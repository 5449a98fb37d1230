//! Telling services of triggers: whom of what, and what came of it.
//!
//! Each claim raises the revision of a registration, and so does its end: whoever comes back late has no say. Times are the
//! database's own.

use sqlx::AssertSqlSafe;

use super::activity::{Trouble, Troubled, record_trouble};
use super::database::Session;
use super::registration::{COLUMNS, Registration};
use super::value::{Row, Value, values};
use super::wake::NextWake;
use super::{Store, StoreError};

/// A registration of which a service has to be told.
#[derive(Clone)]
pub struct DueRegistration {
    /// The registration.
    pub registration: Registration,
    /// Counts what the service is told.
    pub round: i64,
    /// How often telling has failed by now.
    pub failures: i64,
    revision: i64,
}

/// What came of telling a service.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// It will call.
    Attached {
        /// What is to be remembered of its answer, sealed.
        kept: Option<&'a [u8]>,
    },
    /// It will call no longer.
    Detached,
    /// It could not be told that it should call no longer, and nobody will try again.
    Abandoned {
        /// What the activity feed is told.
        trouble: Trouble<'a>,
    },
    /// It could not be told.
    Failed {
        /// Milliseconds until it is tried again.
        pause_ms: i64,
        /// Whether the service has answered: what it is told next is something else than what it was told now.
        answered: bool,
        /// What the activity feed is told, if it is; recorded the first time.
        trouble: Option<Trouble<'a>>,
    },
}

/// Whether anybody may be told of `r`. What is over comes first, one before the other in no order: many a service knows one
/// URL only, and forgets it whichever it is told to forget.
const FREE: &str = "(r.status <> 'attaching' OR NOT r.wanted OR NOT EXISTS (
     SELECT 1 FROM registrations d WHERE d.workflow_id = r.workflow_id AND d.id <> r.id AND NOT d.wanted
         AND d.failures = 0 AND d.wake_at IS NOT NULL))";

/// Whether a service that could not be told that it is over should call again by now: it is told that instead.
const AGAIN: &str = "(wanted AND status = 'detaching')";

impl Store {
    /// When the next service has to be told of something, if any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_registration(&self) -> Result<Option<NextWake>, StoreError> {
        let rows = format!("registrations r WHERE r.wake_at IS NOT NULL AND {FREE}");
        NextWake::earliest(&self.database, &rows).await
    }

    /// Gives up to `limit` registrations that services have to be told of, those that waited longest first. Others are not
    /// given them for `claim_ms` milliseconds (at most [`super::LONGEST_CLAIM_MS`]), or until they have been told.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_registrations(
        &self,
        claim_ms: i64,
        limit: i64,
    ) -> Result<Vec<DueRegistration>, StoreError> {
        let mut transaction = self.database.write().await?;
        let (clock, lock) = (
            transaction.dialect().clock_ms(),
            transaction.dialect().skip_locked(),
        );
        let sql = format!(
            "UPDATE registrations SET wake_at = {clock} + $1, revision = revision + 1 WHERE id IN (
                 SELECT r.id FROM registrations r WHERE r.wake_at <= {clock} AND {FREE}
                 ORDER BY r.wake_at LIMIT $2{lock})
             RETURNING {COLUMNS}, round, failures, revision"
        );
        let claimed = transaction
            .rows(AssertSqlSafe(sql), &values![claim_ms, limit])
            .await?;
        transaction.commit().await?;
        claimed.iter().map(DueRegistration::from_row).collect()
    }

    /// Notes what came of telling a service. Gives whether whoever asks still had the claim.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn told(&self, due: &DueRegistration, told: Told<'_>) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let id = &due.registration.id;
        let sql = format!(
            "SELECT bound, failures, workflow_name FROM registrations WHERE id = $1 AND revision = $2{lock}"
        );
        let Some(row) = transaction
            .row(AssertSqlSafe(sql), &values![id, due.revision])
            .await?
        else {
            transaction.rollback().await?;
            return Ok(false);
        };
        let (bound, failures): (bool, i64) = (row.get("bound")?, row.get("failures")?);
        note(&mut transaction, id, bound, told).await?;
        if let Some(trouble) = told.trouble(failures) {
            let name: String = row.get("workflow_name")?;
            let workflow = Troubled {
                organization_id: &due.registration.organization_id,
                id: &due.registration.workflow_id,
                name: &name,
            };
            record_trouble(&mut transaction, workflow, trouble).await?;
        }
        transaction.commit().await?;
        // Others may have waited for this one.
        self.announce_registrations().await;
        Ok(true)
    }
}

async fn note(session: &mut Session, id: &str, bound: bool, told: Told<'_>) -> Result<(), StoreError> {
    let clock = session.dialect().clock_ms();
    let (sql, more) = match told {
        Told::Attached { kept } => (
            format!(
                "UPDATE registrations SET revision = revision + 1, kept = $2, round = round + 1, failures = 0,
                     status = CASE WHEN wanted THEN 'attached' ELSE 'detaching' END,
                     wake_at = CASE WHEN NOT wanted THEN {clock} END
                 WHERE id = $1"
            ),
            vec![Value::Bytes(kept)],
        ),
        Told::Detached | Told::Abandoned { .. } if !bound => {
            ("DELETE FROM registrations WHERE id = $1".to_owned(), Vec::new())
        }
        Told::Detached | Told::Abandoned { .. } => (
            format!(
                "UPDATE registrations SET revision = revision + 1, kept = NULL, round = round + 1, failures = 0,
                     status = CASE WHEN wanted THEN 'attaching' ELSE 'detached' END,
                     wake_at = CASE WHEN wanted THEN {clock} END
                 WHERE id = $1"
            ),
            Vec::new(),
        ),
        Told::Failed {
            pause_ms, answered, ..
        } => (
            format!(
                "UPDATE registrations SET revision = revision + 1,
                     failures = CASE WHEN {AGAIN} THEN 0 ELSE failures + 1 END,
                     round = round + CASE WHEN {AGAIN} THEN 1 ELSE $2 END,
                     status = CASE WHEN {AGAIN} THEN 'attaching' ELSE status END,
                     wake_at = {clock} + CASE WHEN {AGAIN} THEN 0 ELSE $3 END
                 WHERE id = $1"
            ),
            values![i64::from(answered), pause_ms].to_vec(),
        ),
    };
    let parameters = [values![id].as_slice(), &more].concat();
    session.execute(AssertSqlSafe(sql), &parameters).await?;
    Ok(())
}

impl<'a> Told<'a> {
    /// What the activity feed is told, when telling has failed so often before.
    fn trouble(self, failures: i64) -> Option<Trouble<'a>> {
        match self {
            Self::Attached { .. } | Self::Detached => None,
            Self::Abandoned { trouble } => Some(trouble),
            Self::Failed { trouble, .. } => trouble.filter(|_| failures == 0),
        }
    }
}

impl DueRegistration {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            registration: Registration::from_row(row)?,
            round: row.get("round")?,
            failures: row.get("failures")?,
            revision: row.get("revision")?,
        })
    }
}
