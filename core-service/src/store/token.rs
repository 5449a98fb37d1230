//! Tokens that connections fetch, sealed by whoever calls, and the lease under which one at a time fetches the next.
//!
//! A lease holds on every node, by the database's clock, and is over by itself: whoever dies with it keeps nobody waiting
//! for long. A token is written by its revision, so one that comes late takes nobody's place. Absent on purpose: fetching,
//! and what the bytes mean.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::credential::{CredentialStatus, load, set_status};
use super::database::Session;
use super::value::{Row, Value, values, words};
use super::{Store, StoreError, Topic};

words! {
    /// Why there is no next token.
    TokenFailureKind {
        /// It may come later.
        Temporary = "temporary",
        /// The service refuses the credential.
        Refused = "refused",
        /// The request may not go where it should.
        Blocked = "blocked",
        /// Nobody can make sense of the request or of the answer.
        Unusable = "unusable",
    }
}

/// What is kept of a connection's token.
#[derive(Clone)]
pub struct Token {
    /// Rises with every token; 0 before the first.
    pub revision: i64,
    /// The token, sealed; none before the first.
    pub data: Option<Vec<u8>>,
    /// When it has to be renewed, epoch milliseconds.
    pub renew_at: Option<i64>,
    /// How often fetching has failed.
    pub failures: i64,
    /// The last failure, when no token came since.
    pub failure: Option<TokenFailure>,
}

/// Why there is no next token, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFailure {
    /// The kind.
    pub kind: TokenFailureKind,
    /// A sentence without secrets.
    pub reason: String,
}

/// A token to be kept.
#[derive(Clone, Copy)]
pub struct NewToken<'a> {
    /// The token, sealed.
    pub data: &'a [u8],
    /// When it has to be renewed, epoch milliseconds.
    pub renew_at: Option<i64>,
}

/// The right to fetch the token after a revision.
#[derive(Debug, Clone)]
pub struct TokenLease {
    credential_id: String,
    revision: i64,
    number: i64,
}

/// What came of asking for a lease.
#[derive(Debug, Clone)]
pub enum LeaseToken {
    /// It is the caller's.
    Granted(TokenLease),
    /// Somebody else has it.
    Held,
    /// There is another token by now, or the credential is gone.
    Changed,
}

impl Token {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let reason: Option<String> = row.get("reason")?;
        let failure = reason.map(|reason| {
            Ok::<_, StoreError>(TokenFailure {
                kind: row.word("failure")?,
                reason,
            })
        });
        Ok(Self {
            revision: row.get("revision")?,
            data: row.get("data")?,
            renew_at: row.get("renew_at")?,
            failures: row.get("failures")?,
            failure: failure.transpose()?,
        })
    }
}

/// Puts a token in the place of the last one, whoever is about to fetch the next.
pub(super) async fn write(
    session: &mut Session,
    credential_id: &str,
    token: &NewToken<'_>,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO tokens (credential_id, revision, data, renew_at, lease, failures)
               VALUES ($1, 1, $2, $3, 0, 0)
               ON CONFLICT (credential_id) DO UPDATE SET revision = tokens.revision + 1, data = excluded.data,
                   renew_at = excluded.renew_at, lease_until = NULL, failure = NULL, reason = NULL";
    session
        .execute(sql, &values![credential_id, token.data, token.renew_at])
        .await?;
    Ok(())
}

/// Forgets the token of a credential.
pub(super) async fn forget(session: &mut Session, credential_id: &str) -> Result<(), StoreError> {
    session
        .execute(
            "DELETE FROM tokens WHERE credential_id = $1",
            &values![credential_id],
        )
        .await?;
    Ok(())
}

