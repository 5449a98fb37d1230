//! Columns, and which of them a table keeps when it is given others.

use std::collections::HashSet;

use contract::validation::Violation;
use serde::{Deserialize, Serialize};

use crate::id;

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A whole number of 64 bits.
    Integer,
    /// True or false.
    Boolean,
    /// A day: `2026-01-31`.
    Date,
    /// An instant, kept as UTC: `2026-01-31T09:00:00Z`.
    Datetime,
    /// Any JSON value but null.
    Json,
}

impl ColumnType {
    /// The word of the contract.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Json => "json",
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// `col_`; values are kept under it.
    pub id: String,
    /// The key in rows as callers see them.
    pub name: String,
    /// What its values are.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Each row has a value.
    pub required: bool,
    /// Filters and sorts on it use an index.
    pub indexed: bool,
    /// No value occurs twice. Such a column is indexed.
    pub unique: bool,
}

/// A column that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInput {
    /// The key in rows.
    pub name: String,
    /// What its values are.
    pub column_type: ColumnType,
    /// Each row has a value.
    pub required: bool,
    /// Filters and sorts on it use an index.
    pub indexed: bool,
    /// No value occurs twice.
    pub unique: bool,
}

/// Keys that every row has besides its columns.
const RESERVED: [&str; 3] = ["id", "createdAt", "updatedAt"];

/// The columns a table gets: one whose name stays keeps its id, any other is new.
///
/// # Errors
/// A name that is reserved or occurs twice, and a second unique key; paths as in the request's `columns`.
pub fn arrange(existing: &[Column], wanted: Vec<ColumnInput>) -> Result<Vec<Column>, Vec<Violation>> {
    let violations = violations(&wanted);
    if !violations.is_empty() {
        return Err(violations);
    }
    let column = |wanted: ColumnInput| {
        let kept = existing.iter().find(|column| column.name == wanted.name);
        Column {
            id: kept.map_or_else(|| id::new(id::Kind::Column), |column| column.id.clone()),
            name: wanted.name,
            column_type: wanted.column_type,
            required: wanted.required,
            indexed: wanted.indexed || wanted.unique,
            unique: wanted.unique,
        }
    };
    Ok(wanted.into_iter().map(column).collect())
}

fn violations(wanted: &[ColumnInput]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut refuse = |place: usize, field: &str, message: &str| {
        violations.push(Violation {
            path: format!("columns[{place}].{field}"),
            message: message.to_owned(),
        });
    };
    let mut names = HashSet::new();
    let mut has_key = false;
    for (place, column) in wanted.iter().enumerate() {
        if RESERVED.contains(&column.name.as_str()) {
            refuse(place, "name", "is a key that every row has already");
        } else if !names.insert(column.name.as_str()) {
            refuse(place, "name", "names a column that is in the list already");
        }
        if column.unique && has_key {
            refuse(place, "uniqueKey", "must be set for one column at most");
        }
        has_key |= column.unique;
    }
    violations
}

/// The column with this id, else the one with this name.
#[must_use]
pub fn find<'c>(columns: &'c [Column], id_or_name: &str) -> Option<&'c Column> {
    let by_id = columns.iter().find(|column| column.id == id_or_name);
    by_id.or_else(|| columns.iter().find(|column| column.name == id_or_name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn input(name: &str, unique: bool) -> ColumnInput {
        ColumnInput {
            name: name.to_owned(),
            column_type: ColumnType::Text,
            required: false,
            indexed: false,
            unique,
        }
    }

    #[test]
    fn a_name_that_stays_keeps_its_id() {
        let first = arrange(&[], vec![input("a", true), input("b", false)]).unwrap();
        assert!(first[0].indexed && first[0].unique);
        let second = arrange(&first, vec![input("c", false), input("b", false)]).unwrap();
        assert_eq!(second[1].id, first[1].id);
        assert!(first.iter().all(|column| column.id != second[0].id));
        assert_eq!(find(&second, "b"), find(&second, &second[1].id));
        assert_eq!(find(&second, "a"), None);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let wanted = vec![
            input("a", true),
            input("a", false),
            input("id", false),
            input("b", true),
        ];
        let paths: Vec<String> = arrange(&[], wanted)
            .unwrap_err()
            .into_iter()
            .map(|violation| violation.path)
            .collect();
        assert_eq!(
            paths,
            ["columns[1].name", "columns[2].name", "columns[3].uniqueKey"]
        );
    }
}
