//! Conditions on rows: filters as callers write them, and what they come to for a value.
//!
//! Comparisons are comparisons of sort keys, so a filter and a sort never disagree, and an index answers exactly what
//! memory does. Missing values satisfy `is_null`, `neq` and `not_in` only.

use std::ops::{Bound, RangeBounds};

use contract::validation::Violation;
use serde_json::{Map, Value};

use super::key::{self, FIRST_VALUE, Key, Kind, NULL, TEXT_BYTES, after_prefix, key};
use super::{Column, ColumnType, accept, find};

/// The most conditions of one query.
pub const MAX_CONDITIONS: usize = 50;

/// A condition on one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    column: Column,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Key(KeyTest),
    /// A text contains this text, or an array has it as an element.
    Contains(String),
    /// An array has an element with this key.
    Has(Key),
    StartsWith(String),
    EndsWith(String),
}

/// A condition that the sort key alone decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyTest {
    /// The key is between these.
    Between(Bound<Key>, Bound<Key>),
    /// The key is one of these.
    OneOf(Vec<Key>),
    /// The key is none of these.
    NoneOf(Vec<Key>),
}

impl Condition {
    /// The column it is about.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// What it asks of the sort key; nothing when it asks more.
    #[must_use]
    pub fn key_test(&self) -> Option<&KeyTest> {
        match &self.test {
            Test::Key(test) => Some(test),
            _ => None,
        }
    }

    /// Whether a row with this value satisfies it.
    #[must_use]
    pub fn holds(&self, value: Option<&Value>) -> bool {
        let value = value.unwrap_or(&Value::Null);
        match &self.test {
            Test::Key(test) => test.holds(&key(self.column.column_type, value)),
            Test::Contains(part) => match value {
                Value::String(text) => text.contains(part),
                Value::Array(items) => items.iter().any(|item| item.as_str() == Some(part)),
                _ => false,
            },
            Test::Has(element) => value
                .as_array()
                .is_some_and(|items| items.iter().any(|item| key(ColumnType::Json, item) == *element)),
            Test::StartsWith(start) => value.as_str().is_some_and(|text| text.starts_with(start)),
            Test::EndsWith(end) => value.as_str().is_some_and(|text| text.ends_with(end)),
        }
    }
}

impl KeyTest {
    fn holds(&self, key: &Key) -> bool {
        match self {
            Self::Between(low, high) => RangeBounds::<Key>::contains(&(low.as_ref(), high.as_ref()), key),
            Self::OneOf(keys) => keys.contains(key),
            Self::NoneOf(keys) => !keys.contains(key),
        }
    }
}

/// Reads a JSON array of filters: `[{"columnId": id or name, "operator": …, "value": …}]`.
///
/// # Errors
/// All that is wrong, with paths from `filters` on.
pub fn parse_conditions(columns: &[Column], filters: &str) -> Result<Vec<Condition>, Vec<Violation>> {
    contract::json::check(filters.as_bytes()).map_err(|error| vec![violation(&error.path, error.message)])?;
    let Ok(Value::Array(filters)) = serde_json::from_str(filters) else {
        return Err(vec![violation("", "must be a JSON array of filters".to_owned())]);
    };
    if filters.len() > MAX_CONDITIONS {
        let message = format!("must have at most {MAX_CONDITIONS} items");
        return Err(vec![violation("", message)]);
    }
    collect(filters.iter().enumerate().map(|(place, filter)| {
        filter_condition(columns, filter).map_err(|(field, message)| {
            let dot = if field.is_empty() { "" } else { "." };
            violation(&format!("[{place}]{dot}{field}"), message)
        })
    }))
}

/// The conditions that a row matches: each named column equals its value, and null means that there is none.
///
/// # Errors
/// Unknown columns and values of a wrong type, by column name.
pub fn matching(columns: &[Column], wanted: &Map<String, Value>) -> Result<Vec<Condition>, Vec<Violation>> {
    collect(wanted.iter().map(|(name, value)| {
        let operator = if value.is_null() { "is_null" } else { "eq" };
        condition(columns, name, operator, value).map_err(|(_, message)| Violation {
            path: name.clone(),
            message,
        })
    }))
}