impl Store {
    /// What is kept of a connection's token; nothing before the first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn token(&self, credential_id: &str) -> Result<Option<Token>, StoreError> {
        let sql =
            "SELECT revision, data, renew_at, failures, failure, reason FROM tokens WHERE credential_id = $1";
        let mut session = self.database.read().await?;
        let row = session.row(sql, &values![credential_id]).await?;
        row.as_ref().map(Token::from_row).transpose()
    }

    /// Asks to be the one who fetches the token after `revision`, for `lasts_ms` milliseconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lease_token(
        &self,
        credential_id: &str,
        revision: i64,
        lasts_ms: i64,
    ) -> Result<LeaseToken, StoreError> {
        let mut transaction = self.database.write().await?;
        if revision == 0 {
            let sql = "INSERT INTO tokens (credential_id, revision, lease, failures)
                       SELECT id, 0, 0, 0 FROM credentials WHERE id = $1 AND deleted_at IS NULL
                       ON CONFLICT (credential_id) DO NOTHING";
            transaction.execute(sql, &values![credential_id]).await?;
        }
        let clock = transaction.dialect().clock_ms();
        let sql = format!(
            "UPDATE tokens SET lease = lease + 1, lease_until = {clock} + $3
             WHERE credential_id = $1 AND revision = $2 AND (lease_until IS NULL OR lease_until <= {clock})
             RETURNING lease"
        );
        let asked = values![credential_id, revision, lasts_ms];
        let granted = transaction.row(AssertSqlSafe(sql), &asked).await?;
        let answer = match granted {
            Some(row) => LeaseToken::Granted(TokenLease {
                credential_id: credential_id.to_owned(),
                revision,
                number: row.get("lease")?,
            }),
            None => {
                let sql = "SELECT 1 AS held FROM tokens WHERE credential_id = $1 AND revision = $2";
                match transaction.row(sql, &values![credential_id, revision]).await? {
                    Some(_) => LeaseToken::Held,
                    None => LeaseToken::Changed,
                }
            }
        };
        transaction.commit().await?;
        Ok(answer)
    }

    /// Keeps the token that was fetched and gives its revision; nothing when another came first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn save_token(
        &self,
        lease: &TokenLease,
        token: &NewToken<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let mut transaction = self.database.write().await?;
        // Whoever lost the lease meanwhile may have the one refresh token that still works.
        let sql = "UPDATE tokens SET revision = revision + 1, data = $3, renew_at = $4, lease_until = NULL,
                       failure = NULL, reason = NULL
                   WHERE credential_id = $1 AND revision = $2 RETURNING revision";
        let row = values![
            &lease.credential_id,
            lease.revision,
            token.data,
            Value::Integer(token.renew_at)
        ];
        let saved = transaction.row(sql, &row).await?;
        let revision = saved.map(|row| row.get("revision")).transpose()?;
        transaction.commit().await?;
        self.announce_token(&lease.credential_id).await;
        Ok(revision)
    }

    /// Notes that no token came, and gives the lease back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn token_failed(&self, lease: &TokenLease, failure: &TokenFailure) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        note(&mut transaction, lease, failure).await?;
        transaction.commit().await?;
        self.announce_token(&lease.credential_id).await;
        Ok(())
    }

    /// As [`Self::token_failed`], and what this makes of an active credential, which the activity feed tells of. Nothing
    /// when another token came first.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn token_refused(
        &self,
        lease: &TokenLease,
        organization_id: &str,
        status: CredentialStatus,
        failure: &TokenFailure,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let mut credential = load(&mut transaction, organization_id, &lease.credential_id, lock).await?;
        let counts = note(&mut transaction, lease, failure).await?;
        if counts && credential.status == CredentialStatus::Active {
            set_status(&mut transaction, &mut credential, status).await?;
            let action = match status {
                CredentialStatus::Expired => "credential.expired",
                _ => "credential.refused",
            };
            let entry = Entry {
                organization_id,
                action,
                label: &credential.name,
                target_id: &credential.id,
                fields: &["status"],
            };
            record(&mut transaction, &Actor::default(), entry).await?;
        }
        transaction.commit().await?;
        self.announce_token(&lease.credential_id).await;
        Ok(())
    }

    /// Wakes whoever waits for a token. The change stands anyway: it is found by looking.
    async fn announce_token(&self, credential_id: &str) {
        if let Err(error) = self.notify(Topic::Tokens, credential_id).await {
            tracing::debug!(%error, "nobody was told of a token");
        }
    }
}

/// Writes a failure, unless another token or another lease came first.
async fn note(session: &mut Session, lease: &TokenLease, failure: &TokenFailure) -> Result<bool, StoreError> {
    let sql = "UPDATE tokens SET failures = failures + 1, failure = $4, reason = $5, lease_until = NULL
               WHERE credential_id = $1 AND revision = $2 AND lease = $3";
    let row = values![
        &lease.credential_id,
        lease.revision,
        lease.number,
        failure.kind.as_word(),
        &failure.reason
    ];
    Ok(session.execute(sql, &row).await? > 0)
}
