//! Lists of a workflow's runs, newest first, and what is searched for in them.
//!
//! A page takes the same time whatever the number of runs, with one exception: a part out of the middle of an id is looked
//! for in run after run.

use sqlx::AssertSqlSafe;

use super::dialect::Dialect;
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
    /// As a whole id.
    Id(String),
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
        if id::is_valid(id::Kind::Run, &query) {
            return Self::Id(query);
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
        let search = Search::of(query);
        let text = match &search {
            Search::Statuses(statuses) if statuses.is_empty() => return Ok(Vec::new()),
            Search::Anything | Search::Statuses(_) => None,
            Search::Id(run_id) => Some(run_id.clone()),
            Search::Prefix(prefix) => {
                below = below.min(format!("{prefix}{LAST}"));
                Some(prefix.clone())
            }
            Search::Anywhere(query) => Some(like_pattern(query)),
        };
        let mut parameters = Vec::from(values![organization_id, workflow_id, &below]);
        parameters.extend(text.as_ref().map(Value::from));
        let mut session = self.database.read().await?;
        let page = Page::new(session.dialect(), limit);
        let mut rows = session.rows(AssertSqlSafe(page.of(&search)), &parameters).await?;
        rows.truncate(usize::try_from(limit).unwrap_or(0));
        rows.iter().map(Run::from_row).collect()
    }
}

/// The statement for a page: `$1` is the organization, `$2` the workflow, `$3` what all ids are below, `$4` the text.
struct Page {
    dialect: Dialect,
    limit: i64,
}

/// Rows that a statement can ask for.
const LIMITS: [i64; 3] = [1, 51, 201];

impl Page {
    /// The number stands in the statement, where PostgreSQL's planner sees that it is small; so there are few of them, to
    /// be found prepared.
    fn new(dialect: Dialect, limit: i64) -> Self {
        let enough = LIMITS.into_iter().find(|&enough| enough >= limit);
        Self {
            dialect,
            limit: enough.unwrap_or(limit),
        }
    }

    fn of(&self, search: &Search) -> String {
        let id = self.dialect.run_id_in_lists();
        match search {
            Search::Anything => self.with(""),
            Search::Id(_) => self.with(&format!("AND {id} = $4")),
            Search::Prefix(_) => self.with(&format!("AND {id} >= $4")),
            Search::Statuses(statuses) => self.of_statuses(statuses),
            Search::Anywhere(_) => self.with("AND (status LIKE $4 ESCAPE '\\' OR id LIKE $4 ESCAPE '\\')"),
        }
    }

    /// The organization, which all runs of a workflow share, is compared last: what the planner thinks that it leaves of the
    /// runs would lead it to other indexes.
    fn with(&self, condition: &str) -> String {
        let (id, limit) = (self.dialect.run_id_in_lists(), self.limit);
        format!(
            "SELECT * FROM (
                 SELECT {READ_COLUMNS} FROM runs
                 WHERE workflow_id = $2 AND {id} < $3 {condition} ORDER BY {id} DESC LIMIT {limit}) AS page
             WHERE organization_id = $1 ORDER BY id DESC"
        )
    }

    /// A page of each status, of which the newest are the page.
    fn of_statuses(&self, statuses: &[RunStatus]) -> String {
        let of_one = |status: &RunStatus| {
            let is_rare = match (status, self.dialect) {
                // Succeeded runs are found by walking through the workflow's: most are. As for the others, PostgreSQL
                // knows that its index has them, and would count the condition twice.
                (RunStatus::Succeeded, _) | (_, Dialect::Postgres) => "",
                // As the index says it.
                (_, Dialect::Sqlite) => " AND status <> 'succeeded'",
            };
            let condition = format!("AND status = '{}'{is_rare}", status.as_word());
            format!("SELECT * FROM ({}) AS of_one", self.with(&condition))
        };
        let all: Vec<String> = statuses.iter().map(of_one).collect();
        format!(
            "{} ORDER BY id DESC LIMIT {}",
            all.join(" UNION ALL "),
            self.limit
        )
    }
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
        let whole = id::new(id::Kind::Run);
        assert_eq!(search(&whole), Search::Id(whole.clone()));
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