/// All conditions, or all that is wrong.
fn collect(
    conditions: impl Iterator<Item = Result<Condition, Violation>>,
) -> Result<Vec<Condition>, Vec<Violation>> {
    let mut violations = Vec::new();
    let conditions = conditions
        .filter_map(|condition| condition.map_err(|violation| violations.push(violation)).ok())
        .collect();
    if violations.is_empty() {
        Ok(conditions)
    } else {
        Err(violations)
    }
}

fn violation(path: &str, message: String) -> Violation {
    let dot = if path.is_empty() || path.starts_with('[') {
        ""
    } else {
        "."
    };
    Violation {
        path: format!("filters{dot}{path}"),
        message,
    }
}

/// The field that is wrong, and how.
type Refusal = (String, String);

/// The condition that a filter as callers write it stands for.
fn filter_condition(columns: &[Column], filter: &Value) -> Result<Condition, Refusal> {
    const FIELDS: [&str; 3] = ["columnId", "operator", "value"];
    let Value::Object(fields) = filter else {
        return Err((String::new(), "must be an object".to_owned()));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err((unknown.clone(), "is not a field of a filter".to_owned()));
    }
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        text.ok_or_else(|| (name.to_owned(), "must be given, as a text".to_owned()))
    };
    let value = fields.get("value").unwrap_or(&Value::Null);
    condition(columns, text("columnId")?, text("operator")?, value)
}

fn condition(
    columns: &[Column],
    id_or_name: &str,
    operator: &str,
    value: &Value,
) -> Result<Condition, Refusal> {
    let column = find(columns, id_or_name)
        .ok_or_else(|| ("columnId".to_owned(), "must be a column of the table".to_owned()))?;
    Ok(Condition {
        column: column.clone(),
        test: test(column.column_type, operator, value)?,
    })
}

fn test(column_type: ColumnType, operator: &str, value: &Value) -> Result<Test, Refusal> {
    let one = || accepted(column_type, value, "value".to_owned());
    let test = match operator {
        "eq" => KeyTest::OneOf(vec![key(column_type, &one()?)]),
        "neq" => KeyTest::NoneOf(vec![key(column_type, &one()?)]),
        "in" => KeyTest::OneOf(list(column_type, value)?),
        "not_in" => KeyTest::NoneOf(list(column_type, value)?),
        "gt" | "gte" | "lt" | "lte" => comparison(column_type, operator, &one()?)?,
        "is_null" => no_value(value).map(|()| KeyTest::OneOf(vec![NULL.to_vec()]))?,
        "is_not_null" => no_value(value)
            .map(|()| KeyTest::Between(Bound::Included(FIRST_VALUE.to_vec()), Bound::Unbounded))?,
        "contains" | "starts_with" | "ends_with" => return text_test(column_type, operator, value),
        _ => {
            return Err((
                "operator".to_owned(),
                "must be one of eq, neq, gt, gte, lt, lte, contains, starts_with, ends_with, in, not_in, is_null, \
                 is_not_null"
                    .to_owned(),
            ));
        }
    };
    Ok(Test::Key(test))
}

fn accepted(column_type: ColumnType, value: &Value, path: String) -> Result<Value, Refusal> {
    if value.is_null() {
        return Err((
            path,
            "must be a value; is_null finds rows that have none".to_owned(),
        ));
    }
    accept(column_type, value).map_err(|message| (path, message.to_owned()))
}

