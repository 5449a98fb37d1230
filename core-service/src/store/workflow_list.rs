//! Lists of workflows: filters, sorts and pages.

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::Dialect;
use super::folder::DESCENDANTS;
use super::page::{Position, like_pattern, name_key};
use super::value::{Row, Value, values, words};
use super::{Store, StoreError};

/// A workflow as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSummary {
    /// `wf_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether its triggers fire.
    pub active: bool,
    /// The folder it is in.
    pub folder_id: Option<String>,
    /// How many nodes its draft has.
    pub node_count: i64,
    /// The tags it carries, by id.
    pub tag_ids: Vec<String>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

words! {
    /// Which workflows to list, by their state.
    StatusFilter {
        /// Active ones.
        Active = "active",
        /// Ones that are not.
        Inactive = "inactive",
        /// Ones with nothing deployed.
        Draft = "draft",
        /// Ones with something deployed.
        Deployed = "deployed",
        /// Deployed ones whose draft has changed since.
        Modified = "modified",
    }
}

words! {
    /// What a list is sorted by.
    SortBy {
        /// The last write.
        UpdatedAt = "updatedAt",
        /// The making.
        CreatedAt = "createdAt",
        /// The name, regardless of case.
        Name = "name",
    }
}

/// The order of a list; ties go by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The column.
    pub by: SortBy,
    /// From the greatest down.
    pub descending: bool,
}

/// Which tags a workflow must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFilter {
    /// The tags.
    pub tag_ids: Vec<String>,
    /// All of them rather than any.
    pub all: bool,
}

/// Which workflows to list; empty means all.
#[derive(Debug, Clone, Default)]
pub struct WorkflowFilter {
    /// Found in the name or the description, regardless of case.
    pub query: Option<String>,
    /// By state.
    pub status: Option<StatusFilter>,
    /// In this folder or below it.
    pub folder_id: Option<String>,
    /// By tags.
    pub tags: Option<TagFilter>,
}

impl Sort {
    const fn column(self) -> &'static str {
        match self.by {
            SortBy::UpdatedAt => "updated_at",
            SortBy::CreatedAt => "created_at",
            SortBy::Name => "name_key",
        }
    }

    const fn direction(self) -> &'static str {
        if self.descending { "DESC" } else { "ASC" }
    }
}

impl WorkflowSummary {
    /// Where the next page of a list in this order starts: the sort value as text, and the id.
    #[must_use]
    pub fn position(&self, sort: Sort) -> Position<String> {
        let value = match sort.by {
            SortBy::UpdatedAt => self.updated_at.to_string(),
            SortBy::CreatedAt => self.created_at.to_string(),
            SortBy::Name => name_key(&self.name),
        };
        Position {
            value,
            id: self.id.clone(),
        }
    }

    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let tag_ids: Option<String> = row.get("tag_ids")?;
        let tag_ids = tag_ids.iter().flat_map(|ids| ids.split(','));
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            active: row.get("active")?,
            folder_id: row.get("folder_id")?,
            node_count: row.get("node_count")?,
            tag_ids: tag_ids.map(str::to_owned).collect(),
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

impl Store {
    /// An organization's workflows in the given order, from the one after `after`
    /// (see [`WorkflowSummary::position`]; a position that no such list gave finds nothing).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_workflows(
        &self,
        organization_id: &str,
        filter: &WorkflowFilter,
        sort: Sort,
        after: Option<&Position<String>>,
        limit: i64,
    ) -> Result<Vec<WorkflowSummary>, StoreError> {
        let Some(after) = parse_position(sort, after) else {
            return Ok(Vec::new());
        };
        let pattern = filter.query.as_deref().map(like_pattern);
        let tag_ids: Vec<&str> = filter
            .tags
            .iter()
            .flat_map(|tags| &tags.tag_ids)
            .map(String::as_str)
            .collect();
        let mut session = self.database.read().await?;
        let folder_ids = folder_ids(&mut session, organization_id, filter).await?;
        let folder_ids: Option<Vec<&str>> = folder_ids
            .as_ref()
            .map(|ids| ids.iter().map(String::as_str).collect());

        let mut query = Conditions::new(session.dialect(), organization_id);
        query.matches(pattern.as_deref());
        query.status(filter.status);
        query.folders(folder_ids.as_deref());
        query.tags(filter.tags.as_ref(), &tag_ids);
        query.after(sort, after);
        let (sql, parameters) = query.finish(sort, limit);
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(WorkflowSummary::from_row).collect()
    }

    /// The tags a workflow carries, by id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn workflow_tags(&self, workflow_id: &str) -> Result<Vec<String>, StoreError> {
        let mut session = self.database.read().await?;
        let sql = "SELECT tag_id FROM workflow_tags WHERE workflow_id = $1 ORDER BY tag_id";
        let rows = session.rows(sql, &values![workflow_id]).await?;
        rows.iter().map(|row| row.get("tag_id")).collect()
    }
}

