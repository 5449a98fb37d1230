//! The document itself: read within bounds, and walked with its references resolved.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{ImportError, MOST_BYTES, Warnings};

/// The deepest nesting, which the stack of a thread has to bear, and the most values.
const DEEPEST: usize = 64;
const MOST_VALUES: usize = 1_000_000;
/// The most references that lead to each other.
const MOST_HOPS: usize = 32;

/// A document that was read.
pub(super) struct Document(Value);

/// A value of the document and where it stands.
#[derive(Clone)]
pub(super) struct Part<'d> {
    document: &'d Document,
    pub(super) value: &'d Value,
    /// Such as `paths./pets.get`; empty for the document as a whole.
    pub(super) place: String,
}

impl Document {
    /// Reads JSON or YAML.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ImportError> {
        let refused = |message: String| ImportError::new("document", message);
        if bytes.len() > MOST_BYTES {
            return Err(refused(format!(
                "has {} bytes; at most {MOST_BYTES} can be read",
                bytes.len()
            )));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            refused(format!(
                "is not UTF-8 text: byte {} cannot be read",
                error.valid_up_to()
            ))
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value: Value = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text).map_err(|error| refused(format!("is no JSON: {error}")))?,
            false => serde_saphyr::from_str_with_options(text, bounds())
                .map_err(|error| refused(format!("is no YAML: {}", error.without_snippet())))?,
        };
        match value {
            Value::Object(_) if depth(&value) > DEEPEST => {
                Err(refused(format!("is nested more than {DEEPEST} deep")))
            }
            Value::Object(_) => Ok(Self(value)),
            _ => Err(refused("is no OpenAPI document, which is an object".to_owned())),
        }
    }

    pub(super) fn root(&self) -> Part<'_> {
        Part {
            document: self,
            value: &self.0,
            place: String::new(),
        }
    }
}

fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_nodes: MOST_VALUES,
            max_events: 4 * MOST_VALUES,
        },
    }
}

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

impl<'d> Part<'d> {
    fn at(&self, value: &'d Value, place: String) -> Self {
        Self {
            document: self.document,
            value,
            place,
        }
    }

    /// A member, what it refers to in its place. One whose reference leads nowhere is named and left out.
    pub(super) fn member(&self, name: &str, warnings: &mut Warnings) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        self.at(value, joined(&self.place, name)).resolved(warnings)
    }

    /// The members of a member, in the document's order.
    pub(super) fn members(&self, name: &str, warnings: &mut Warnings) -> Vec<(&'d str, Self)> {
        let Some(part) = self.member(name, warnings) else {
            return Vec::new();
        };
        let members = part.value.as_object().into_iter().flatten();
        let resolved = members.filter_map(|(name, value)| {
            let member = part.at(value, joined(&part.place, name));
            Some((name.as_str(), member.resolved(warnings)?))
        });
        resolved.collect()
    }

    /// The elements of a member.
    pub(super) fn elements(&self, name: &str, warnings: &mut Warnings) -> Vec<Self> {
        let Some(part) = self.member(name, warnings) else {
            return Vec::new();
        };
        let elements = part.value.as_array().into_iter().flatten().enumerate();
        let resolved = elements.filter_map(|(number, value)| {
            let element = part.at(value, format!("{}[{number}]", part.place));
            element.resolved(warnings)
        });
        resolved.collect()
    }

    /// A text that says something.
    pub(super) fn text(&self, name: &str) -> Option<&'d str> {
        let text = self.value.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
    }

    /// Whether a member is true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }

    /// The members, when it has any.
    pub(super) fn object(&self) -> Option<&'d Map<String, Value>> {
        self.value.as_object()
    }

    /// What it refers to, or itself.
    fn resolved(mut self, warnings: &mut Warnings) -> Option<Self> {
        for _ in 0..MOST_HOPS {
            let Some(reference) = self.value.get("$ref").and_then(Value::as_str) else {
                return Some(self);
            };
            let found = reference
                .strip_prefix('#')
                .and_then(|path| self.document.0.pointer(&unescaped(path)));
            let Some(value) = found else {
                let message = format!("is left out: {reference} leads to nothing in the document");
                warnings.say(&self.place, message);
                return None;
            };
            self.value = value;
        }
        warnings.say(&self.place, "is left out: its reference leads back to itself");
        None
    }
}

fn joined(place: &str, name: &str) -> String {
    match place.is_empty() {
        true => name.to_owned(),
        false => format!("{place}.{name}"),
    }
}

/// A pointer as it stands in a URL's fragment.
fn unescaped(path: &str) -> Cow<'_, str> {
    percent_decode_str(path).decode_utf8_lossy()
}
