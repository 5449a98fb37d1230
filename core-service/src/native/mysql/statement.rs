//! What an operation makes of its parameters: one statement, whose values are bound and never written into its text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Call, Failure};
use crate::native::sql;
use crate::native::values::misfit;

/// A statement, and how it is run.
pub struct Statement {
    pub(super) text: String,
    pub(super) values: Vec<mysql_async::Value>,
    /// Whether it only reads.
    pub(super) reads: bool,
    /// Rows that are enough.
    pub(super) enough: Option<usize>,
}

const TABLES: &str = "SELECT table_name AS `table` FROM information_schema.tables WHERE table_schema = DATABASE() \
     ORDER BY table_name";
const COLUMNS: &str = "SELECT column_name AS name, column_type AS type FROM information_schema.columns \
     WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position";

impl Statement {
    pub(super) fn of(call: Call<'_>) -> Result<Self, Failure> {
        let given = call.parameters;
        let values = || {
            given
                .list("parameters")?
                .iter()
                .map(bound)
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match call.operation {
            "query" => Self {
                enough: given.count("limit")?,
                ..Self::reading(given.required_text("query")?, values()?)
            },
            "execute" => Self::writing(given.required_text("query")?, values()?),
            "insert" => insert(given.required_text("table")?, &sql::rows(given)?)?,
            "latest_rows" => {
                let (table, column) = (
                    named(given.required_text("table")?)?,
                    quoted(given.required_text("column")?),
                );
                let limit = given.count("limit")?.unwrap_or(sql::LATEST);
                let text = format!("SELECT * FROM {table} ORDER BY {column} DESC LIMIT {limit}");
                Self::reading(&text, Vec::new())
            }
            "tables" => Self::reading(TABLES, Vec::new()),
            "columns" => Self::reading(COLUMNS, vec![given.required_text("table")?.into()]),
            other => return Err(misfit("operation", &format!("known; {other} is not"))),
        })
    }

    fn reading(text: &str, values: Vec<mysql_async::Value>) -> Self {
        Self {
            reads: true,
            ..Self::writing(text, values)
        }
    }

    fn writing(text: &str, values: Vec<mysql_async::Value>) -> Self {
        Self {
            text: text.to_owned(),
            values,
            reads: false,
            enough: None,
        }
    }
}

/// A value as it is bound. `{base64}` is bytes; other lists and objects are JSON.
fn bound(value: &Value) -> Result<mysql_async::Value, Failure> {
    use mysql_async::Value as Bound;
    Ok(match value {
        Value::Null => Bound::NULL,
        Value::Bool(holds) => Bound::Int(i64::from(*holds)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), ..) => Bound::Int(whole),
            (None, Some(whole), _) => Bound::UInt(whole),
            (None, None, float) => Bound::Double(float.unwrap_or_default()),
        },
        Value::String(text) => Bound::Bytes(text.clone().into_bytes()),
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("base64") => {
            let bytes = fields["base64"]
                .as_str()
                .and_then(|text| STANDARD.decode(text).ok());
            Bound::Bytes(bytes.ok_or_else(|| misfit("base64", "bytes in Base64"))?)
        }
        other => Bound::Bytes(other.to_string().into_bytes()),
    })
}

/// Inserts all rows at once. A column that a row does not have gets its default.
fn insert(table: &str, rows: &[&Map<String, Value>]) -> Result<Statement, Failure> {
    let columns = sql::columns(rows);
    let mut values = Vec::new();
    let mut tuples = Vec::new();
    for row in rows {
        let mut tuple = Vec::new();
        for column in &columns {
            tuple.push(match row.get(*column) {
                None => "DEFAULT",
                Some(value) => {
                    values.push(bound(value)?);
                    "?"
                }
            });
        }
        tuples.push(format!("({})", tuple.join(", ")));
    }
    if values.len() > usize::from(u16::MAX) {
        return Err(misfit("rows", "fewer: a statement has at most 65,535 values"));
    }
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let (table, columns, tuples) = (named(table)?, columns.join(", "), tuples.join(", "));
    let text = format!("INSERT INTO {table} ({columns}) VALUES {tuples}");
    Ok(Statement::writing(&text, values))
}

/// A table's name, perhaps after that of its database, as an identifier.
fn named(table: &str) -> Result<String, Failure> {
    let parts: Vec<&str> = table.split('.').collect();
    match parts.len() <= 2 && parts.iter().all(|part| !part.is_empty()) {
        true => Ok(parts.into_iter().map(quoted).collect::<Vec<_>>().join(".")),
        false => Err(misfit("table", "the name of a table, or database.table")),
    }
}

/// A name that is only a name, whatever it holds.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
