//! Lists of a workflow's runs, newest first, and what is searched for in them.
//!
//! A page takes the same time whatever the number of runs, with one exception: a part out of the middle of an id is looked
//! for in run after run.

use sqlx::AssertSqlSafe;

use super::page::like_pattern;
use super::run::{READ_COLUMNS, Run, RunStatus};
use super::value::{Value, values};
use super::{Store, StoreError};
use crate::id;

const STATUSES: [RunStatus; 6] = [
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Succeeded,
    RunStatus::Failed,
    RunStatus::Cancelled,
];

/// Sorts behind every character of an id.
const LAST: &str = "~";

/// Where a text can be found.
#[derive(Debug, PartialEq, Eq)]
enum Search {
    /// In every run.
    Anything,
    /// At the beginning of ids only.
    Prefix(String),
    /// In these statuses only.
    Statuses(Vec<RunStatus>),
    /// In statuses and ids.
    Anywhere(String),
}

impl Search {
    fn of(query: Option<&str>) -> Self {
        let Some(query) = query.map(str::to_lowercase) else {
            return Self::Anything;
        };
        let prefix = format!("{}_", id::Kind::Run.prefix());
        if prefix.contains(&query) {
            return Self::Anything;
        }
        if query.starts_with(&prefix) {
            return Self::Prefix(query);
        }
        let statuses = STATUSES.into_iter();
        let statuses: Vec<_> = statuses
            .filter(|status| status.as_word().contains(&query))
            .collect();
        // Words of statuses have letters that ids have not, and the other way round.
        let mut beginnings = (0..=prefix.len()).filter_map(|cut| query.strip_prefix(&prefix[cut..]));
        match beginnings.any(|rest| rest.chars().all(id::is_digit)) {
            true => Self::Anywhere(query),
            false => Self::Statuses(statuses),
        }
    }
}

impl Store {
    /// A workflow's runs, newest first, from the one after `after`. `query` is searched for in status and id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_runs(
        &self,
        organization_id: &str,
        workflow_id: &str,
        query: Option<&str>,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Run>, StoreError> {
        // Every id is smaller.
        let mut below = after.unwrap_or(LAST).to_owned();
        let (sql, text) = match Search::of(query) {
            Search::Anything => (page(""), None),
            Search::Prefix(prefix) => {
                below = below.min(format!("{prefix}{LAST}"));
                (page("AND id >= $5"), Some(prefix))
            }
            Search::Statuses(statuses) if statuses.is_empty() => return Ok(Vec::new()),
            Search::Statuses(statuses) => (page_of_statuses(&statuses), None),
            Search::Anywhere(query) => (
                page("AND (status LIKE $5 ESCAPE '\\' OR id LIKE $5 ESCAPE '\\')"),
                Some(like_pattern(&query)),
            ),
        };
        let mut parameters = Vec::from(values![organization_id, workflow_id, limit, &below]);
        parameters.extend(text.as_ref().map(Value::from));
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Run::from_row).collect()
    }
}

fn page(condition: &str) -> String {
    format!(
        "SELECT {READ_COLUMNS} FROM runs
         WHERE organization_id = $1 AND workflow_id = $2 AND id < $4 {condition} ORDER BY id DESC LIMIT $3"
    )
}

/// A page of each status, of which the newest are the page.
fn page_of_statuses(statuses: &[RunStatus]) -> String {
    let of_one = |status: &RunStatus| {
        let is_rare = match status {
            // Found by walking through the workflow's runs: most are.
            RunStatus::Succeeded => "",
            // As the index of the others says it.
            _ => " AND status <> 'succeeded'",
        };
        let condition = format!("AND status = '{}'{is_rare}", status.as_word());
        format!("SELECT * FROM ({}) AS of_one", page(&condition))
    };
    let all: Vec<String> = statuses.iter().map(of_one).collect();
    format!("{} ORDER BY id DESC LIMIT $3", all.join(" UNION ALL "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_for_where_it_can_be() {
        let search = |query| Search::of(Some(query));
        assert_eq!(Search::of(None), Search::Anything);
        for query in ["run_", "run", "un_", "R", "_"] {
            assert_eq!(search(query), Search::Anything, "{query}");
        }
        assert_eq!(search("RUN_01H"), Search::Prefix("run_01h".to_owned()));
        assert_eq!(search("Fail"), Search::Statuses(vec![RunStatus::Failed]));
        let both = vec![RunStatus::Running, RunStatus::Waiting];
        assert_eq!(search("ing"), Search::Statuses(both));
        assert_eq!(search("nothing like it"), Search::Statuses(Vec::new()));
        for query in ["ed", "01h", "n_01", "xyz"] {
            assert_eq!(search(query), Search::Anywhere(query.to_owned()), "{query}");
        }
    }
}
