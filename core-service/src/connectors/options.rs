//! Dynamic options: the choices of a field, read from what a service answers.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

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
    pub(super) request: RequestTemplate,
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
    /// Of the response: the list.
    pub(super) items: Template,
    /// Of each `$item`: what the choice stands for.
    pub(super) value: Template,
    /// Of each `$item`: what people read.
    pub(super) label: Template,
}

/// Choices, cut where there are too many.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicOptions {
    /// The choices, at most 200.
    pub items: Vec<DynamicOption>,
    /// How many there are, when that is more.
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
    pub fn choices(&self, items: &[Value]) -> Result<DynamicOptions, TemplateError> {
        let mut reach = Reach::new();
        let given = items.iter().take(MOST_OPTIONS);
        let options = given.map(|item| {
            reach.item = Some(item);
            Ok(DynamicOption {
                value: self.options.value.evaluate(&reach)?,
                label: self.options.label.text(&reach)?,
            })
        });
        let options = options.collect::<Result<_, TemplateError>>()?;
        Ok(DynamicOptions {
            items: options,
            total: (items.len() > MOST_OPTIONS).then_some(items.len()),
        })
    }
}
