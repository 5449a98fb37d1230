//! Keys wrapped by the master key. What wraps and opens them is elsewhere; here they are bytes of a version.

use super::activity::{Actor, Entry, record_for};
use super::database::Session;
use super::value::{Row, values};
use super::{Store, StoreError};

/// A wrapped key.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// Whose it is.
    pub id: String,
    /// The version of the master key that wrapped it.
    pub master_version: i64,
    /// The key, unreadable.
    pub wrapped: Vec<u8>,
}

/// What came of storing a key.
pub enum InsertKey {
    /// This one holds: the new one, or the one that was there.
    Holds(WrappedKey),
    /// The master key was rotated meanwhile: wrap the key again.
    Rotated,
}

impl WrappedKey {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            master_version: row.get("master_version")?,
            wrapped: row.get("wrapped")?,
        })
    }
}

impl Store {
    /// A wrapped key.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn wrapped_key(&self, id: &str) -> Result<Option<WrappedKey>, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, id, "").await
    }

    /// Stores the first key of all unless it is there: of several nodes that start at once, one wins.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn insert_first_key(&self, key: &WrappedKey) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        insert(&mut transaction, key).await?;
        transaction.commit().await
    }

    /// Stores a key unless it is there. Its version must be the one of the key `first`, which no rotation changes
    /// meanwhile.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn insert_key(&self, first: &str, key: &WrappedKey) -> Result<InsertKey, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_share();
        let in_use = load(&mut transaction, first, lock).await?;
        if in_use.is_none_or(|first| first.master_version != key.master_version) {
            transaction.rollback().await?;
            return Ok(InsertKey::Rotated);
        }
        insert(&mut transaction, key).await?;
        let holds = load(&mut transaction, &key.id, "").await?;
        transaction.commit().await?;
        holds.map(InsertKey::Holds).ok_or(StoreError::NotFound("key"))
    }

    /// Replaces every key by what `rewrap` makes of it, all or none. The key `first` orders this with other writes. All
    /// organizations find the new version of the master key in their activity feeds.
    ///
    /// # Errors
    /// When the database or `rewrap` fails.
    pub async fn rewrap_keys<E: From<StoreError>>(
        &self,
        actor: &Actor,
        first: &str,
        version: i64,
        rewrap: impl Fn(&WrappedKey) -> Result<WrappedKey, E>,
    ) -> Result<(), E> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        load(&mut transaction, first, lock).await?;
        // A statement of its own, so that it sees what was stored while it waited for the lock.
        let rows = transaction
            .rows(
                "SELECT id, master_version, wrapped FROM wrapped_keys ORDER BY id",
                &[],
            )
            .await?;
        for row in &rows {
            let key = rewrap(&WrappedKey::from_row(row)?)?;
            transaction
                .execute(
                    "UPDATE wrapped_keys SET master_version = $2, wrapped = $3 WHERE id = $1",
                    &values![&key.id, key.master_version, &key.wrapped],
                )
                .await?;
        }
        let version = version.to_string();
        let entry = Entry {
            organization_id: "",
            action: "master_key.rotated",
            label: "",
            target_id: &version,
            fields: &[],
        };
        let everybody = ("SELECT id FROM organizations", [].as_slice());
        record_for(&mut transaction, actor, everybody, entry).await?;
        Ok(transaction.commit().await?)
    }
}

async fn load(session: &mut Session, id: &str, lock: &'static str) -> Result<Option<WrappedKey>, StoreError> {
    let sql = format!("SELECT id, master_version, wrapped FROM wrapped_keys WHERE id = $1{lock}");
    let row = session.row(sqlx::AssertSqlSafe(sql), &values![id]).await?;
    row.as_ref().map(WrappedKey::from_row).transpose()
}

async fn insert(session: &mut Session, key: &WrappedKey) -> Result<(), StoreError> {
    session
        .execute(
            "INSERT INTO wrapped_keys (id, master_version, wrapped) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
            &values![&key.id, key.master_version, &key.wrapped],
        )
        .await
        .map(drop)
}
