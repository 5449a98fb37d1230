//! A workflow's deployed versions, newest first.

use super::value::{Row, values};
use super::{Store, StoreError};

/// A deployed version; its graph is found by the content hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The workflow.
    pub workflow_id: String,
    /// From 1.
    pub version_no: i64,
    /// The graph it froze.
    pub content_hash: String,
    /// Epoch milliseconds.
    pub deployed_at: i64,
}

impl Version {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            workflow_id: row.get("workflow_id")?,
            version_no: row.get("version_no")?,
            content_hash: row.get("content_hash")?,
            deployed_at: row.get("deployed_at")?,
        })
    }
}

impl Store {
    /// A workflow's versions, newest first, below `before`. A workflow of another organization has none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_versions(
        &self,
        organization_id: &str,
        workflow_id: &str,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Version>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT workflow_id, version_no, content_hash, deployed_at FROM versions
                 WHERE organization_id = $1 AND workflow_id = $2 AND version_no < $3
                 ORDER BY version_no DESC LIMIT $4",
                &values![organization_id, workflow_id, before.unwrap_or(i64::MAX), limit],
            )
            .await?;
        rows.iter().map(Version::from_row).collect()
    }

    /// One version.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn version(
        &self,
        organization_id: &str,
        workflow_id: &str,
        version_no: i64,
    ) -> Result<Version, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT workflow_id, version_no, content_hash, deployed_at FROM versions
                 WHERE organization_id = $1 AND workflow_id = $2 AND version_no = $3",
                &values![organization_id, workflow_id, version_no],
            )
            .await?;
        Version::from_row(&row.ok_or(StoreError::NotFound("version"))?)
    }

    /// The last version ever deployed, also after an undeploy.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_version(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Option<Version>, StoreError> {
        Ok(self
            .list_versions(organization_id, workflow_id, None, 1)
            .await?
            .pop())
    }
}
