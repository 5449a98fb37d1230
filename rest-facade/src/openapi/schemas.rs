//! Messages and fields as JSON schemas.
//!
//! A request may leave out what is not required; a response always has what it can have. So a message that travels
//! both ways has two schemas, the one for requests named `…Input`.

use std::collections::{BTreeMap, BTreeSet};

use contract::options::{
    Contract, Form, Http, PACKAGE, enum_words, is_optional, is_outside_body, is_required, number, typed_rules,
};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::comments::Comments;

/// Which way a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// The schemas that were asked for, and those they need.
pub(super) struct Schemas<'a> {
    pub contract: &'a Contract,
    pub comments: &'a Comments,
    /// Messages that responses hold.
    in_responses: BTreeSet<String>,
    components: BTreeMap<String, Value>,
}

impl<'a> Schemas<'a> {
    pub fn new(contract: &'a Contract, comments: &'a Comments) -> Self {
        Self {
            contract,
            comments,
            in_responses: messages_in_responses(contract),
            components: BTreeMap::new(),
        }
    }

    pub fn into_components(self) -> BTreeMap<String, Value> {
        self.components
    }

    /// The schema of a request's body; none when nothing is left for it.
    pub fn body(&mut self, message: &MessageDescriptor, http: &Http) -> Option<Value> {
        let fields = message
            .fields()
            .filter(|field| !is_outside_body(self.contract, http, field))
            .collect::<Vec<_>>();
        if fields.is_empty() {
            return None;
        }
        let name = message.name().to_owned();
        let schema = self.object(&fields, Direction::Request, None);
        self.components.insert(name.clone(), schema);
        Some(reference(&name))
    }

    /// The schema of a message.
    pub fn message(&mut self, message: &MessageDescriptor, direction: Direction) -> Value {
        match (message.full_name(), self.contract.form(message)) {
            ("google.protobuf.Timestamp", _) => return json!({"type": "string", "format": "date-time"}),
            (_, Form::Value) => return json!({}),
            (_, Form::Object) => return json!({"type": "object"}),
            _ => {}
        }
        let name = self.name(message, direction);
        if !self.components.contains_key(&name) {
            // A place holder, so that a message that holds itself ends.
            self.components.insert(name.clone(), Value::Null);
            let mut schema = match self.contract.form(message) {
                Form::Tagged(tag) => self.tagged(message, direction, &tag),
                Form::Untagged => json!({"type": ["integer", "string"]}),
                _ => self.object(&message.fields().collect::<Vec<_>>(), direction, None),
            };
            describe(
                &mut schema,
                self.comments.of(&message.parent_file(), message.path()),
            );
            self.components.insert(name.clone(), schema);
        }
        reference(&name)
    }

    fn name(&self, message: &MessageDescriptor, direction: Direction) -> String {
        let both = self.in_responses.contains(message.name());
        // What is one thing both ways needs no second name.
        let one = matches!(self.contract.form(message), Form::Untagged);
        match direction {
            Direction::Request if both && !one => format!("{}Input", message.name()),
            _ => message.name().to_owned(),
        }
    }

