//! The places of a body: what stands where, and what its schema lets stand there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::Document;

/// One step on the way into a JSON value.
#[derive(Clone)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A value inside a body.
pub(super) struct Place<'a> {
    steps: Vec<Step>,
    /// The field, the same for all items of a list, and with the tag of a tagged object: `ops[].connect.from`.
    pub field: String,
    /// What may stand here besides null.
    pub schema: &'a Value,
    pub takes_null: bool,
    /// Whether it may not be left out.
    pub required: bool,
    /// Whether it is a member of an object.
    pub is_member: bool,
}

impl Place<'_> {
    /// The path by which errors name it: `ops[2].from`.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.push_str(&format!(".{key}")),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// The path of a member of it.
    pub fn path_of(&self, member: &str) -> String {
        match self.path().as_str() {
            "" => member.to_owned(),
            path => format!("{path}.{member}"),
        }
    }

    /// What stands here.
    pub fn value<'v>(&self, body: &'v Value) -> &'v Value {
        self.steps.iter().fold(body, |value, step| match step {
            Step::Key(key) => &value[key.as_str()],
            Step::Index(index) => &value[*index],
        })
    }

    /// The body with another value here.
    pub fn replaced(&self, body: &Value, value: Value) -> Value {
        let mut body = body.clone();
        *find(&mut body, &self.steps) = value;
        body
    }

    /// The body without this member.
    pub fn removed(&self, body: &Value) -> Value {
        let mut body = body.clone();
        let (Some(Step::Key(key)), before) = (self.steps.last(), self.steps.len().saturating_sub(1)) else {
            panic!("{} is no member", self.path());
        };
        find(&mut body, &self.steps[..before])
            .as_object_mut()
            .unwrap()
            .shift_remove(key);
        body
    }

    /// Whether a value of this JSON type may stand here; of a string, whatever it says.
    pub fn takes(&self, value: &Value) -> bool {
        if value.is_null() {
            return self.takes_null;
        }
        if self.schema.get("oneOf").is_some() {
            return value.is_object();
        }
        let kinds: Vec<&str> = match &self.schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        kinds.iter().any(|kind| match *kind {
            "string" => value.is_string(),
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        })
    }

    /// Whether it is an object whose members are all known.
    pub fn is_closed_object(&self) -> bool {
        self.schema.get("properties").is_some() || self.schema.get("oneOf").is_some()
    }
}

fn find<'v>(value: &'v mut Value, steps: &[Step]) -> &'v mut Value {
    steps.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Index(index) => &mut value[*index],
    })
}

impl Document {
    /// The schema that says what may stand somewhere besides null, and whether null may.
    fn without_null<'a>(&'a self, schema: &'a Value) -> (&'a Value, bool) {
        if let Some(alternatives) = schema["anyOf"].as_array() {
            let other = alternatives
                .iter()
                .find(|schema| schema["type"] != "null")
                .unwrap();
            return (self.resolve(other), alternatives.len() > 1);
        }
        let schema = self.resolve(schema);
        let any = ["type", "oneOf", "const"]
            .iter()
            .all(|key| schema.get(*key).is_none());
        let kinds = schema["type"].as_array();
        (
            schema,
            any || kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null")),
        )
    }

    /// The schema of one tag of a tagged object.
    fn tagged<'a>(&'a self, schema: &'a Value, value: &Value) -> Option<(&'a Value, String)> {
        let tag = schema["discriminator"]["propertyName"].as_str()?;
        let word = value[tag].as_str()?;
        let reference = schema["discriminator"]["mapping"][word].as_str()?;
        let (_, member) = reference.rsplit_once('/')?;
        Some((&self.schemas()[member], word.to_owned()))
    }

    /// Every field that a schema documents, as [`Place::field`] writes it.
    pub fn fields(&self, schema: &Value, within: &str, fields: &mut BTreeSet<String>) {
        let (schema, _) = self.without_null(schema);
        if let Some(mapping) = schema["discriminator"]["mapping"].as_object() {
            let tag = &schema["discriminator"]["propertyName"];
            for word in mapping.keys() {
                let (member, word) = self
                    .tagged(schema, &serde_json::json!({ tag.as_str().unwrap(): word }))
                    .unwrap();
                self.fields(member, &format!("{within}.{word}"), fields);
            }
        }
        if let Some(items) = schema.get("items") {
            self.fields(items, &format!("{within}[]"), fields);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let field = joined(within, name);
            self.fields(property, &field, fields);
            fields.insert(field);
        }
    }

    /// Visits every documented place of a body, the body itself first.
    pub fn places<'a>(&'a self, schema: &'a Value, body: &Value, visit: &mut dyn FnMut(Place<'a>)) {
        let whole = Place {
            steps: Vec::new(),
            field: String::new(),
            schema,
            takes_null: false,
            required: false,
            is_member: false,
        };
        self.below(whole, body, visit);
    }

    fn below<'a>(&'a self, place: Place<'a>, value: &Value, visit: &mut dyn FnMut(Place<'a>)) {
        let (mut schema, mut within) = (place.schema, place.field.clone());
        if let Some((member, word)) = self.tagged(schema, value) {
            schema = member;
            within = format!("{within}.{word}");
        }
        let steps = place.steps.clone();
        visit(place);
        let deeper = |step: Step| steps.iter().cloned().chain([step]).collect();
        if let (Some(items), Some(item_schema)) = (value.as_array(), schema.get("items")) {
            for (index, item) in items.iter().enumerate() {
                let (schema, takes_null) = self.without_null(item_schema);
                let place = Place {
                    steps: deeper(Step::Index(index)),
                    field: format!("{within}[]"),
                    schema,
                    takes_null,
                    required: false,
                    is_member: false,
                };
                self.below(place, item, visit);
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(value) = value.get(name) else {
                continue;
            };
            let (property, takes_null) = self.without_null(property);
            let required = schema["required"].as_array();
            let place = Place {
                steps: deeper(Step::Key(name.clone())),
                field: joined(&within, name),
                schema: property,
                takes_null,
                required: required.is_some_and(|required| required.iter().any(|required| required == name)),
                is_member: true,
            };
            self.below(place, value, visit);
        }
    }
}

fn joined(within: &str, name: &str) -> String {
    match within {
        "" => name.to_owned(),
        within => format!("{within}.{name}"),
    }
}
