//! Settings that all nodes share, such as the wrapped key-hash secret: a key and bytes.

use super::value::values;
use super::{Store, StoreError};

impl Store {
    /// A setting's value.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn setting(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row("SELECT value FROM settings WHERE key = $1", &values![key])
            .await?;
        row.map(|row| row.get("value")).transpose()
    }

    /// Stores a setting unless it is there, and gives the value that holds: of several nodes that start at once, one wins.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn insert_setting(&self, key: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
                &values![key, value],
            )
            .await?;
        let row = transaction
            .row("SELECT value FROM settings WHERE key = $1", &values![key])
            .await?;
        transaction.commit().await?;
        row.ok_or(StoreError::NotFound("setting"))?.get("value")
    }

    /// Stores a setting, replacing what was there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_setting(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "INSERT INTO settings (key, value) VALUES ($1, $2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                &values![key, value],
            )
            .await?;
        transaction.commit().await
    }
}
