//! Tags, and which workflows carry them.

use super::activity::{Actor, Entry, record};
use super::database::Session;
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
        record_tag(&mut transaction, actor, organization_id, &tag, "tag.created", &[]).await?;
        transaction.commit().await?;
        Ok(tag)
    }

    /// Changes a tag's name or color; `None` stays.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn update_tag(
        &self,
        actor: &Actor,
        organization_id: &str,
        tag_id: &str,
        name: Option<&str>,
        color: Option<&str>,
    ) -> Result<Tag, StoreError> {
        let mut transaction = self.database.write().await?;
        let row = transaction
            .row(
                "UPDATE tags SET name = COALESCE($3, name), name_key = COALESCE($4, name_key),
                     color = COALESCE($5, color), updated_at = CASE WHEN updated_at > $6 THEN updated_at ELSE $6 END
                 WHERE organization_id = $1 AND id = $2 RETURNING id, name, color, created_at, updated_at",
                &values![
                    organization_id,
                    tag_id,
                    name,
                    &name.map(name_key),
                    color,
                    clock::now_ms()
                ],
            )
            .await?;
        let tag = Tag::from_row(&row.ok_or(StoreError::NotFound("tag"))?)?;
        let fields = [name.map(|_| "name"), color.map(|_| "color")];
        let fields: Vec<&str> = fields.into_iter().flatten().collect();
        record_tag(
            &mut transaction,
            actor,
            organization_id,
            &tag,
            "tag.updated",
            &fields,
        )
        .await?;
        transaction.commit().await?;
        Ok(tag)
    }

    /// Deletes a tag and takes it from the workflows that carry it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_tag(
        &self,
        actor: &Actor,
        organization_id: &str,
        tag_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let row = transaction
            .row(
                "DELETE FROM tags WHERE organization_id = $1 AND id = $2
                 RETURNING id, name, color, created_at, updated_at",
                &values![organization_id, tag_id],
            )
            .await?;
        let tag = Tag::from_row(&row.ok_or(StoreError::NotFound("tag"))?)?;
        record_tag(&mut transaction, actor, organization_id, &tag, "tag.deleted", &[]).await?;
        transaction.commit().await
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

async fn record_tag(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    tag: &Tag,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: &tag.name,
        target_id: &tag.id,
        fields,
    };
    record(session, actor, entry).await
}
