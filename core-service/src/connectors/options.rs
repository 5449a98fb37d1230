//! Dynamic options: the choices of a field, read from what a service answers.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pagination::Pagination;
use super::request::RequestTemplate;
use super::template::{Reach, Template, TemplateError};

/// The most choices that are given.
const MOST_OPTIONS: usize = 200;

/// A question whose answer is the choices of a field.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rpc {
    /// Its id within the app.
    pub id: String,
    /// Its name.
    pub label: String,
    /// The parameters that the answer depends on: fields of the modules that use it.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The request it makes.
    #[serde(default)]
    pub(super) request: Option<RequestTemplate>,
    /// The operation of the app's driver that it calls, instead of a request; its parameters are `dependsOn`.
    #[serde(default)]
    pub operation: Option<String>,
    /// How the list goes on.
    #[serde(default)]
    pub(super) pagination: Option<Pagination>,
    /// How the choices are read from the response.
    pub(super) options: OptionsTemplate,
}

/// How choices are read from a response.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OptionsTemplate {
    /// Of the response: the list. Absent where an operation gives it.
    #[serde(default)]
    pub(super) items: Option<Template>,
    /// Of the response: whether the service has more than its list holds, where no pagination asks for that.
    #[serde(default)]
    pub(super) more: Option<Template>,
    /// Of each `$item`: what the choice stands for.
    pub(super) value: Template,
    /// Of each `$item`: what people read.
    pub(super) label: Template,
}

/// What an rpc is answered, all pages of it.
pub struct Listed {
    /// The things on all pages that were asked for.
    pub items: Vec<Value>,
    /// Whether the service has more of them.
    pub goes_on: bool,
}

/// Choices, cut where there are too many.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicOptions {
    /// The choices, at most 200.
    pub items: Vec<DynamicOption>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many there are, when that is more and known.
    pub total: Option<usize>,
}

/// One choice.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicOption {
    /// What it stands for.
    pub value: Value,
    /// What people read.
    pub label: String,
}

impl Rpc {
    /// The choices of a list.
    ///
    /// # Errors
    /// When the templates make none of its items.
    pub fn choices(&self, listed: &Listed) -> Result<DynamicOptions, TemplateError> {
        let mut reach = Reach::new();
        let given = listed.items.iter().take(MOST_OPTIONS);
        let options = given.map(|item| {
            reach.item = Some(item);
            Ok(DynamicOption {
                value: self.options.value.evaluate(&reach)?,
                label: self.options.label.text(&reach)?,
            })
        });
        let options = options.collect::<Result<_, TemplateError>>()?;
        let found = listed.items.len();
        Ok(DynamicOptions {
            items: options,
            truncated: listed.goes_on || found > MOST_OPTIONS,
            total: (!listed.goes_on && found > MOST_OPTIONS).then_some(found),
        })
    }
}

impl Listed {
    /// A list that is whole.
    pub fn whole(items: Value) -> Self {
        let items = match items {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        Self {
            items,
            goes_on: false,
        }
    }

    /// What a walk has given that tells whether its list goes on.
    pub fn of_walk(mut value: Value) -> Self {
        let items = value.get_mut("items").map(Value::take);
        Self {
            goes_on: value.get("goesOn") == Some(&Value::Bool(true)),
            ..Self::whole(items.unwrap_or_default())
        }
    }

    /// As a walk gives it.
    pub(super) fn into_value(self) -> Value {
        json!({ "items": self.items, "goesOn": self.goes_on })
    }
}
