//! Tags, and which workflows carry them.

use super::activity::{Actor, Entry, record};
use super::dialect::{BatchStatement, Kind};
use super::page::name_key;
use super::value::{Row, Value, values};
use super::{Store, StoreError};
use crate::{clock, id};

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// `tag_`
    pub id: String,
    /// Its name; need not be unique.
    pub name: String,
    /// As it was given.
    pub color: String,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

impl Tag {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            color: row.get("color")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

const ATTACH: BatchStatement = BatchStatement {
    columns: &[("workflow_id", Kind::Text), ("tag_id", Kind::Text)],
    tail: "INSERT INTO workflow_tags (workflow_id, tag_id) SELECT v.* FROM v WHERE TRUE
           ON CONFLICT (workflow_id, tag_id) DO NOTHING",
};

impl Store {
    /// Makes a tag.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn create_tag(
        &self,
        actor: &Actor,
        organization_id: &str,
        name: &str,
        color: &str,
    ) -> Result<Tag, StoreError> {
        let now = clock::now_ms();
        let tag = Tag {
            id: id::new(id::Kind::Tag),
            name: name.to_owned(),
            color: color.to_owned(),
            created_at: now,
            updated_at: now,
        };
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "INSERT INTO tags (id, organization_id, name, name_key, color, created_at, updated_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $6)",
                &values![&tag.id, organization_id, name, &name_key(name), color, now],
            )
            .await?;
        let entry = Entry {
            organization_id,
            action: "tag.created",
            label: name,
            target_id: &tag.id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await?;
        Ok(tag)
    }

    /// An organization's tags by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_tags(&self, organization_id: &str) -> Result<Vec<Tag>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, name, color, created_at, updated_at FROM tags
                 WHERE organization_id = $1 ORDER BY name_key, id",
                &values![organization_id],
            )
            .await?;
        rows.iter().map(Tag::from_row).collect()
    }

    /// Replaces the tags of a workflow. It is a write of the workflow: its `updated_at` rises.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the workflow or a tag; when the database fails.
    pub async fn set_workflow_tags(
        &self,
        actor: &Actor,
        organization_id: &str,
        workflow_id: &str,
        tag_ids: &[&str],
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let row = transaction
            .row(
                "UPDATE workflows SET updated_at = CASE WHEN updated_at >= $3 THEN updated_at + 1 ELSE $3 END
                 WHERE organization_id = $1 AND id = $2 RETURNING name",
                &values![organization_id, workflow_id, clock::now_ms()],
            )
            .await?;
        let name: String = row.ok_or(StoreError::NotFound("workflow"))?.get("name")?;
        let mut distinct = tag_ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let one_of = transaction.dialect().one_of(2);
        let sql = format!("SELECT id FROM tags WHERE organization_id = $1 AND id {one_of}");
        let known = transaction
            .rows(
                sqlx::AssertSqlSafe(sql),
                &[Value::from(organization_id), Value::Texts(&distinct)],
            )
            .await?;
        if known.len() < distinct.len() {
            transaction.rollback().await?;
            return Err(StoreError::NotFound("tag"));
        }
        transaction
            .execute(
                "DELETE FROM workflow_tags WHERE workflow_id = $1",
                &values![workflow_id],
            )
            .await?;
        let rows: Vec<Value<'_>> = distinct
            .iter()
            .flat_map(|tag_id| values![workflow_id, *tag_id])
            .collect();
        transaction.batch(&ATTACH, &rows).await?;
        let entry = Entry {
            organization_id,
            action: "workflow.updated",
            label: &name,
            target_id: workflow_id,
            fields: &["tagIds"],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await
    }
}
