//! What runs ask people, while nobody has answered. `commit` writes and deletes these rows together with the events that
//! they follow from; here they are found.

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::page::like_pattern;
use super::run_batch::RunChange;
use super::value::{Row, Value, values};
use super::{Store, StoreError};

/// An open request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanRequest {
    /// `hreq_`
    pub id: String,
    /// The organization whose run asks.
    pub organization_id: String,
    /// The run's workflow; null when that was deleted.
    pub workflow_id: Option<String>,
    /// The run.
    pub run_id: String,
    /// The run's attempt.
    pub run_attempt: i64,
    /// The node that waits.
    pub node_id: i64,
    /// The iteration it waits in; empty outside of scopes.
    pub iteration: String,
    /// What is asked, as the runtime wrote it.
    pub question: Vec<u8>,
    /// When the node waits no longer, in epoch milliseconds.
    pub due_at: Option<i64>,
    /// Epoch milliseconds.
    pub created_at: i64,
}

/// A request of a run, to be written with the event that the node waits.
#[derive(Debug, Clone)]
pub struct NewHumanRequest {
    /// `hreq_`, new.
    pub id: String,
    /// The organization whose run asks.
    pub organization_id: String,
    /// The run's workflow.
    pub workflow_id: String,
    /// The run's attempt.
    pub run_attempt: i64,
    /// Where it is asked.
    pub place: HumanRequestPlace,
    /// What is asked.
    pub question: Vec<u8>,
    /// Who should answer. No name holds a line feed.
    pub assignees: Vec<String>,
    /// When the node waits no longer, in epoch milliseconds.
    pub due_at: Option<i64>,
    /// Epoch milliseconds.
    pub created_at: i64,
}

/// A node of a run that asks or asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanRequestPlace {
    /// The node.
    pub node_id: i64,
    /// Its iteration; empty outside of scopes.
    pub iteration: String,
}

/// Which open requests to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct HumanRequestFilter<'a> {
    /// Those of runs of a workflow.
    pub workflow_id: Option<&'a str>,
    /// Those of a run.
    pub run_id: Option<&'a str>,
    /// Those that name this assignee, upper and lower case alike.
    pub assignee: Option<&'a str>,
}

const COLUMNS: &str = "id, organization_id, \
     (SELECT w.id FROM workflows w WHERE w.id = human_requests.workflow_id) AS workflow_id, \
     run_id, run_attempt, node_id, iteration, question, due_at, created_at";

impl HumanRequest {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            workflow_id: row.get("workflow_id")?,
            run_id: row.get("run_id")?,
            run_attempt: row.get("run_attempt")?,
            node_id: row.get("node_id")?,
            iteration: row.get("iteration")?,
            question: row.get("question")?,
            due_at: row.get("due_at")?,
            created_at: row.get("created_at")?,
        })
    }
}

impl Store {
    /// An organization's open requests, newest first, from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_human_requests(
        &self,
        organization_id: &str,
        filter: &HumanRequestFilter<'_>,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<HumanRequest>, StoreError> {
        let assignee = filter
            .assignee
            .map(|assignee| like_pattern(&between_lines(assignee)));
        let mut sql = format!("SELECT {COLUMNS} FROM human_requests WHERE organization_id = $1");
        let mut parameters: Vec<Value<'_>> = values![organization_id, limit].to_vec();
        for (condition, value) in [
            ("workflow_id = ", filter.workflow_id),
            ("run_id = ", filter.run_id),
            ("assignees LIKE ", assignee.as_deref()),
            ("id < ", after),
        ] {
            let Some(value) = value else { continue };
            parameters.push(value.into());
            sql.push_str(&format!(" AND {condition}${}", parameters.len()));
            if condition.ends_with("LIKE ") {
                sql.push_str(" ESCAPE '\\'");
            }
        }
        sql.push_str(" ORDER BY id DESC LIMIT $2");
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(HumanRequest::from_row).collect()
    }

    /// The open requests of a node of a run, one for each iteration that waits; at most `limit`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn human_requests_of_node(
        &self,
        organization_id: &str,
        run_id: &str,
        node_id: i64,
        iteration: Option<&str>,
        limit: i64,
    ) -> Result<Vec<HumanRequest>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM human_requests WHERE organization_id = $1 AND run_id = $2 AND node_id = $3
                 AND ($4 IS NULL OR iteration = $4) ORDER BY id LIMIT $5"
        );
        let mut session = self.database.read().await?;
        let parameters = values![organization_id, run_id, node_id, iteration, limit];
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(HumanRequest::from_row).collect()
    }

    /// The open request that an answer link leads to. The link is the capability, so no organization is asked for.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_human_request(&self, id: &str) -> Result<Option<HumanRequest>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM human_requests WHERE id = $1");
        let mut session = self.database.read().await?;
        let row = session.row(AssertSqlSafe(sql), &values![id]).await?;
        row.as_ref().map(HumanRequest::from_row).transpose()
    }
}

