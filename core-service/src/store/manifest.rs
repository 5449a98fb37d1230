//! Manifests of apps that were added: versions that rise, of one organization or of all. They never change.

use std::collections::BTreeMap;

use super::activity::{Actor, Entry, record, record_for};
use super::database::Session;
use super::value::values;
use super::{Store, StoreError};
use crate::clock;

/// A manifest to be added.
#[derive(Debug, Clone)]
pub struct NewManifest<'a> {
    /// The organization that gets the app; all when absent.
    pub organization_id: Option<&'a str>,
    /// The app.
    pub app_id: &'a str,
    /// The app's name, for people.
    pub label: &'a str,
    /// SHA-256 of the content, in hexadecimal.
    pub digest: &'a str,
    /// The manifest as it was given.
    pub content: &'a [u8],
}

/// Which manifest an organization's app has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestManifest {
    /// The app.
    pub app_id: String,
    /// SHA-256 of the content, in hexadecimal.
    pub digest: String,
}

impl Store {
    /// Adds a manifest as the next version of its app, and gives the number. The newest one again is no new version.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the organization; when the database fails.
    pub async fn add_manifest(&self, actor: &Actor, new: &NewManifest<'_>) -> Result<i64, StoreError> {
        loop {
            match self.try_to_add(actor, new).await {
                // Somebody else was given the number; there is a next one.
                Err(StoreError::Duplicate(_)) => {}
                added => return added,
            }
        }
    }

    async fn try_to_add(&self, actor: &Actor, new: &NewManifest<'_>) -> Result<i64, StoreError> {
        let mut transaction = self.database.write().await?;
        if let Some(organization_id) = new.organization_id {
            let sql = "SELECT id FROM organizations WHERE id = $1";
            let found = transaction.row(sql, &values![organization_id]).await?;
            found.ok_or(StoreError::NotFound("organization"))?;
        }
        let newest = transaction
            .row(
                "SELECT version, digest FROM manifests WHERE COALESCE(organization_id, '') = $1 AND app_id = $2
                 ORDER BY version DESC LIMIT 1",
                &values![new.organization_id.unwrap_or_default(), new.app_id],
            )
            .await?;
        let mut version = 1;
        if let Some(newest) = newest {
            let (number, digest): (i64, String) = (newest.get("version")?, newest.get("digest")?);
            if digest == new.digest {
                transaction.rollback().await?;
                return Ok(number);
            }
            version = number + 1;
        }
        let row = values![
            new.organization_id,
            new.app_id,
            version,
            new.digest,
            new.content,
            &actor.user_id,
            clock::now_ms(),
        ];
        transaction
            .execute(
                "INSERT INTO manifests (organization_id, app_id, version, digest, content, added_by, added_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                &row,
            )
            .await?;
        tell(&mut transaction, actor, new).await?;
        transaction.commit().await?;
        Ok(version)
    }

    /// The newest manifest of each app that an organization was given, by app. Its own come before those for all.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_manifests(&self, organization_id: &str) -> Result<Vec<NewestManifest>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT m.app_id AS app_id, m.digest AS digest FROM manifests m
                 WHERE COALESCE(m.organization_id, '') IN ($1, '') AND m.version = (
                     SELECT MAX(n.version) FROM manifests n
                     WHERE COALESCE(n.organization_id, '') = COALESCE(m.organization_id, '')
                         AND n.app_id = m.app_id)
                 ORDER BY COALESCE(m.organization_id, '')",
                &values![organization_id],
            )
            .await?;
        let mut newest = BTreeMap::new();
        for row in &rows {
            newest.insert(row.get("app_id")?, row.get("digest")?);
        }
        let newest = newest.into_iter();
        Ok(newest
            .map(|(app_id, digest)| NewestManifest { app_id, digest })
            .collect())
    }

    /// The content of a manifest that an organization was given, now or before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn manifest(&self, organization_id: &str, digest: &str) -> Result<Vec<u8>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT content FROM manifests WHERE digest = $2 AND COALESCE(organization_id, '') IN ($1, '')
                 LIMIT 1",
                &values![organization_id, digest],
            )
            .await?;
        row.ok_or(StoreError::NotFound("manifest"))?.get("content")
    }
}

/// Writes the entry of a new version: into the feed of the organization that gets it, or of all.
async fn tell(session: &mut Session, actor: &Actor, new: &NewManifest<'_>) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id: new.organization_id.unwrap_or_default(),
        action: "manifest.added",
        label: new.label,
        target_id: new.app_id,
        fields: &[],
    };
    match new.organization_id {
        Some(_) => record(session, actor, entry).await,
        None => {
            let everybody = ("SELECT id FROM organizations", [].as_slice());
            record_for(session, actor, everybody, entry).await
        }
    }
}
