//! The specification's types against JSON schemas.

use serde_json::Value;

/// Response fields that may be null by the specification and never are: an invitation always has a role.
const NEVER_NULL: &[&str] = &["Invitation.role"];

/// The two sides and what was found to differ between them.
pub struct Comparison<'a> {
    pub specification: &'a Value,
    pub openapi: &'a Value,
    pub mismatches: Vec<String>,
}

impl<'a> Comparison<'a> {
    pub fn mismatch(&mut self, place: &str, what: &str) {
        self.mismatches.push(format!("{place}: {what}"));
    }

    /// The schema that a reference leads to.
    pub fn resolve(&self, schema: &'a Value) -> &'a Value {
        let Some(reference) = schema["$ref"].as_str() else {
            return schema;
        };
        let pointer = reference.trim_start_matches('#');
        let target = self.openapi.pointer(pointer);
        target.unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// The schema without the alternative null.
    fn without_null(&self, schema: &'a Value) -> &'a Value {
        let alternatives = schema["anyOf"].as_array();
        let other = alternatives.and_then(|schemas| schemas.iter().find(|schema| schema["type"] != "null"));
        self.resolve(other.unwrap_or(schema))
    }

    /// Checks that a schema is of a type that the specification names.
    pub fn is_type(&mut self, place: &str, wanted: &str, schema: &'a Value) {
        let schema = self.without_null(schema);
        let types = types(schema);
        let has = |name: &str| types.iter().any(|kind| kind == name);
        if let Some(item) = wanted
            .strip_prefix("array<")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            match has("array") {
                true => self.is_type(&format!("{place}[]"), item, &schema["items"]),
                false => self.mismatch(place, &format!("is {types:?} and should be an array")),
            }
            return;
        }
        let fits = match wanted {
            "any" => true,
            "string" => has("string") && schema["format"] != "date-time",
            "datetime" => has("string") && schema["format"] == "date-time",
            "integer" | "epochMs" => has("integer"),
            "number" => has("number") || has("integer"),
            "boolean" => has("boolean"),
            "object" => has("object"),
            name => return self.is_object(place, name, schema),
        };
        if !fits {
            self.mismatch(place, &format!("is {types:?} and should be {wanted}"));
        }
    }

    /// Checks that a schema has the fields of one of the specification's.
    fn is_object(&mut self, place: &str, name: &str, schema: &'a Value) {
        if let Some(members) = schema["oneOf"].as_array() {
            for member in members {
                self.is_object(place, name, self.resolve(member));
            }
            return;
        }
        // Rows and outputs are free-form.
        let free_form = schema["type"] == "object" && schema["properties"].is_null();
        let specification: &'a Value = self.specification;
        let Some(fields) = specification["schemas"][name].as_object() else {
            return self.mismatch(place, &format!("the specification has no schema {name}"));
        };
        // Requests refuse what they do not know, which tells them from responses.
        let response = schema["additionalProperties"] != false;
        for (field, wanted) in fields.iter().filter(|_| !free_form) {
            let place = format!("{place}.{field}");
            let Some(property) = schema["properties"].get(field) else {
                self.mismatch(&place, &format!("is missing ({name})"));
                continue;
            };
            self.is_type(&place, wanted["type"].as_str().unwrap_or_default(), property);
            let (required, nullable) = (wanted["required"] == true, wanted["nullable"] == true);
            if (required || nullable && response) && !is_required(schema, field) {
                self.mismatch(&place, "should be required");
            }
            let nullable = nullable && !NEVER_NULL.contains(&format!("{name}.{field}").as_str());
            if self.takes_null(property) != nullable && (response || nullable) && wanted["type"] != "any" {
                self.mismatch(&place, &format!("nullable should be {nullable}"));
            }
        }
    }

    /// Whether a schema takes null.
    pub fn takes_null(&self, schema: &Value) -> bool {
        let any = schema.as_object().is_some_and(|schema| {
            !["type", "$ref", "anyOf", "oneOf", "const"]
                .iter()
                .any(|key| schema.contains_key(*key))
        });
        let alternative = schema["anyOf"]
            .as_array()
            .is_some_and(|schemas| schemas.iter().any(|schema| schema["type"] == "null"));
        any || alternative || types(schema).iter().any(|kind| kind == "null")
    }
}

/// The types of a schema.
fn types(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(|kind| Some(kind.as_str()?.to_owned()))
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether an object must have a field.
pub fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|required| required.iter().any(|name| name == field))
}
