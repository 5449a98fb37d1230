//! Rows: what callers give and get, keyed by column name, and what is kept, keyed by column id.

use std::collections::HashSet;

use contract::validation::Violation;
use serde_json::{Map, Value};

use super::{Column, Key, accept, find, key};

/// Values by column id; a column without a value has no entry.
pub type Values = Map<String, Value>;

/// A row as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `row_`
    pub id: String,
    /// Its values by column id.
    pub values: Values,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

/// Why rows cannot be written as they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// Values that their columns do not accept, or columns that there are none of; paths by column name.
    #[error("the row does not fit the table: {}", summary(.0))]
    Invalid(Vec<Violation>),
    /// As `Invalid`, of one row among several: its place, from zero.
    #[error("row {} does not fit the table: {}", .0, summary(.1))]
    InvalidRow(usize, Vec<Violation>),
    /// Another row has this value of the unique key column.
    #[error("a row with this value of the unique key {0} exists already; update it or choose another value")]
    Duplicate(String),
    /// More rows than one write may touch.
    #[error("more than {0} rows would be written at once; narrow it down")]
    TooMany(usize),
}

fn summary(violations: &[Violation]) -> String {
    let parts: Vec<String> = violations
        .iter()
        .map(|violation| format!("{} {}", violation.path, violation.message))
        .collect();
    parts.join("; ")
}

impl Row {
    /// The row as callers see it: every column by its name, null where it has no value.
    #[must_use]
    pub fn to_object(&self, columns: &[Column]) -> Map<String, Value> {
        let mut object = Map::with_capacity(columns.len() + 3);
        object.insert("id".to_owned(), Value::from(self.id.as_str()));
        for column in columns {
            let value = self.values.get(&column.id).cloned();
            object.insert(column.name.clone(), value.unwrap_or_default());
        }
        object.insert("createdAt".to_owned(), Value::from(self.created_at));
        object.insert("updatedAt".to_owned(), Value::from(self.updated_at));
        object
    }

    /// The row's sort key of a column.
    #[must_use]
    pub fn key(&self, column: &Column) -> Key {
        let value = self.values.get(&column.id);
        key(column.column_type, value.unwrap_or(&Value::Null))
    }
}

/// The same values by column name. What names no column stays as it is.
#[must_use]
pub fn by_column_name(columns: &[Column], given: &Map<String, Value>) -> Map<String, Value> {
    let named = given.iter().map(|(name, value)| {
        let column = find(columns, name);
        (column.map_or(name, |column| &column.name).clone(), value.clone())
    });
    named.collect()
}

/// Sets given values, by column id or name, on the values of a row; null clears. The row must then be complete.
///
/// # Errors
/// All that is wrong; paths as the columns are named.
pub fn given_values(
    columns: &[Column],
    mut values: Values,
    given: &Map<String, Value>,
) -> Result<Values, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut refuse = |name: &str, message: &str| {
        violations.push(Violation {
            path: name.to_owned(),
            message: message.to_owned(),
        });
    };
    let mut named = HashSet::new();
    for (name, value) in given {
        let Some(column) = find(columns, name) else {
            refuse(name, "is not a column of the table");
            continue;
        };
        if !named.insert(&column.id) {
            refuse(name, "names a column that is given already");
            continue;
        }
        if value.is_null() {
            values.remove(&column.id);
            continue;
        }
        match accept(column.column_type, value) {
            Ok(value) => _ = values.insert(column.id.clone(), value),
            Err(message) => refuse(name, message),
        }
    }
    let is_missing = |column: &&Column| column.required && !values.contains_key(&column.id);
    for column in columns.iter().filter(is_missing) {
        let value = given.get(&column.id).or_else(|| given.get(&column.name));
        // A value that was given and refused is not missing as well.
        if value.is_none_or(Value::is_null) {
            refuse(&column.name, "must have a value");
        }
    }
    if violations.is_empty() {
        Ok(values)
    } else {
        Err(violations)
    }
}