fn list(column_type: ColumnType, value: &Value) -> Result<Vec<Key>, Refusal> {
    let Value::Array(items) = value else {
        return Err(("value".to_owned(), "must be an array of values".to_owned()));
    };
    let mut keys = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let item = accepted(column_type, item, format!("value[{place}]"))?;
        keys.push(key(column_type, &item));
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

fn no_value(value: &Value) -> Result<(), Refusal> {
    if value.is_null() {
        Ok(())
    } else {
        Err(("value".to_owned(), "must be absent with this operator".to_owned()))
    }
}

/// Values of the same kind beyond this one; those of other kinds in a JSON column have no order with it.
fn comparison(column_type: ColumnType, operator: &str, value: &Value) -> Result<KeyTest, Refusal> {
    let kind = key::kind(column_type, value);
    if kind == Kind::Composite {
        let message = "must be a text, a number or a boolean to be compared";
        return Err(("value".to_owned(), message.to_owned()));
    }
    let bound = key(column_type, value);
    let (start, end) = (Bound::Included(kind.start()), Bound::Excluded(kind.end()));
    Ok(match operator {
        "gt" => KeyTest::Between(Bound::Excluded(bound), end),
        "gte" => KeyTest::Between(Bound::Included(bound), end),
        "lt" => KeyTest::Between(start, Bound::Excluded(bound)),
        _ => KeyTest::Between(start, Bound::Included(bound)),
    })
}

fn text_test(column_type: ColumnType, operator: &str, value: &Value) -> Result<Test, Refusal> {
    if !matches!(column_type, ColumnType::Text | ColumnType::Json) {
        let message = format!(
            "is for text and json columns, not for {} ones",
            column_type.as_word()
        );
        return Err(("operator".to_owned(), message));
    }
    let text = match value {
        Value::String(text) => text.clone(),
        element if !element.is_null() && column_type == ColumnType::Json && operator == "contains" => {
            return Ok(Test::Has(key(column_type, element)));
        }
        _ => return Err(("value".to_owned(), "must be a text".to_owned())),
    };
    Ok(match operator {
        "starts_with" if text.len() <= TEXT_BYTES => {
            let start = key(column_type, &Value::String(text));
            let end = after_prefix(start.clone());
            Test::Key(KeyTest::Between(Bound::Included(start), Bound::Excluded(end)))
        }
        "starts_with" => Test::StartsWith(text),
        "ends_with" => Test::EndsWith(text),
        _ => Test::Contains(text),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn columns() -> Vec<Column> {
        use ColumnType as Type;
        let types = [
            Type::Text,
            Type::Number,
            Type::Integer,
            Type::Boolean,
            Type::Date,
            Type::Datetime,
            Type::Json,
        ];
        types
            .map(|column_type| Column {
                id: format!("col_{}", column_type.as_word()),
                name: column_type.as_word().to_owned(),
                column_type,
                required: false,
                indexed: false,
                unique: false,
            })
            .into()
    }

    fn parse(column: &str, operator: &str, value: &Value) -> Result<Condition, Vec<Violation>> {
        let filters = json!([{ "columnId": column, "operator": operator, "value": value }]);
        parse_conditions(&columns(), &filters.to_string()).map(|mut conditions| conditions.remove(0))
    }

    #[test]
    fn every_operator_means_what_it_says() {
        for (column, operator, value, holds, fails) in [
            ("text", "eq", json!("a"), json!("a"), json!("A")),
            ("text", "neq", json!("a"), json!("b"), json!("a")),
            ("col_text", "gt", json!("Z"), json!("a"), json!("Z")),
            ("text", "starts_with", json!("ab"), json!("abc"), json!("b")),
            ("text", "ends_with", json!("bc"), json!("abc"), json!("abcd")),
            ("text", "contains", json!("b"), json!("abc"), json!("ac")),
            ("text", "in", json!(["a", "b"]), json!("b"), json!("c")),
            ("text", "not_in", json!(["a", "b"]), json!("c"), json!("a")),
            ("text", "in", json!([]), json!(null), json!(null)),
            ("number", "gte", json!(1), json!(1.0), json!(0.999)),
            ("number", "lt", json!(10), json!(9), json!(10)),
            ("integer", "lte", json!(10), json!(10), json!(11)),
            ("boolean", "gt", json!(false), json!(true), json!(false)),
            (
                "date",
                "lt",
                json!("2026-01-02"),
                json!("2026-01-01"),
                json!("2026-01-02"),
            ),
            (
                "datetime",
                "eq",
                json!("2026-01-01T01:00:00+01:00"),
                json!("2026-01-01T00:00:00Z"),
                json!("2026-01-01T01:00:00Z"),
            ),
            ("json", "gt", json!(5), json!(6), json!("a")),
            (
                "json",
                "contains",
                json!({"a": 1}),
                json!([1, {"a": 1.0}]),
                json!({"a": 1}),
            ),
            ("json", "contains", json!("x"), json!(["x"]), json!(["xy"])),
            (
                "json",
                "eq",
                json!({"a": 1, "b": 2}),
                json!({"b": 2, "a": 1}),
                json!({"a": 1}),
            ),
        ] {
            let condition = parse(column, operator, &value).unwrap();
            if value != json!([]) {
                assert!(
                    condition.holds(Some(&holds)),
                    "{column} {operator} {value}: {holds}"
                );
            }
            assert!(
                !condition.holds(Some(&fails)),
                "{column} {operator} {value}: {fails}"
            );
            let missing = matches!(operator, "neq" | "not_in");
            assert_eq!(condition.holds(None), missing, "{operator} without a value");
        }
        assert!(parse("text", "is_null", &Value::Null).unwrap().holds(None));
        let present = parse("text", "is_not_null", &Value::Null).unwrap();
        assert!(present.holds(Some(&json!(""))) && !present.holds(None));
    }

    #[test]
    fn long_beginnings_are_told_apart() {
        let start = "x".repeat(TEXT_BYTES + 5);
        let condition = parse("text", "starts_with", &json!(start)).unwrap();
        assert!(condition.holds(Some(&json!(format!("{start}y")))));
        assert!(!condition.holds(Some(&json!("x".repeat(TEXT_BYTES + 4)))));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        for (column, operator, value, path) in [
            ("none", "eq", json!(1), "filters[0].columnId"),
            ("text", "like", json!("a"), "filters[0].operator"),
            ("number", "contains", json!("1"), "filters[0].operator"),
            ("number", "eq", json!("1"), "filters[0].value"),
            ("number", "eq", json!(null), "filters[0].value"),
            ("text", "contains", json!(null), "filters[0].value"),
            ("text", "in", json!("a"), "filters[0].value"),
            ("text", "in", json!(["a", 1]), "filters[0].value[1]"),
            ("text", "is_null", json!("a"), "filters[0].value"),
            ("json", "lt", json!([1]), "filters[0].value"),
        ] {
            let violations = parse(column, operator, &value).unwrap_err();
            assert_eq!(violations[0].path, path, "{violations:?}");
        }
        for (filters, path) in [
            ("", "filters"),
            ("{}", "filters"),
            ("[1]", "filters[0]"),
            (r#"[["text", "eq", "a"]]"#, "filters[0]"),
            (
                r#"[{"columnId": "text", "operator": "eq", "value": "a", "x": 1}]"#,
                "filters[0].x",
            ),
            (r#"[{"columnId": 1, "operator": "eq"}]"#, "filters[0].columnId"),
            (r#"[{"columnId": "text"}]"#, "filters[0].operator"),
            (
                r#"[{"columnId": "text", "columnId": "a", "operator": "eq"}]"#,
                "filters[0]",
            ),
        ] {
            let violations = parse_conditions(&columns(), filters).unwrap_err();
            assert_eq!(violations[0].path, path, "{violations:?}");
        }
    }

    #[test]
    fn a_match_is_equality_of_each_column() {
        let wanted = json!({ "text": "a", "number": null });
        let conditions = matching(&columns(), wanted.as_object().unwrap()).unwrap();
        assert!(conditions[0].holds(Some(&json!("a"))));
        assert!(conditions[1].holds(None) && !conditions[1].holds(Some(&json!(1))));
        let wrong = json!({ "none": 1, "number": "1" });
        let violations = matching(&columns(), wrong.as_object().unwrap()).unwrap_err();
        assert_eq!(violations.len(), 2);
        assert_eq!(violations[0].path, "none");
    }
}
