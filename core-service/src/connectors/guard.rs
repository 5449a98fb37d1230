//! What a module refuses to ask: parameters that make a request, but one that nobody can mean.

use schemars::JsonSchema;
use serde::Deserialize;

use super::template::{Reach, Template, TemplateError};

/// Parameters that a module refuses.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guard {
    /// Of the parameters: whether they are refused.
    pub(super) when: Template,
    /// Why, and what would help.
    pub(super) message: String,
}

impl Guard {
    /// Lets parameters pass that no guard refuses.
    ///
    /// # Errors
    /// With the message of the first that does.
    pub(super) fn check(guards: &[Self], reach: &Reach<'_>) -> Result<(), TemplateError> {
        for guard in guards {
            if guard.when.holds(reach)? {
                return Err(TemplateError::new(guard.message.clone()));
            }
        }
        Ok(())
    }
}