    /// An object of fields, beside a tag if there is one.
    fn object(
        &mut self,
        fields: &[FieldDescriptor],
        direction: Direction,
        tag: Option<(&str, &str)>,
    ) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        if let Some((tag, word)) = tag {
            properties.insert(tag.to_owned(), json!({"type": "string", "const": word}));
            required.push(tag.to_owned());
        }
        for field in fields {
            properties.insert(field.json_name().to_owned(), self.field(field, direction));
            if self.must_be_there(field, direction) {
                required.push(field.json_name().to_owned());
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if direction == Direction::Request {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }

    fn must_be_there(&self, field: &FieldDescriptor, direction: Direction) -> bool {
        let options = self.contract.field_options(field);
        match direction {
            Direction::Request => {
                options.required_key
                    || self
                        .contract
                        .field_rules(field)
                        .is_some_and(|rules| is_required(&rules))
            }
            Direction::Response => {
                let presence = is_optional(field) && field.field_descriptor_proto().proto3_optional();
                options.nullable || !presence
            }
        }
    }

    fn tagged(&mut self, message: &MessageDescriptor, direction: Direction, tag: &str) -> Value {
        let (mut members, mut mapping) = (Vec::new(), Map::new());
        for field in message.fields() {
            let Kind::Message(member) = field.kind() else {
                continue;
            };
            let name = self.name(&member, direction);
            let fields = member.fields().collect::<Vec<_>>();
            let mut schema = self.object(&fields, direction, Some((tag, field.name())));
            describe(
                &mut schema,
                self.comments.of(&member.parent_file(), member.path()),
            );
            self.components.insert(name.clone(), schema);
            members.push(reference(&name));
            mapping.insert(field.name().to_owned(), reference(&name)["$ref"].clone());
        }
        json!({"oneOf": members, "discriminator": {"propertyName": tag, "mapping": mapping}})
    }

    /// The schema of a field, with its limits, its description and an example.
    pub fn field(&mut self, field: &FieldDescriptor, direction: Direction) -> Value {
        let rules = self.contract.field_rules(field);
        let options = self.contract.field_options(field);
        let mut schema = if field.is_map() {
            self.map(field, direction, rules.as_ref())
        } else if field.is_list() {
            self.list(field, direction, rules.as_ref())
        } else {
            self.value(field, direction, rules.as_ref())
        };
        if options.nullable {
            schema = nullable(schema);
        }
        describe(
            &mut schema,
            self.comments
                .of(&field.parent_message().parent_file(), field.path()),
        );
        if !options.default_value.is_empty() {
            schema["default"] = typed(&options.default_value);
        }
        if let Ok(example) = serde_json::from_str::<Value>(&options.example) {
            schema["examples"] = json!([example]);
        }
        schema
    }

    fn list(
        &mut self,
        field: &FieldDescriptor,
        direction: Direction,
        rules: Option<&DynamicMessage>,
    ) -> Value {
        let mut schema = json!({"type": "array"});
        let mut item_rules = None;
        for (name, value) in rules
            .map(|rules| typed_rules(rules, "repeated"))
            .unwrap_or_default()
        {
            match (name.as_str(), value) {
                ("min_items", value) => schema["minItems"] = json!(number(&value)),
                ("max_items", value) => schema["maxItems"] = json!(number(&value)),
                ("unique", _) => schema["uniqueItems"] = json!(true),
                ("items", prost_reflect::Value::Message(rules)) => item_rules = Some(rules),
                _ => {}
            }
        }
        schema["items"] = self.value(field, direction, item_rules.as_ref());
        schema
    }

    fn map(
        &mut self,
        field: &FieldDescriptor,
        direction: Direction,
        rules: Option<&DynamicMessage>,
    ) -> Value {
        let mut schema = json!({"type": "object"});
        for (name, value) in rules.map(|rules| typed_rules(rules, "map")).unwrap_or_default() {
            if name == "max_pairs" {
                schema["maxProperties"] = json!(number(&value));
            }
        }
        if let Kind::Message(entry) = field.kind() {
            schema["additionalProperties"] = self.value(&entry.map_entry_value_field(), direction, None);
        }
        schema
    }

    /// The schema of one value of a field.
    fn value(
        &mut self,
        field: &FieldDescriptor,
        direction: Direction,
        rules: Option<&DynamicMessage>,
    ) -> Value {
        let rules_of = |kind| rules.map(|rules| typed_rules(rules, kind)).unwrap_or_default();
        match field.kind() {
            Kind::Message(message) => self.message(&message, direction),
            Kind::Enum(kind) => {
                let words = enum_words(&kind).into_iter().map(|(word, _)| word);
                json!({"type": "string", "enum": words.collect::<Vec<_>>()})
            }
            Kind::Bool => match rules_of("bool").first().and_then(|(_, value)| value.as_bool()) {
                Some(value) => json!({"type": "boolean", "const": value}),
                None => json!({"type": "boolean"}),
            },
            Kind::Int32 => limited(json!({"type": "integer", "format": "int32"}), rules_of("int32")),
            Kind::Int64 => limited(json!({"type": "integer", "format": "int64"}), rules_of("int64")),
            Kind::Float | Kind::Double => json!({"type": "number", "format": "double"}),
            _ => {
                let schema = limited(json!({"type": "string"}), rules_of("string"));
                match self.contract.field_options(field).trim {
                    true => trimmed(schema),
                    false => schema,
                }
            }
        }
    }
}

/// The names of all messages that responses and errors hold.
fn messages_in_responses(contract: &Contract) -> BTreeSet<String> {
    let methods = contract
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut open: Vec<MessageDescriptor> = methods
        .filter(|method| contract.method_options(method).http.is_some())
        .map(|method| method.output())
        .collect();
    let mut names = BTreeSet::new();
    while let Some(message) = open.pop() {
        let known = !message.is_map_entry() && !names.insert(message.name().to_owned());
        if !known && message.package_name() == PACKAGE {
            open.extend(
                message
                    .fields()
                    .filter_map(|field| field.kind().as_message().cloned()),
            );
        }
    }
    names
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn describe(schema: &mut Value, comment: &str) {
    if !comment.is_empty() {
        schema["description"] = json!(comment);
    }
}

/// A default as JSON: a number where it reads like one.
fn typed(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| json!(text), |number| json!(number))
}

fn limited(mut schema: Value, rules: Vec<(String, prost_reflect::Value)>) -> Value {
    for (name, value) in rules {
        let (key, limit) = match name.as_str() {
            "min_len" => ("minLength", json!(number(&value))),
            // A text of so many bytes has at most so many characters.
            "max_len" | "max_bytes" => ("maxLength", json!(number(&value))),
            "pattern" => ("pattern", json!(value.as_str())),
            "email" => ("format", json!("email")),
            "gte" => ("minimum", json!(number(&value))),
            "lte" => ("maximum", json!(number(&value))),
            _ => continue,
        };
        schema[key] = limit;
    }
    schema
}

/// The schema of a text whose surrounding white space does not count: its greatest length is a pattern's to tell.
fn trimmed(mut schema: Value) -> Value {
    let has_form = schema.get("pattern").is_some() || schema.get("format").is_some();
    if let (false, Some(longest)) = (
        has_form,
        schema["maxLength"].as_u64().filter(|longest| *longest > 1),
    ) {
        let between = longest - 2;
        schema["pattern"] = json!(format!(r"^\s*\S([\s\S]{{0,{between}}}\S)?\s*$"));
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("maxLength");
        }
    }
    schema
}

/// The schema that takes null besides.
fn nullable(mut schema: Value) -> Value {
    if schema.get("$ref").is_some() {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(kind) => *kind = json!([kind.clone(), "null"]),
        // Any value: null is one.
        None => {}
    }
    schema
}
