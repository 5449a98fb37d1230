//! The fields of connections and modules, and what values they take.

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use url::Url;

/// The most characters of a text.
const LONGEST_TEXT: usize = 16_384;

/// One field.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// Whether nothing works without it.
    #[serde(default)]
    pub required: bool,
    /// Whether nobody may see it.
    #[serde(default)]
    pub secret: bool,
    /// Whether it takes templates; of a module only.
    #[serde(default)]
    pub mappable: bool,
    /// Whether a text may have several lines. Such a text fits no header.
    #[serde(default)]
    pub multiline: bool,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
    /// The words of a choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// What stands for a value that is not given.
    #[serde(default)]
    pub default: Option<Value>,
    /// What a text must match as a whole.
    #[serde(default, deserialize_with = "whole_pattern")]
    #[schemars(with = "Option<String>")]
    pub pattern: Option<Regex>,
    /// The rpc whose answer is the choices, which are only known while the service is asked; of a module only.
    #[serde(default)]
    pub options: Option<String>,
}

/// What a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// One line of text.
    Text,
    /// A URL of HTTP.
    Url,
    /// One of some words.
    Choice,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// Anything.
    Any,
}

/// One thing wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field.
    pub name: String,
    /// What is wrong, after the field's name.
    pub message: String,
}

impl FieldType {
    /// The word of the contract for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Url => "url",
            Self::Choice => "choice",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Any => "any",
        }
    }
}

impl Field {
    /// Checks a value that is not null.
    pub(super) fn check(&self, value: &Value) -> Result<(), FieldProblem> {
        let wrong = match (self.field_type, value) {
            (FieldType::Text, Value::String(text)) => self.check_text(text).err(),
            (FieldType::Url, Value::String(text)) => check_url(text).err(),
            (FieldType::Choice, Value::String(word)) if self.choices.contains(word) => None,
            (FieldType::Choice, _) => Some(format!("must be one of {}", self.choices.join(", "))),
            (FieldType::Integer, Value::Number(number)) if is_whole(number) => None,
            (FieldType::Number, Value::Number(_))
            | (FieldType::Boolean, Value::Bool(_))
            | (FieldType::Object, Value::Object(_))
            | (FieldType::Array, Value::Array(_))
            | (FieldType::Any, _) => None,
            (FieldType::Text | FieldType::Url, _) => Some("must be a text".to_owned()),
            (FieldType::Integer, _) => Some("must be a whole number".to_owned()),
            (FieldType::Number, _) => Some("must be a number".to_owned()),
            (FieldType::Boolean, _) => Some("must be true or false".to_owned()),
            (FieldType::Object, _) => Some("must be an object".to_owned()),
            (FieldType::Array, _) => Some("must be a list".to_owned()),
        };
        wrong.map_or(Ok(()), |message| Err(self.problem(message)))
    }

    /// What a person typed, as the field's type; nothing for nothing.
    pub(super) fn typed(&self, text: &str) -> Result<Option<Value>, FieldProblem> {
        if text.is_empty() {
            return Ok(None);
        }
        let value = match self.field_type {
            FieldType::Text | FieldType::Url | FieldType::Choice => Value::from(text),
            FieldType::Integer
            | FieldType::Number
            | FieldType::Boolean
            | FieldType::Object
            | FieldType::Array
            | FieldType::Any => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        };
        self.check(&value).map(|()| Some(value))
    }

    pub(super) fn problem(&self, message: impl Into<String>) -> FieldProblem {
        FieldProblem {
            name: self.name.clone(),
            message: message.into(),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Err("must not be blank".to_owned());
        }
        if text.chars().count() > LONGEST_TEXT {
            return Err(format!("must have at most {LONGEST_TEXT} characters"));
        }
        // They would end the header that the text is put into.
        let is_layout = |letter: char| self.multiline && matches!(letter, '\n' | '\r' | '\t');
        if text
            .chars()
            .any(|letter| letter.is_control() && !is_layout(letter))
        {
            return Err("must not hold line breaks or other control characters".to_owned());
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(text) => Err(format!("must match {pattern}")),
            _ => Ok(()),
        }
    }
}

/// The values, with those that stand for what is not given.
pub(super) fn with_defaults(fields: &[Field], values: &Map<String, Value>) -> Value {
    let mut values = values.clone();
    for field in fields {
        let value = values.entry(field.name.as_str()).or_insert(Value::Null);
        if let (true, Some(default)) = (value.is_null(), &field.default) {
            value.clone_from(default);
        }
    }
    Value::Object(values)
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}

fn check_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text).ok();
    let usable = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match usable {
        Some(url) if url.username().is_empty() && url.password().is_none() => Ok(()),
        Some(_) => Err("must not hold a user name or password".to_owned()),
        None => Err("must be a URL that begins with http:// or https://".to_owned()),
    }
}

fn whole_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    let whole = Regex::new(&format!("^(?:{pattern})$"));
    whole.map(Some).map_err(serde::de::Error::custom)
}
