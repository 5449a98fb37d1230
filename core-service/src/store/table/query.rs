//! Reading rows: conditions, orders and pages by key.
//!
//! In the order of creation or of an indexed column, the database walks an index from where the page begins. Conditions
//! on indexed columns are asked of the index: one that few rows satisfy is answered first and its rows are sorted, so
//! that a page costs about the same wherever it is and whatever matches. Conditions on other columns are tried on each
//! row that is met; the order of a column without an index means reading all rows that may match.
//! Rows without a value in the column of the order come last in both directions; ties go by id.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use sqlx::AssertSqlSafe;

use super::super::database::Session;
use super::super::page::Position;
use super::super::{Store, StoreError};
use super::Table;
use super::rows::{ROW_COLUMNS, from_row};
use super::statement::Statement;
use crate::table::{Column, Condition, FIRST_VALUE, Key, KeyTest, NULL, Row};

/// A condition with more keys than this is tried on rows.
const MAX_LISTED_KEYS: usize = 100;
/// A condition that fewer rows satisfy is answered first.
const FEW: i64 = 4_000;
/// How many rows conditions are tried on at a time: at first, and at most.
const CHUNK: (i64, i64) = (256, 2_048);

static NO_BOUND: Bound<Key> = Bound::Unbounded;

/// The order of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOrder {
    /// By this column; by creation without one.
    pub column: Option<Column>,
    /// From the greatest down.
    pub descending: bool,
}

impl RowOrder {
    /// By creation, the last one first.
    pub const NEWEST_FIRST: Self = Self {
        column: None,
        descending: true,
    };
}

/// A page of rows.
#[derive(Debug, Clone)]
pub struct RowQuery<'a> {
    /// All of them hold.
    pub conditions: &'a [Condition],
    /// In this order.
    pub order: &'a RowOrder,
    /// After the row with this sort key (empty when the order is that of creation) and id.
    pub after: Option<&'a Position<Key>>,
    /// At most so many.
    pub limit: i64,
}

impl Store {
    /// A page of the rows of a table.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_rows(&self, table: &Table, query: &RowQuery<'_>) -> Result<Vec<Row>, StoreError> {
        let mut session = self.database.read().await?;
        page(&mut session, table, query).await
    }

    /// How many rows of a table satisfy the conditions.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_rows(&self, table: &Table, conditions: &[Condition]) -> Result<i64, StoreError> {
        if conditions.is_empty() {
            return Ok(table.row_count);
        }
        let mut session = self.database.read().await?;
        let plan = Plan::new(&mut session, table, conditions, None).await?;
        if plan.tried.is_empty() {
            return plan.count(&mut session).await;
        }
        let mut count = 0;
        plan.each(&mut session, |_| count += 1).await?;
        Ok(count)
    }
}

/// A page of the rows of a table, in this session.
pub(super) async fn page(
    session: &mut Session,
    table: &Table,
    query: &RowQuery<'_>,
) -> Result<Vec<Row>, StoreError> {
    let RowOrder { column, descending } = query.order;
    let plan = Plan::new(session, table, query.conditions, column.as_ref()).await?;
    let limit = usize::try_from(query.limit).unwrap_or_default();
    let mut found = Vec::new();
    match column {
        Some(column) if column.indexed => {
            let among_nulls = query.after.filter(|after| after.value.as_slice() == NULL);
            if among_nulls.is_none() {
                let values = Path::new(Some((column, Part::Values)), *descending);
                plan.walk(session, &values, query.after.cloned(), limit, &mut found)
                    .await?;
            }
            let nulls = Path::new(Some((column, Part::Nulls)), *descending);
            plan.walk(session, &nulls, among_nulls.cloned(), limit, &mut found)
                .await?;
        }
        Some(column) => found = plan.sorted(session, column, query).await?,
        None => {
            let path = Path::new(None, *descending);
            plan.walk(session, &path, query.after.cloned(), limit, &mut found)
                .await?;
        }
    }
    Ok(found)
}

