//! What an operation makes of its parameters: one statement, whose values are bound and never written into its text.

use serde_json::{Map, Value};

use super::open::Access;
use super::{Call, Failure};
use crate::native::sql;
use crate::native::values::misfit;

/// A statement, and how it is run.
pub struct Statement {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
    /// Whether it may change anything.
    pub(super) access: Access,
    /// Rows that are enough.
    pub(super) enough: Option<usize>,
}

const TABLES: &str = "SELECT table_schema AS schema, table_name AS name, \
     CASE table_schema WHEN 'public' THEN table_name ELSE table_schema || '.' || table_name END AS table \
     FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2";
const COLUMNS: &str = "SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute \
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum";

impl Statement {
    pub(super) fn of(call: Call<'_>) -> Result<Self, Failure> {
        let given = call.parameters;
        Ok(match call.operation {
            "query" => Self {
                enough: given.count("limit")?,
                ..Self::reading(given.required_text("query")?, given.list("parameters")?.to_vec())
            },
            "execute" => Self::writing(given.required_text("query")?, given.list("parameters")?.to_vec()),
            "insert" => insert(given.required_text("table")?, &sql::rows(given)?)?,
            "latest_rows" => {
                let (table, column) = (
                    named(given.required_text("table")?)?,
                    quoted(given.required_text("column")?),
                );
                let limit = given.count("limit")?.unwrap_or(sql::LATEST);
                let text = format!("SELECT * FROM {table} ORDER BY {column} DESC NULLS LAST LIMIT {limit}");
                Self::reading(&text, Vec::new())
            }
            "tables" => Self::reading(TABLES, Vec::new()),
            "columns" => Self::reading(COLUMNS, vec![named(given.required_text("table")?)?.into()]),
            other => return Err(misfit("operation", &format!("known; {other} is not"))),
        })
    }

    fn reading(text: &str, values: Vec<Value>) -> Self {
        Self {
            access: Access::Read,
            ..Self::writing(text, values)
        }
    }

    fn writing(text: &str, values: Vec<Value>) -> Self {
        Self {
            text: text.to_owned(),
            values,
            access: Access::Write,
            enough: None,
        }
    }
}

/// Inserts all rows at once. A column that a row does not have gets its default.
fn insert(table: &str, rows: &[&Map<String, Value>]) -> Result<Statement, Failure> {
    let columns = sql::columns(rows);
    let table = named(table)?;
    if columns.is_empty() {
        let text = format!(
            "INSERT INTO {table} SELECT FROM generate_series(1, {}) RETURNING *",
            rows.len()
        );
        return Ok(Statement::writing(&text, Vec::new()));
    }
    let mut values = Vec::new();
    let mut tuple = |row: &&Map<String, Value>| {
        let place = |column: &&str| match row.get(*column) {
            None => "DEFAULT".to_owned(),
            Some(value) => {
                values.push(value.clone());
                format!("${}", values.len())
            }
        };
        format!("({})", columns.iter().map(place).collect::<Vec<_>>().join(", "))
    };
    let tuples: Vec<String> = rows.iter().map(&mut tuple).collect();
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let text = format!(
        "INSERT INTO {table} ({}) VALUES {} RETURNING *",
        columns.join(", "),
        tuples.join(", ")
    );
    if values.len() > usize::from(u16::MAX) {
        return Err(misfit("rows", "fewer: a statement has at most 65,535 values"));
    }
    Ok(Statement::writing(&text, values))
}

/// A table's name, perhaps after that of its schema, as an identifier.
fn named(table: &str) -> Result<String, Failure> {
    let parts: Vec<&str> = table.split('.').collect();
    match parts.len() <= 2 && parts.iter().all(|part| !part.is_empty()) {
        true => Ok(parts.into_iter().map(quoted).collect::<Vec<_>>().join(".")),
        false => Err(misfit("table", "the name of a table, or schema.table")),
    }
}

/// A name that is only a name, whatever it holds.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
