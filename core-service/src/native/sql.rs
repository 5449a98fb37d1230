//! What the drivers of SQL databases share: what they do and are told, rows to be inserted, and rows that are read.

use serde_json::{Map, Value, json};

use super::values::misfit;
use super::{Failure, Limits, Operation, Values};

/// What each of them does.
pub const OPERATIONS: &[Operation] = &[
    Operation::list("query", &["query"], &["parameters", "limit"]),
    Operation::one("execute", &["query"], &["parameters"]),
    Operation::one("insert", &["table", "rows"], &[]),
    Operation::list("latest_rows", &["table", "column"], &["limit"]),
    Operation::list("tables", &[], &[]),
    Operation::list("columns", &["table"], &[]),
];
/// What each of them has to be told to connect.
pub const CONNECTION_FIELDS: &[&str] = &[
    "host",
    "port",
    "database",
    "username",
    "password",
    "tls",
    "caCertificate",
];
/// Rows that a trigger looks at, when nobody says how many.
pub const LATEST: usize = 1_000;
/// The most rows that are inserted at once.
const MOST_INSERTED: usize = 10_000;

/// The rows to be inserted: one object, or a list of such.
pub fn rows(given: Values<'_>) -> Result<Vec<&Map<String, Value>>, Failure> {
    let expected = || {
        misfit(
            "rows",
            "an object of values by column, or a list of such that is not empty",
        )
    };
    let rows = match given.required("rows")? {
        Value::Array(rows) => rows.iter().map(Value::as_object).collect::<Option<Vec<_>>>(),
        row => row.as_object().map(|row| vec![row]),
    };
    match rows.filter(|rows| !rows.is_empty()).ok_or_else(expected)? {
        rows if rows.len() > MOST_INSERTED => Err(misfit("rows", "at most 10,000")),
        rows => Ok(rows),
    }
}

/// The columns that any of the rows has.
pub fn columns<'a>(rows: &[&'a Map<String, Value>]) -> Vec<&'a str> {
    let mut columns: Map<String, Value> = Map::new();
    let mut ordered = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if columns.insert(name.clone(), Value::Null).is_none() {
            ordered.push(name.as_str());
        }
    }
    ordered
}

/// Names for the columns of a result: one that stands there twice gets a number.
pub fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let mut number = 1;
        let mut candidate = name.to_owned();
        while distinct.contains(&candidate) {
            number += 1;
            candidate = format!("{name}_{number}");
        }
        distinct.push(candidate);
    }
    distinct
}

/// The rows of a result, as many as may be read.
pub struct Rows {
    rows: Vec<Value>,
    /// Rows that are wanted; those after them are not read.
    enough: Option<usize>,
    most: usize,
}

impl Rows {
    pub fn new(enough: Option<usize>, limits: Limits) -> Self {
        Self {
            rows: Vec::new(),
            enough,
            most: limits.items,
        }
    }

    /// Takes a row. Gives whether more are wanted.
    pub fn take(&mut self, row: Map<String, Value>) -> Result<bool, Failure> {
        if self.rows.len() >= self.most {
            let message = format!(
                "there are more than {} rows; let the statement, or limit, ask for fewer",
                self.most
            );
            return Err(Failure::TooLarge(message));
        }
        self.rows.push(Value::Object(row));
        Ok(!self.are_enough())
    }

    /// Whether there are as many as are wanted, and perhaps more to be read.
    pub fn are_enough(&self) -> bool {
        self.enough.is_some_and(|enough| self.rows.len() >= enough)
    }

    /// The rows as a list.
    pub fn list(self) -> Value {
        Value::Array(self.rows)
    }

    /// The rows, and how many were concerned.
    pub fn summary(self, count: u64) -> Value {
        json!({ "count": count, "rows": self.rows })
    }
}