/// A condition that the index answers.
#[derive(Clone, Copy)]
struct Asked<'a> {
    column: &'a Column,
    test: &'a KeyTest,
}

/// How the conditions of a query are met.
struct Plan<'a> {
    table: &'a Table,
    /// By the index.
    asked: Vec<Asked<'a>>,
    /// The one of them that is answered first, because few rows satisfy it.
    first: Option<Asked<'a>>,
    /// By trying them on rows.
    tried: Vec<&'a Condition>,
}

/// A way through the rows of a table: by creation, or through a part of a column's index.
struct Path<'a> {
    through: Option<(&'a Column, Part)>,
    descending: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Values,
    Nulls,
}

impl<'a> Path<'a> {
    const fn new(through: Option<(&'a Column, Part)>, descending: bool) -> Self {
        Self { through, descending }
    }

    /// Where the rows after this one begin.
    fn position(&self, row: &Row) -> Position<Key> {
        let column = self.through.map(|(column, _)| column);
        Position {
            value: column.map(|column| row.key(column)).unwrap_or_default(),
            id: row.id.clone(),
        }
    }
}

impl<'a> Plan<'a> {
    async fn new(
        session: &mut Session,
        table: &'a Table,
        conditions: &'a [Condition],
        order: Option<&Column>,
    ) -> Result<Self, StoreError> {
        let mut plan = Self {
            table,
            asked: Vec::new(),
            first: None,
            tried: Vec::new(),
        };
        for condition in conditions {
            match asked(condition) {
                Some(asked) => plan.asked.push(asked),
                None => plan.tried.push(condition),
            }
        }
        plan.first = plan.rarest(session, order).await?;
        Ok(plan)
    }

    /// The condition that the fewest rows satisfy, if they are few. A range of the order's own column is walked anyway.
    async fn rarest(
        &self,
        session: &mut Session,
        order: Option<&Column>,
    ) -> Result<Option<Asked<'a>>, StoreError> {
        let mut rarest = (FEW, None);
        for asked in &self.asked {
            let is_walked = order.is_some_and(|column| column.id == asked.column.id)
                && matches!(asked.test, KeyTest::Between(..));
            if !is_walked {
                let number = self.few(session, *asked).await?;
                if number < rarest.0 {
                    rarest = (number, Some(*asked));
                }
            }
        }
        Ok(rarest.1)
    }

    /// How many rows satisfy a condition, counted up to [`FEW`].
    async fn few(&self, session: &mut Session, asked: Asked<'a>) -> Result<i64, StoreError> {
        let mut statement = Statement::default();
        statement.push("SELECT COUNT(*) AS number FROM (SELECT 1 FROM database_row_keys m WHERE ");
        self.entries(&mut statement, asked);
        statement.with(" LIMIT ", FEW);
        statement.push(") AS few");
        number(session, statement).await
    }

    /// How many rows satisfy all conditions, when the index answers them all.
    async fn count(&self, session: &mut Session) -> Result<i64, StoreError> {
        let Some(first) = self.first.or_else(|| self.asked.first().copied()) else {
            return Ok(self.table.row_count);
        };
        let mut statement = Statement::default();
        statement.push("SELECT COUNT(*) AS number FROM database_row_keys m WHERE ");
        self.entries(&mut statement, first);
        for asked in &self.asked {
            // The same range asked twice counts the same.
            if !std::ptr::eq(asked.test, first.test) {
                ask(&mut statement, *asked, "m.row_id");
            }
        }
        number(session, statement).await
    }

    /// The conditions on entries `m` of the index that satisfy this one.
    fn entries(&self, statement: &mut Statement<'a>, asked: Asked<'a>) {
        statement.with("m.database_id = ", &self.table.id);
        statement.with(" AND m.column_id = ", &asked.column.id);
        statement.key_test(asked.test, |statement| statement.push("m.sort_key"));
    }

