//! Dynamic options: the choices of a field, read from what a service answers.

use serde::Deserialize;
use serde_json::Value;

use super::template::{Reach, Template, TemplateError};

/// The most choices that are given.
const MOST_OPTIONS: usize = 200;

/// How choices are read from a response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OptionsTemplate {
    /// The list, of the response.
    items: Template,
    /// A choice's value, of each `$item`.
    value: Template,
    /// A choice's text, of each `$item`.
    label: Template,
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

impl OptionsTemplate {
    /// The choices in a response: an object with `status`, `headers` and `body`.
    ///
    /// # Errors
    /// When there is no list.
    pub fn read(&self, response: &Value) -> Result<DynamicOptions, TemplateError> {
        let mut reach = Reach::new();
        reach.response = Some(response);
        let Value::Array(items) = self.items.evaluate(&reach)? else {
            return Err(TemplateError::new("the answer holds no list of choices"));
        };
        let given = items.iter().take(MOST_OPTIONS);
        let options = given.map(|item| {
            reach.item = Some(item);
            Ok(DynamicOption {
                value: self.value.evaluate(&reach)?,
                label: self.label.text(&reach)?,
            })
        });
        let options = options.collect::<Result<_, TemplateError>>()?;
        Ok(DynamicOptions {
            items: options,
            total: (items.len() > MOST_OPTIONS).then_some(items.len()),
        })
    }
}