/// `None` when the position cannot be one of this order; `Some(None)` when there is none.
#[expect(
    clippy::option_option,
    reason = "an absent position differs from an impossible one"
)]
fn parse_position(sort: Sort, after: Option<&Position<String>>) -> Option<Option<(Value<'_>, &str)>> {
    let Some(after) = after else { return Some(None) };
    let value = match sort.by {
        SortBy::Name => Value::from(&after.value),
        SortBy::UpdatedAt | SortBy::CreatedAt => Value::from(after.value.parse::<i64>().ok()?),
    };
    Some(Some((value, &after.id)))
}

async fn folder_ids(
    session: &mut Session,
    organization_id: &str,
    filter: &WorkflowFilter,
) -> Result<Option<Vec<String>>, StoreError> {
    let Some(folder_id) = &filter.folder_id else {
        return Ok(None);
    };
    let rows = session
        .rows(
            DESCENDANTS,
            &[Value::from(organization_id), Value::from(folder_id)],
        )
        .await?;
    rows.iter()
        .map(|row| row.get("id"))
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

/// A query that grows by conditions that all must hold.
struct Conditions<'a> {
    dialect: Dialect,
    sql: String,
    parameters: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    fn new(dialect: Dialect, organization_id: &'a str) -> Self {
        let sql = "SELECT id, name, name_key, active, folder_id, node_count, created_at, updated_at
                   FROM workflows WHERE organization_id = $1";
        Self {
            dialect,
            sql: sql.to_owned(),
            parameters: vec![Value::from(organization_id)],
        }
    }

    /// Adds a parameter and gives its number.
    fn parameter(&mut self, value: Value<'a>) -> usize {
        self.parameters.push(value);
        self.parameters.len()
    }

    fn matches(&mut self, pattern: Option<&'a str>) {
        if let Some(pattern) = pattern {
            let place = self.parameter(Value::from(pattern));
            self.sql
                .push_str(&format!(" AND search_text LIKE ${place} ESCAPE '\\'"));
        }
    }

    fn status(&mut self, status: Option<StatusFilter>) {
        self.sql.push_str(match status {
            None => "",
            Some(StatusFilter::Active) => " AND active",
            Some(StatusFilter::Inactive) => " AND NOT active",
            Some(StatusFilter::Draft) => " AND version_no IS NULL",
            Some(StatusFilter::Deployed) => " AND version_no IS NOT NULL",
            Some(StatusFilter::Modified) => {
                " AND version_no IS NOT NULL AND deployed_draft_hash <> draft_hash"
            }
        });
    }

    fn folders(&mut self, folder_ids: Option<&'a [&'a str]>) {
        if let Some(folder_ids) = folder_ids {
            let place = self.parameter(Value::Texts(folder_ids));
            self.sql
                .push_str(&format!(" AND folder_id {}", self.dialect.one_of(place)));
        }
    }

    fn tags(&mut self, filter: Option<&TagFilter>, tag_ids: &'a [&'a str]) {
        let Some(filter) = filter else { return };
        if !filter.all {
            let place = self.parameter(Value::Texts(tag_ids));
            let one_of = self.dialect.one_of(place);
            self.sql.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM workflow_tags t WHERE t.workflow_id = workflows.id AND t.tag_id {one_of})"
            ));
            return;
        }
        for tag_id in tag_ids {
            let place = self.parameter(Value::from(*tag_id));
            self.sql.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM workflow_tags t WHERE t.workflow_id = workflows.id AND t.tag_id = ${place})"
            ));
        }
    }

    fn after(&mut self, sort: Sort, after: Option<(Value<'a>, &'a str)>) {
        let Some((value, id)) = after else { return };
        let value = self.parameter(value);
        let id = self.parameter(Value::from(id));
        let beyond = if sort.descending { "<" } else { ">" };
        self.sql.push_str(&format!(
            " AND ({}, id) {beyond} (${value}, ${id})",
            sort.column()
        ));
    }

    fn finish(mut self, sort: Sort, limit: i64) -> (String, Vec<Value<'a>>) {
        let limit = self.parameter(Value::from(limit));
        let (column, direction) = (sort.column(), sort.direction());
        let order = format!("ORDER BY {column} {direction}, id {direction}");
        // The tags are looked up for the rows of the page alone.
        let sql = format!(
            "SELECT page.*, (SELECT string_agg(tag_id, ',' ORDER BY tag_id) FROM workflow_tags
                             WHERE workflow_id = page.id) AS tag_ids
             FROM ({} {order} LIMIT ${limit}) AS page {order}",
            self.sql
        );
        (sql, self.parameters)
    }
}