    fn satisfies(&self, row: &Row) -> bool {
        self.tried
            .iter()
            .all(|condition| condition.holds(row.values.get(&condition.column().id)))
    }

    /// Follows a path from `after` until `found` has `limit` rows.
    async fn walk(
        &self,
        session: &mut Session,
        path: &Path<'_>,
        mut after: Option<Position<Key>>,
        limit: usize,
        found: &mut Vec<Row>,
    ) -> Result<(), StoreError> {
        let missing = i64::try_from(limit.saturating_sub(found.len())).unwrap_or(i64::MAX);
        let mut chunk = if self.tried.is_empty() {
            missing
        } else {
            missing.max(CHUNK.0)
        };
        while found.len() < limit {
            let rows = self.fetch(session, path, after.as_ref(), chunk).await?;
            let is_last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < chunk;
            after = rows.last().map(|row| path.position(row));
            found.extend(rows.into_iter().filter(|row| self.satisfies(row)));
            if is_last {
                break;
            }
            chunk = (chunk * 2).min(CHUNK.1.max(missing));
        }
        found.truncate(limit);
        Ok(())
    }

    /// Meets every row that satisfies all conditions, in the order of creation.
    async fn each(&self, session: &mut Session, mut meet: impl FnMut(Row)) -> Result<(), StoreError> {
        let path = Path::new(None, false);
        let mut after = None;
        loop {
            let rows = self.fetch(session, &path, after.as_ref(), CHUNK.1).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(path.position(last));
            rows.into_iter()
                .filter(|row| self.satisfies(row))
                .for_each(&mut meet);
        }
    }

    /// A page in the order of a column without an index.
    async fn sorted(
        &self,
        session: &mut Session,
        column: &Column,
        query: &RowQuery<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let descending = query.order.descending;
        let after = query.after.map(|after| Rank {
            key: after.value.clone(),
            id: after.id.clone(),
            descending,
        });
        let limit = usize::try_from(query.limit).unwrap_or_default();
        let mut best: BTreeMap<Rank, Row> = BTreeMap::new();
        self.each(session, |row| {
            let rank = Rank {
                key: row.key(column),
                id: row.id.clone(),
                descending,
            };
            if after.as_ref().is_none_or(|after| rank > *after) {
                best.insert(rank, row);
                if best.len() > limit {
                    best.pop_last();
                }
            }
        })
        .await?;
        Ok(best.into_values().collect())
    }

    async fn fetch(
        &self,
        session: &mut Session,
        path: &Path<'_>,
        after: Option<&Position<Key>>,
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.select(path, after, limit);
        let rows = session
            .rows(AssertSqlSafe(statement.sql), &statement.parameters)
            .await?;
        rows.iter().map(from_row).collect()
    }

