//! What people are asked elsewhere: whether a credential may be used for them. Found by the hash of the state that goes to
//! the service and comes back, once. What belongs to it is sealed by whoever calls; here it is bytes.

use super::credential::Credential;
use super::database::Session;
use super::value::values;
use super::{Store, StoreError};
use crate::clock;

/// The most that one credential is asked for at a time: those before are forgotten.
const MOST: i64 = 16;

/// A question that is out.
pub struct ConsentRequest {
    /// The credential that it is for.
    pub credential: Credential,
    /// What belongs to it, sealed.
    pub data: Vec<u8>,
    /// Whether its answer can still be taken.
    pub is_open: bool,
}

/// A question to be asked.
#[derive(Clone, Copy)]
pub struct NewConsentRequest<'a> {
    /// The credential that it is for.
    pub credential_id: &'a str,
    /// What its state is found by.
    pub state_hash: &'a [u8],
    /// What belongs to it, sealed.
    pub data: &'a [u8],
    /// When its answer comes too late, epoch milliseconds.
    pub expires_at: i64,
}

/// Forgets what a credential was asked for.
pub(super) async fn forget(session: &mut Session, credential_id: &str) -> Result<(), StoreError> {
    session
        .execute(
            "DELETE FROM consents WHERE credential_id = $1",
            &values![credential_id],
        )
        .await?;
    Ok(())
}

impl Store {
    /// Keeps a question, and forgets those that are over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ask_consent(&self, new: &NewConsentRequest<'_>) -> Result<(), StoreError> {
        let now = clock::now_ms();
        let mut transaction = self.database.write().await?;
        transaction
            .execute("DELETE FROM consents WHERE expires_at < $1", &values![now])
            .await?;
        let sql = "DELETE FROM consents WHERE credential_id = $1 AND state_hash NOT IN
                       (SELECT state_hash FROM consents WHERE credential_id = $1 ORDER BY created_at DESC LIMIT $2)";
        transaction
            .execute(sql, &values![new.credential_id, MOST - 1])
            .await?;
        let sql = "INSERT INTO consents (state_hash, credential_id, data, created_at, expires_at, used)
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let row = values![
            new.state_hash,
            new.credential_id,
            new.data,
            now,
            new.expires_at,
            false
        ];
        transaction.execute(sql, &row).await?;
        transaction.commit().await
    }

    /// The question that a state is of, unless its credential is gone.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn consent_request(&self, state_hash: &[u8]) -> Result<Option<ConsentRequest>, StoreError> {
        let sql = "SELECT credential_id, data, expires_at, used FROM consents WHERE state_hash = $1";
        let mut session = self.database.read().await?;
        let Some(row) = session.row(sql, &values![state_hash]).await? else {
            return Ok(None);
        };
        let credential_id: String = row.get("credential_id")?;
        let (expires_at, used): (i64, bool) = (row.get("expires_at")?, row.get("used")?);
        let found = super::credential::load_any(&mut session, &credential_id).await?;
        let data = row.get("data")?;
        Ok(found.map(|credential| ConsentRequest {
            is_open: !used && clock::now_ms() < expires_at && credential.can_be_connected(),
            credential,
            data,
        }))
    }

    /// Takes the answer to a question; `false` when that was done before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_consent(&self, state_hash: &[u8]) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let sql = "UPDATE consents SET used = $2 WHERE state_hash = $1 AND used = $3";
        let taken = transaction
            .execute(sql, &values![state_hash, true, false])
            .await?;
        transaction.commit().await?;
        Ok(taken > 0)
    }

    /// The state's hash and the sealed data of what a credential was asked for last.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_consent(&self, credential_id: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>, StoreError> {
        let sql = "SELECT state_hash, data FROM consents WHERE credential_id = $1
                   ORDER BY created_at DESC, state_hash LIMIT 1";
        let mut session = self.database.read().await?;
        let row = session.row(sql, &values![credential_id]).await?;
        row.map(|row| Ok((row.get("state_hash")?, row.get("data")?)))
            .transpose()
    }
}