/// A name as `assignees` holds it.
fn between_lines(name: &str) -> String {
    format!("\n{}\n", name.to_lowercase())
}

const CLOSE: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("node_id", Kind::Integer),
        ("iteration", Kind::Text),
    ],
    tail: "DELETE FROM human_requests WHERE (run_id, node_id, iteration) IN (SELECT v.run_id, v.node_id, v.iteration FROM v)",
};

const CLOSE_ALL: BatchStatement = BatchStatement {
    columns: &[("run_id", Kind::Text)],
    tail: "DELETE FROM human_requests WHERE run_id IN (SELECT v.run_id FROM v)",
};

const OPEN: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("organization_id", Kind::Text),
        ("workflow_id", Kind::Text),
        ("run_id", Kind::Text),
        ("run_attempt", Kind::Integer),
        ("node_id", Kind::Integer),
        ("iteration", Kind::Text),
        ("question", Kind::Bytes),
        ("assignees", Kind::Text),
        ("due_at", Kind::Integer),
        ("created_at", Kind::Integer),
    ],
    tail: "INSERT INTO human_requests (id, organization_id, workflow_id, run_id, run_attempt, node_id, iteration, question,
               assignees, due_at, created_at)
           SELECT v.* FROM v",
};

/// Closes what is over and opens what is new, as a commit's changes say.
pub(super) async fn write(session: &mut Session, changes: &[&RunChange]) -> Result<(), StoreError> {
    let runs = changes.iter().filter(|change| change.all_requests_closed);
    let runs: Vec<Value<'_>> = runs.map(|change| Value::from(&change.run_id)).collect();
    session.batch(&CLOSE_ALL, &runs).await?;

    let closed: Vec<Value<'_>> = changes
        .iter()
        .flat_map(|change| {
            change
                .requests_closed
                .iter()
                .map(move |place| (&change.run_id, place))
        })
        .flat_map(|(run_id, place)| values![run_id, place.node_id, &place.iteration])
        .collect();
    session.batch(&CLOSE, &closed).await?;

    let opened: Vec<(&RunChange, &NewHumanRequest, String)> = changes
        .iter()
        .flat_map(|change| {
            change
                .requests_opened
                .iter()
                .map(move |request| (*change, request))
        })
        .map(|(change, request)| {
            let assignees = request.assignees.iter().map(|name| between_lines(name));
            (change, request, assignees.collect())
        })
        .collect();
    let rows: Vec<Value<'_>> = opened
        .iter()
        .flat_map(|(change, request, assignees)| {
            values![
                &request.id,
                &request.organization_id,
                &request.workflow_id,
                &change.run_id,
                request.run_attempt,
                request.place.node_id,
                &request.place.iteration,
                &request.question,
                assignees,
                request.due_at,
                request.created_at,
            ]
        })
        .collect();
    session.batch(&OPEN, &rows).await?;
    Ok(())
}
