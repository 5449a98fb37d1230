//! Schemas, as far as fields need them: what a value is, and the properties of an object.

use serde_json::Value;

use super::Warnings;
use super::document::Part;

/// The most schemas that are put together into one.
const MOST_PARTS: usize = 100;

/// A schema, what it refers to and all of its `allOf` put together.
#[derive(Default)]
pub(super) struct Schema<'d> {
    /// The types it allows, `null` left out.
    pub(super) types: Vec<&'d str>,
    /// In the document's order.
    pub(super) properties: Vec<(&'d str, Part<'d>)>,
    pub(super) required: Vec<&'d str>,
    pub(super) words: Vec<&'d Value>,
    pub(super) default: Option<&'d Value>,
    pub(super) example: Option<&'d Value>,
    pub(super) title: Option<&'d str>,
    pub(super) description: Option<&'d str>,
    pub(super) format: Option<&'d str>,
    pub(super) read_only: bool,
    /// Whether there are alternatives, so that no list of properties says all.
    pub(super) has_alternatives: bool,
    /// Whether it says that there may be properties without a name.
    pub(super) is_open: bool,
}

impl<'d> Schema<'d> {
    pub(super) fn of(part: &Part<'d>, warnings: &mut Warnings) -> Self {
        let mut schema = Self::default();
        let mut next = vec![part.clone()];
        let mut seen: Vec<&Value> = Vec::new();
        while let Some(part) = next.pop() {
            // Its parts may lead back to it.
            if seen.len() == MOST_PARTS || seen.iter().any(|known| std::ptr::eq(*known, part.value)) {
                continue;
            }
            seen.push(part.value);
            schema.add(&part, warnings);
            let mut parts = part.elements("allOf", warnings);
            parts.reverse();
            next.extend(parts);
        }
        schema
    }

    fn add(&mut self, part: &Part<'d>, warnings: &mut Warnings) {
        self.add_types(part.value.get("type"));
        for (name, property) in part.members("properties", warnings) {
            if !self.properties.iter().any(|(known, _)| *known == name) {
                self.properties.push((name, property));
            }
        }
        let texts = |name: &str| {
            let list = part.value.get(name).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str)
        };
        self.required.extend(texts("required"));
        if let (true, Some(words)) = (
            self.words.is_empty(),
            part.value.get("enum").and_then(Value::as_array),
        ) {
            self.words = words.iter().filter(|word| !word.is_null()).collect();
        }
        if let (true, Some(only)) = (self.words.is_empty(), part.value.get("const")) {
            self.words = vec![only];
        }
        let examples = part.value.get("examples").and_then(Value::as_array);
        let example = part
            .value
            .get("example")
            .or_else(|| examples.and_then(|list| list.first()));
        self.default = self
            .default
            .or(part.value.get("default").filter(|value| !value.is_null()));
        self.example = self.example.or(example.filter(|value| !value.is_null()));
        self.title = self.title.or(part.text("title"));
        self.description = self.description.or(part.text("description"));
        self.format = self.format.or(part.text("format"));
        self.read_only |= part.flag("readOnly");
        for name in ["oneOf", "anyOf"] {
            let alternatives = part.elements(name, warnings);
            self.add_alternatives(&alternatives);
        }
        let additional = part.value.get("additionalProperties");
        self.is_open |= additional.is_some_and(|additional| *additional != Value::Bool(false));
    }

    fn add_types(&mut self, said: Option<&'d Value>) {
        let said = match said {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        for one in said {
            if one != "null" && !self.types.contains(&one) {
                self.types.push(one);
            }
        }
    }

    /// Of alternatives, `null` is the way in which a value may be absent, and one alone is none.
    fn add_alternatives(&mut self, alternatives: &[Part<'d>]) {
        let is_null = |part: &&Part<'_>| part.text("type") != Some("null");
        let alternatives: Vec<&Part<'d>> = alternatives.iter().filter(is_null).collect();
        for alternative in &alternatives {
            self.add_types(alternative.value.get("type"));
            if alternative.value.get("type").is_none() {
                // It may be anything, as far as can be seen from here.
                self.types.extend(["object", "string"]);
            }
        }
        self.has_alternatives |= !alternatives.is_empty();
    }

    /// The one type of its values, if they have one.
    pub(super) fn only_type(&self) -> Option<&'d str> {
        match self.types.as_slice() {
            [] if !self.properties.is_empty() => Some("object"),
            [one] => Some(one),
            ["integer", "number"] | ["number", "integer"] => Some("number"),
            _ => None,
        }
    }

    /// Whether its values are objects whose properties can be given one by one.
    pub(super) fn is_plain_object(&self) -> bool {
        self.only_type() == Some("object") && !self.properties.is_empty() && !self.has_alternatives
    }

    pub(super) fn is_binary(&self) -> bool {
        matches!(self.format, Some("binary" | "byte"))
    }
}