    /// `CROSS JOIN` keeps SQLite to the order of the tables as they are written.
    fn select<'s>(
        &'s self,
        path: &'s Path<'_>,
        after: Option<&'s Position<Key>>,
        limit: i64,
    ) -> Statement<'s> {
        let mut statement = Statement::default();
        let direction = if path.descending { "DESC" } else { "ASC" };
        if let Some(first) = self.first {
            statement
                .push("WITH few AS MATERIALIZED (SELECT m.row_id AS row_id FROM database_row_keys m WHERE ");
            self.entries(&mut statement, first);
            statement.push(") ");
        }
        statement.push("SELECT ");
        statement.push(ROW_COLUMNS);
        statement.push(" FROM ");
        if self.first.is_some() {
            statement.push("few CROSS JOIN ");
        }
        match path.through {
            Some((column, part)) => self.through(&mut statement, path, column, part, after),
            None => self.by_creation(&mut statement, path, after),
        }
        for asked in &self.asked {
            let is_walked = path
                .through
                .is_some_and(|(column, _)| column.id == asked.column.id);
            let operand = |statement: &mut Statement<'s>| statement.push("s.sort_key");
            match asked.test {
                // The end that the walk began at is behind it; SQLite would begin there again.
                KeyTest::Between(low, _) if is_walked && after.is_some() && path.descending => {
                    statement.between(low, &NO_BOUND, operand);
                }
                KeyTest::Between(_, high) if is_walked && after.is_some() => {
                    statement.between(&NO_BOUND, high, operand);
                }
                test if is_walked => statement.key_test(test, operand),
                _ => ask(&mut statement, *asked, "r.id"),
            }
        }
        statement.push(if path.through.is_some() {
            " ORDER BY s.sort_key "
        } else {
            " ORDER BY r.id "
        });
        statement.push(direction);
        if path.through.is_some() {
            statement.push(", s.row_id ");
            statement.push(direction);
        }
        statement.with(" LIMIT ", limit);
        statement
    }

    fn by_creation<'s>(
        &'s self,
        statement: &mut Statement<'s>,
        path: &Path<'_>,
        after: Option<&'s Position<Key>>,
    ) {
        statement.with("database_rows r WHERE r.database_id = ", &self.table.id);
        if self.first.is_some() {
            statement.push(" AND r.id = few.row_id");
        }
        if let Some(after) = after {
            let beyond = if path.descending {
                " AND r.id < "
            } else {
                " AND r.id > "
            };
            statement.with(beyond, &after.id);
        }
    }

    fn through<'s>(
        &'s self,
        statement: &mut Statement<'s>,
        path: &Path<'_>,
        column: &'s Column,
        part: Part,
        after: Option<&'s Position<Key>>,
    ) {
        statement.push("database_row_keys s CROSS JOIN database_rows r WHERE r.id = s.row_id AND ");
        if self.first.is_some() {
            statement.push("s.row_id = few.row_id");
        } else {
            statement.with("s.database_id = ", &self.table.id);
        }
        statement.with(" AND s.column_id = ", &column.id);
        match part {
            Part::Values if after.is_some() && !path.descending => {}
            Part::Values => statement.with(" AND s.sort_key >= ", FIRST_VALUE),
            Part::Nulls => statement.with(" AND s.sort_key = ", NULL),
        }
        if let Some(after) = after {
            let beyond = if path.descending { "<" } else { ">" };
            statement.push(&format!(" AND (s.sort_key, s.row_id) {beyond} ("));
            statement.value(&after.value);
            statement.with(", ", &after.id);
            statement.push(")");
        }
    }
}

/// The condition, when the index can answer it.
fn asked(condition: &Condition) -> Option<Asked<'_>> {
    let column = condition.column();
    let test = condition.key_test().filter(|_| column.indexed)?;
    let is_short = match test {
        KeyTest::Between(..) => true,
        KeyTest::OneOf(keys) | KeyTest::NoneOf(keys) => keys.len() <= MAX_LISTED_KEYS,
    };
    is_short.then_some(Asked { column, test })
}

/// Asks the index for the row's key. A scalar subquery is one look-up, which no planner turns into a join.
fn ask<'s>(statement: &mut Statement<'s>, asked: Asked<'s>, row_id: &str) {
    statement.key_test(asked.test, |statement| {
        statement.push("(SELECT k.sort_key FROM database_row_keys k WHERE k.row_id = ");
        statement.push(row_id);
        statement.with(" AND k.column_id = ", &asked.column.id);
        statement.push(")");
    });
}

async fn number(session: &mut Session, statement: Statement<'_>) -> Result<i64, StoreError> {
    let row = session
        .row(AssertSqlSafe(statement.sql), &statement.parameters)
        .await?;
    row.map_or(Ok(0), |row| row.get("number"))
}

/// A row's place in the order of a column.
#[derive(PartialEq, Eq)]
struct Rank {
    key: Key,
    id: String,
    descending: bool,
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = (&self.key, &self.id).cmp(&(&other.key, &other.id));
        let by_value = if self.descending {
            by_value.reverse()
        } else {
            by_value
        };
        let is_null = |rank: &Self| rank.key.as_slice() == NULL;
        is_null(self).cmp(&is_null(other)).then(by_value)
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
