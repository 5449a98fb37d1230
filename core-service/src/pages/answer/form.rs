//! A form in HTML, and what people type into it as JSON.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::super::escaped;
use crate::form::{Field, FieldType, Wrong};

/// What a browser sent: texts by the names of fields.
#[derive(Default)]
pub(super) struct Typed(HashMap<String, String>);

impl Typed {
    /// Reads the body of a form.
    pub(super) fn read(body: &[u8]) -> Self {
        let texts = form_urlencoded::parse(body);
        Self(
            texts
                .map(|(name, text)| (name.into_owned(), text.into_owned()))
                .collect(),
        )
    }

    /// What was typed into a field.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The answer, and the fields whose text is none of their values. What was left empty has no value.
    pub(super) fn values(&self, fields: &[Field]) -> (Map<String, Value>, Vec<Wrong>) {
        let (mut values, mut wrong) = (Map::new(), Vec::new());
        for field in fields {
            let text = self.text(&field.name);
            if text.is_empty() && !field.required {
                continue;
            }
            match value(field.field_type, text) {
                Ok(value) => _ = values.insert(field.name.clone(), value),
                Err(message) => wrong.push(Wrong {
                    name: field.name.clone(),
                    message,
                }),
            }
        }
        (values, wrong)
    }
}

/// The value that a text stands for; whether the field takes it is checked later.
fn value(field_type: FieldType, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("is required".to_owned());
    }
    match field_type {
        FieldType::Text => Ok(Value::from(text.replace("\r\n", "\n"))),
        FieldType::Number | FieldType::Integer => {
            let number = serde_json::from_str::<Number>(trimmed).map(Value::Number);
            number.map_err(|_| "must be a number such as 12".to_owned())
        }
        FieldType::Boolean => {
            let truth = trimmed.parse().map(Value::Bool);
            truth.map_err(|_| "must be yes or no".to_owned())
        }
        // Browsers give the time that is on the page, without an offset: the label says that it is UTC.
        FieldType::Datetime if is_without_offset(trimmed) => Ok(Value::from(format!("{trimmed}Z"))),
        FieldType::Date | FieldType::Datetime | FieldType::Email | FieldType::Url => Ok(Value::from(trimmed)),
        FieldType::Json | FieldType::Array | FieldType::Object | FieldType::Any => json(trimmed),
    }
}

fn is_without_offset(text: &str) -> bool {
    text.parse::<jiff::civil::DateTime>().is_ok() && text.contains('T') && !text.ends_with('Z') && {
        let time = text.rsplit('T').next().unwrap_or_default();
        !time.contains(['+', '-'])
    }
}

fn json(text: &str) -> Result<Value, String> {
    contract::json::check(text.as_bytes())
        .map_err(|error| error.message)
        .and_then(|()| serde_json::from_str(text).map_err(|error| error.to_string()))
        .map_err(|reason| format!("must be JSON: {reason}"))
}

/// A field with its label, what was typed, and what is wrong with that.
pub(super) fn control(place: usize, field: &Field, typed: &str, wrong: Option<&Wrong>) -> String {
    let (id, name) = (format!("field-{place}"), escaped(&field.name));
    let hint = match field.field_type {
        FieldType::Datetime => " (UTC)",
        FieldType::Json | FieldType::Array | FieldType::Object | FieldType::Any => " (JSON)",
        _ => "",
    };
    let optional = if field.required { "" } else { " (optional)" };
    let mut attributes = format!("id=\"{id}\" name=\"{name}\"");
    if field.required {
        attributes.push_str(" required");
    }
    if wrong.is_some() {
        attributes.push_str(&format!(" aria-invalid=\"true\" aria-describedby=\"{id}-wrong\""));
    }
    let mut html = format!(
        "<label for=\"{id}\">{}{hint}{optional}</label>\n{}\n",
        escaped(&field.label),
        element(field.field_type, &attributes, typed)
    );
    if let Some(wrong) = wrong {
        let message = escaped(&wrong.message);
        html.push_str(&format!("<p class=\"wrong\" id=\"{id}-wrong\">{message}</p>\n"));
    }
    html
}

