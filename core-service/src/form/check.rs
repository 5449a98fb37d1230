//! Whether an answer fits the fields that it is for.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Field;

/// Something wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The field, or a name that is none.
    pub name: String,
    /// What is wrong with it.
    pub message: String,
}

impl Wrong {
    fn new(name: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            message: message.into(),
        }
    }
}

/// The answer in the form it is kept in: a value for each field that has one, in the fields' order. Null is no value.
///
/// # Errors
/// All that is wrong: in the fields' order, and then what is no field.
pub fn check(fields: &[Field], answer: &Map<String, Value>) -> Result<Map<String, Value>, Vec<Wrong>> {
    let (mut kept, mut wrong) = (Map::new(), Vec::new());
    for field in fields {
        match answer.get(&field.name).filter(|value| !value.is_null()) {
            None if field.required => wrong.push(Wrong::new(&field.name, "is required")),
            None => {}
            Some(value) => match field.field_type.accept(value) {
                Ok(value) => _ = kept.insert(field.name.clone(), value),
                Err(expectation) => wrong.push(Wrong::new(&field.name, expectation)),
            },
        }
    }
    let known: HashSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let unknown = answer.keys().filter(|name| !known.contains(name.as_str()));
    wrong.extend(unknown.map(|name| Wrong::new(name, "is not a field of this request")));
    match wrong.is_empty() {
        true => Ok(kept),
        false => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::FieldType;
    use super::*;

    fn field(name: &str, field_type: FieldType, required: bool) -> Field {
        Field {
            name: name.to_owned(),
            field_type,
            required,
            label: name.to_owned(),
        }
    }

    fn checked(answer: Value) -> Result<Value, Vec<(String, String)>> {
        let fields = [
            field("ok", FieldType::Boolean, true),
            field("n", FieldType::Integer, false),
        ];
        let Value::Object(answer) = answer else {
            return Err(Vec::new());
        };
        let names = |wrong: Vec<Wrong>| wrong.into_iter().map(|one| (one.name, one.message)).collect();
        check(&fields, &answer).map(Value::Object).map_err(names)
    }

    #[test]
    fn an_answer_keeps_the_fields_and_their_order() {
        assert_eq!(
            checked(json!({ "n": 5.0, "ok": false })),
            Ok(json!({ "ok": false, "n": 5 }))
        );
        assert_eq!(
            checked(json!({ "ok": true, "n": null })),
            Ok(json!({ "ok": true }))
        );
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let wrong = checked(json!({ "other": 1, "n": "5", "ok": null }));
        let wrong: Vec<String> = wrong
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(wrong, ["ok", "n", "other"]);
    }
}
