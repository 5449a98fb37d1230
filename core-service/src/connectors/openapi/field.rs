//! Fields of modules, as schemas describe them.

use serde_json::{Map, Value, json};

use super::schema::Schema;
use super::{LONGEST_NAME, LONGEST_TEXT, Warnings, name};

/// The most words of a choice.
const MOST_WORDS: usize = 100;

/// A field of a module.
pub(super) struct Field {
    /// What templates call it.
    pub(super) name: String,
    pub(super) is_required: bool,
    /// As manifests write it.
    pub(super) written: Value,
    /// A value that passes its check.
    pub(super) example: Value,
}

/// What a field is made of.
pub(super) struct Source<'s, 'd> {
    /// What templates call it.
    pub(super) name: String,
    /// What the service calls it.
    pub(super) called: &'s str,
    pub(super) place: &'s str,
    pub(super) schema: &'s Schema<'d>,
    /// The parameter's own description, which says more than that of its schema.
    pub(super) description: Option<&'d str>,
    pub(super) is_required: bool,
    /// Whether lines may be broken in it: a text in a body, which is not put into a header or a URL.
    pub(super) is_in_body: bool,
}

impl Field {
    pub(super) fn of(source: Source<'_, '_>, warnings: &mut Warnings) -> Self {
        let Source { schema, .. } = source;
        let words = words(schema);
        let field_type = match &words {
            Some(_) => "choice",
            None => field_type(schema, source.is_in_body),
        };
        let mut written = Map::new();
        written.insert("name".to_owned(), json!(source.name));
        let label = schema
            .title
            .map_or_else(|| name::label(source.called), str::to_owned);
        written.insert("label".to_owned(), json!(name::short(&label, LONGEST_NAME)));
        written.insert("type".to_owned(), json!(field_type));
        if source.is_required {
            written.insert("required".to_owned(), json!(true));
        }
        written.insert("mappable".to_owned(), json!(true));
        if let Some(description) = description(&source) {
            written.insert("description".to_owned(), json!(description));
        }
        let fits = |value: &Value| fits(field_type, words.as_deref(), value);
        match schema.default {
            Some(default) if fits(default) => {
                written.insert("default".to_owned(), default.clone());
            }
            Some(default) => warnings.say(
                source.place,
                format!("the default {default} is left out: it does not fit"),
            ),
            None => {}
        }
        let example = [schema.example, schema.default, schema.words.first().copied()];
        let example = example.into_iter().flatten().find(|value| fits(value)).cloned();
        if let Some(words) = words {
            written.insert("choices".to_owned(), json!(words));
        }
        Self {
            example: example.unwrap_or_else(|| made_up(field_type)),
            name: source.name,
            is_required: source.is_required,
            written: Value::Object(written),
        }
    }
}

impl Field {
    /// The field of a place in a path that no parameter describes.
    pub(super) fn of_path(name: String, called: &str) -> Self {
        Self {
            written: json!({
                "name": name, "label": name::label(called), "type": "text", "required": true, "mappable": true,
            }),
            example: made_up("text"),
            is_required: true,
            name,
        }
    }
}

/// The words of a choice, when the schema is one between texts.
fn words(schema: &Schema<'_>) -> Option<Vec<String>> {
    if schema.words.is_empty() || schema.words.len() > MOST_WORDS || schema.has_alternatives {
        return None;
    }
    let word = |value: &&Value| value.as_str().map(str::to_owned);
    schema.words.iter().map(word).collect()
}

fn field_type(schema: &Schema<'_>, is_in_body: bool) -> &'static str {
    if schema.is_binary() {
        return "any";
    }
    match schema.only_type() {
        // One line only; what a body holds may have several.
        Some("string") if is_in_body && schema.format.is_none() => "any",
        Some("string") => "text",
        Some("integer") => "integer",
        Some("number") => "number",
        Some("boolean") => "boolean",
        Some("array") => "array",
        Some("object") => "object",
        _ => "any",
    }
}

fn description(source: &Source<'_, '_>) -> Option<String> {
    let schema = source.schema;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(source.description.or(schema.description).map(str::to_owned));
    if words(schema).is_none() && !schema.words.is_empty() {
        let words: Vec<String> = schema
            .words
            .iter()
            .take(MOST_WORDS)
            .map(ToString::to_string)
            .collect();
        parts.push(format!("One of {}.", words.join(", ")));
    }
    if schema.format == Some("binary") && source.is_in_body {
        parts.push("A file: {filename, contentType, content or base64}.".to_owned());
    }
    let text = name::short(&parts.join(" "), LONGEST_TEXT);
    Some(text).filter(|text| !text.is_empty())
}

/// Whether a value passes the check of a field.
fn fits(field_type: &str, words: Option<&[String]>, value: &Value) -> bool {
    match (field_type, value) {
        ("choice", Value::String(word)) => words.is_some_and(|words| words.contains(word)),
        ("text", Value::String(text)) => {
            !text.trim().is_empty()
                && text.chars().count() < LONGEST_TEXT
                && !text.chars().any(char::is_control)
        }
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("object", Value::Object(_)) => true,
        ("array", Value::Array(_)) => true,
        ("any", value) => !value.is_null(),
        _ => false,
    }
}

fn made_up(field_type: &str) -> Value {
    match field_type {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("{{1.value}}"),
    }
}