fn element(field_type: FieldType, attributes: &str, typed: &str) -> String {
    let text = escaped(typed);
    let input = |kind: &str| format!("<input type=\"{kind}\" {attributes} value=\"{text}\">");
    match field_type {
        FieldType::Text => format!("<textarea {attributes} rows=\"2\">\n{text}</textarea>"),
        FieldType::Number => input("number").replacen("<input", "<input step=\"any\"", 1),
        FieldType::Integer => input("number"),
        FieldType::Boolean => choice(attributes, typed),
        FieldType::Date => input("date"),
        FieldType::Datetime => input("datetime-local").replacen("<input", "<input step=\"any\"", 1),
        FieldType::Email => input("email"),
        FieldType::Url => input("url"),
        FieldType::Json | FieldType::Array | FieldType::Object | FieldType::Any => {
            format!("<textarea {attributes} rows=\"5\" spellcheck=\"false\">\n{text}</textarea>")
        }
    }
}

fn choice(attributes: &str, typed: &str) -> String {
    let option = |value: &str, label: &str| {
        let selected = if value == typed { " selected" } else { "" };
        format!("<option value=\"{value}\"{selected}>{label}</option>")
    };
    let options = [option("", "–"), option("true", "Yes"), option("false", "No")];
    format!("<select {attributes}>{}</select>", options.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(name: &str, field_type: FieldType, required: bool) -> Field {
        Field {
            name: name.to_owned(),
            field_type,
            required,
            label: format!("<{name}>"),
        }
    }

    #[test]
    fn texts_become_values_of_their_types() {
        use FieldType as Type;
        for (field_type, text, expected) in [
            (Type::Text, " a\r\nb ", json!(" a\nb ")),
            (Type::Number, "1.50", json!(1.50)),
            (Type::Integer, " 12 ", json!(12)),
            (Type::Boolean, "false", json!(false)),
            (Type::Date, "2026-01-31", json!("2026-01-31")),
            (Type::Datetime, "2026-01-31T09:00", json!("2026-01-31T09:00Z")),
            (
                Type::Datetime,
                "2026-01-31T09:00:05",
                json!("2026-01-31T09:00:05Z"),
            ),
            (
                Type::Datetime,
                "2026-01-31T09:00+01:00",
                json!("2026-01-31T09:00+01:00"),
            ),
            (Type::Json, "[1, {\"a\": null}]", json!([1, { "a": null }])),
            (Type::Any, "null", Value::Null),
        ] {
            assert_eq!(value(field_type, text), Ok(expected), "{text}");
        }
        for (field_type, text) in [
            (Type::Number, "twelve"),
            (Type::Integer, "0x10"),
            (Type::Boolean, "maybe"),
            (Type::Json, "{"),
            (Type::Object, "{\"a\": 1, \"a\": 2}"),
            (Type::Text, "  "),
        ] {
            assert!(value(field_type, text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_left_empty_has_no_value() {
        let fields = [
            field("a", FieldType::Number, false),
            field("b", FieldType::Number, true),
        ];
        let (values, wrong) = Typed::read(b"a=&b=").values(&fields);
        assert_eq!((values.len(), wrong.len()), (0, 1));
        assert_eq!(wrong[0].name, "b");
    }

    #[test]
    fn nothing_that_is_typed_becomes_markup() {
        for field_type in FieldType::ALL {
            let wrong = Wrong {
                name: "\"><b>".to_owned(),
                message: "<i>".to_owned(),
            };
            let field = field("\"><b>", field_type, true);
            let html = control(0, &field, "\"></textarea><script>", Some(&wrong));
            for markup in ["<b>", "<i>", "<script>", "\"></textarea>"] {
                assert!(!html.contains(markup), "{html}");
            }
        }
    }
}
