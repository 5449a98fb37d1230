//! What structures say of values.
//!
//! Pure, so that nodes and forms mean the same by a field. Deliberately absent: where structures are kept.

use contract::v1::{StructureField, StructureFieldType as Type};
use contract::validation::is_email;
use serde_json::Value;

use crate::table::{ColumnType, accept};

/// One thing wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The field; empty for the value as a whole.
    pub path: String,
    /// What it must be.
    pub message: &'static str,
}

/// Everything wrong with a value, in the order of the fields. A null counts as absent; what no field names is of no
/// interest.
#[must_use]
pub fn issues(fields: &[StructureField], value: &Value) -> Vec<Issue> {
    let Value::Object(members) = value else {
        return vec![Issue {
            path: String::new(),
            message: "must be an object",
        }];
    };
    let issue = |field: &StructureField| {
        let found = match members.get(&field.name).filter(|member| !member.is_null()) {
            None => field.required.then_some("must have a value"),
            Some(member) => misfit(field.r#type(), member),
        };
        found.map(|message| Issue {
            path: field.name.clone(),
            message,
        })
    };
    fields.iter().filter_map(issue).collect()
}

/// What a value that is not null must be to be of a type, when it is not.
#[must_use]
pub fn misfit(field_type: Type, value: &Value) -> Option<&'static str> {
    let column = |column_type| accept(column_type, value).err();
    let text_that = |holds: fn(&str) -> bool, message| match value.as_str() {
        Some(text) if holds(text) => None,
        _ => Some(message),
    };
    match field_type {
        Type::Text => column(ColumnType::Text),
        Type::Number => column(ColumnType::Number),
        Type::Integer => column(ColumnType::Integer),
        Type::Boolean => column(ColumnType::Boolean),
        Type::Date => column(ColumnType::Date),
        Type::Datetime => column(ColumnType::Datetime),
        Type::Email => text_that(is_email, "must be an email address"),
        Type::Url => text_that(is_url, "must be a URL such as https://example.com/path"),
        Type::Array => (!value.is_array()).then_some("must be an array"),
        Type::Object => (!value.is_object()).then_some("must be an object"),
        Type::Json | Type::Any | Type::Unspecified => None,
    }
}

/// Absolute, with a host.
fn is_url(text: &str) -> bool {
    let parsed = text.parse::<http::Uri>();
    parsed.is_ok_and(|url| url.scheme().is_some() && url.host().is_some_and(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(name: &str, field_type: Type, required: bool) -> StructureField {
        StructureField {
            name: name.to_owned(),
            r#type: field_type.into(),
            required,
        }
    }

    #[test]
    fn each_type_means_what_it_says() {
        for (field_type, fits, misfits) in [
            (Type::Text, json!(""), json!(1)),
            (Type::Number, json!(1.5), json!("1.5")),
            (Type::Integer, json!(3.0), json!(3.5)),
            (Type::Boolean, json!(false), json!(0)),
            (Type::Date, json!("2024-02-29"), json!("2023-02-29")),
            (
                Type::Datetime,
                json!("2026-01-31T10:00:00+01:00"),
                json!("2026-01-31"),
            ),
            (Type::Email, json!("a@example.com"), json!("a@")),
            (Type::Email, json!("a+b@x"), json!(["a@x"])),
            (Type::Url, json!("https://example.com/a?b=c"), json!("/a")),
            (Type::Url, json!("http://[::1]:80/"), json!("https://")),
            (Type::Array, json!([]), json!({})),
            (Type::Object, json!({}), json!([])),
        ] {
            assert_eq!(misfit(field_type, &fits), None, "{field_type:?} {fits}");
            assert!(misfit(field_type, &misfits).is_some(), "{field_type:?} {misfits}");
        }
        for value in [json!(0), json!("x"), json!([1]), json!({})] {
            assert_eq!(
                (misfit(Type::Any, &value), misfit(Type::Json, &value)),
                (None, None)
            );
        }
    }

    #[test]
    fn each_field_has_its_issue() {
        let fields = [
            field("größe", Type::Number, true),
            field("note", Type::Text, false),
            field("any", Type::Any, true),
        ];
        let found = |value: Value| -> Vec<(String, &'static str)> {
            let found = issues(&fields, &value).into_iter();
            found.map(|issue| (issue.path, issue.message)).collect()
        };
        assert_eq!(found(json!({ "größe": 1, "any": [], "more": true })), []);
        assert_eq!(found(json!({ "größe": 1, "any": 0, "note": null })), []);
        assert_eq!(
            found(json!({ "größe": "1", "note": 2, "any": null })),
            [
                ("größe".to_owned(), "must be a number"),
                ("note".to_owned(), "must be a text"),
                ("any".to_owned(), "must have a value"),
            ]
        );
        for value in [json!([]), json!("x"), Value::Null] {
            assert_eq!(found(value), [(String::new(), "must be an object")]);
        }
    }
}
