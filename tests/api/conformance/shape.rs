//! A live answer against the specification's own types.

use serde_json::Value;

/// Fields that the specification types "or null" and that are never null.
const NEVER_NULL: &[&str] = &["Invitation.role"];

/// Holds values against the `schemas` of the specification, and collects what is wrong.
pub(super) struct Shape<'a> {
    schemas: &'a Value,
    pub wrong: Vec<String>,
}

impl<'a> Shape<'a> {
    pub fn new(specification: &'a Value) -> Self {
        Self {
            schemas: &specification["schemas"],
            wrong: Vec::new(),
        }
    }

    /// Checks the whole body of a success.
    pub fn body(&mut self, success: &Value, body: &Value) {
        let envelope = success["envelope"].as_str().unwrap();
        let item = success["schema"].as_str().unwrap();
        let beside: &[(&str, &str)] = match envelope {
            "page" => &[("next_cursor", "cursor")],
            "bounded" => &[("truncated", "boolean")],
            "rows" => &[("count", "integer"), ("next_cursor", "cursor")],
            _ => &[],
        };
        for (name, kind) in beside {
            self.present(name, kind, body);
        }
        match envelope {
            "object" => self.present("data", item, body),
            _ => self.present("data", &format!("array<{item}>"), body),
        }
    }

    fn present(&mut self, name: &str, kind: &str, body: &Value) {
        match body.get(name) {
            Some(value) => self.value(name, kind, value),
            None => self.wrong.push(format!("{name} is missing")),
        }
    }

    fn value(&mut self, place: &str, kind: &str, value: &Value) {
        if let Some(item) = kind
            .strip_prefix("array<")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            let Some(items) = value.as_array() else {
                return self.wrong.push(format!("{place} is {value}, not an array"));
            };
            for (index, value) in items.iter().enumerate() {
                self.value(&format!("{place}[{index}]"), item, value);
            }
            return;
        }
        let fits = match kind {
            "any" => true,
            "string" => value.is_string(),
            "cursor" => value.is_null() || value.as_str().is_some_and(|cursor| !cursor.is_empty()),
            "datetime" => value.as_str().is_some_and(is_instant),
            "integer" => value.is_i64(),
            // Milliseconds since 1970 have had thirteen digits since 2001.
            "epochMs" => value.as_i64().is_some_and(|instant| instant > 999_999_999_999),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            name => return self.object(place, name, value),
        };
        if !fits {
            self.wrong.push(format!("{place} is {value}, not of type {kind}"));
        }
    }

    fn object(&mut self, place: &str, name: &str, value: &Value) {
        let fields = self.schemas[name].as_object();
        let fields = fields.unwrap_or_else(|| panic!("the specification has no schema {name}"));
        if !value.is_object() {
            return self.wrong.push(format!("{place} is {value}, not of type {name}"));
        }
        for (field, said) in fields {
            let nullable = said["nullable"] == true;
            let place = format!("{place}.{field}");
            match value.get(field) {
                // What may be null is told by null, not by absence.
                None if said["required"] == true || nullable => {
                    self.wrong.push(format!("{place} is missing"))
                }
                None => {}
                Some(Value::Null) if said["type"] == "any" => {}
                Some(Value::Null)
                    if !nullable || NEVER_NULL.contains(&format!("{name}.{field}").as_str()) =>
                {
                    self.wrong.push(format!("{place} is null"));
                }
                Some(Value::Null) => {}
                Some(value) => self.value(&place, said["type"].as_str().unwrap(), value),
            }
        }
    }
}

/// Whether a text is an instant as ISO-8601 writes it in UTC, to the millisecond.
fn is_instant(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|character| {
            if character.is_ascii_digit() {
                '0'
            } else {
                character
            }
        })
        .collect();
    shape == "0000-00-00T00:00:00.000Z"
}
