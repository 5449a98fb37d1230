//! Frozen graphs by their content: what deployed versions and runs of drafts execute. They never change.

use super::database::Session;
use super::value::values;
use super::{Store, StoreError};

/// A frozen graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The SHA-256 of its canonical form, in hexadecimal.
    pub content_hash: String,
    /// The canonical form.
    pub bytes: Vec<u8>,
}

impl Store {
    /// Stores a frozen graph, unless it is there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_graph(&self, organization_id: &str, graph: &Graph) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        insert_graph(&mut transaction, organization_id, graph).await?;
        transaction.commit().await
    }

    /// A frozen graph's bytes.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn graph(&self, organization_id: &str, content_hash: &str) -> Result<Vec<u8>, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT graph FROM graphs WHERE organization_id = $1 AND content_hash = $2",
                &values![organization_id, content_hash],
            )
            .await?;
        row.ok_or(StoreError::NotFound("graph"))?.get("graph")
    }
}

pub(super) async fn insert_graph(
    session: &mut Session,
    organization_id: &str,
    graph: &Graph,
) -> Result<(), StoreError> {
    session
        .execute(
            "INSERT INTO graphs (organization_id, content_hash, graph) VALUES ($1, $2, $3)
             ON CONFLICT (organization_id, content_hash) DO NOTHING",
            &values![organization_id, &graph.content_hash, &graph.bytes],
        )
        .await?;
    Ok(())
}
