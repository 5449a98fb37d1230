//! What counts as a failure in a service's answers, and what it is called.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::template::{Reach, Template, TemplateError};

/// A rule that tells failures. The first rule that holds decides; a status of 400 and up fails without one, too.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailureRule {
    /// Of the response: whether it is this failure.
    pub(super) when: Template,
    /// The failure's code, such as `NOT_FOUND`; `HTTP_ERROR` by default. `CREDENTIAL_INVALID` says that the service
    /// refuses the credential.
    #[serde(default)]
    code: Option<FailureCode>,
    /// Of the response: a sentence for people. By default, the status and the beginning of the body.
    #[serde(default)]
    pub(super) message: Option<Template>,
    /// Whether the same request may succeed later; by default, when the status is 429 or 503.
    #[serde(default)]
    temporary: Option<bool>,
}

/// A word in upper case.
struct FailureCode(String);

/// A failure that a rule has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldFailure {
    /// Its code, when the rule names one.
    pub code: Option<String>,
    /// The service's sentence, when the rule finds one.
    pub message: Option<String>,
    /// Whether the same request may succeed later, when the rule says.
    pub temporary: Option<bool>,
}

impl FailureRule {
    /// The failure's code, when the rule names one.
    pub(super) fn code(&self) -> Option<&str> {
        self.code.as_ref().map(|code| code.0.as_str())
    }

    /// The failure that a response is, by the first of these rules that holds.
    ///
    /// # Errors
    /// When a template gives nothing usable.
    pub(super) fn first<'a>(
        rules: impl IntoIterator<Item = &'a Self>,
        reach: &Reach<'_>,
    ) -> Result<Option<ToldFailure>, TemplateError> {
        for rule in rules {
            if rule.when.holds(reach)? {
                let message = rule
                    .message
                    .as_ref()
                    .map(|message| message.text(reach))
                    .transpose()?;
                return Ok(Some(ToldFailure {
                    code: rule.code.as_ref().map(|code| code.0.clone()),
                    message: message.filter(|message| !message.is_empty()),
                    temporary: rule.temporary,
                }));
            }
        }
        Ok(None)
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        let is_word = code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        match is_word && !code.is_empty() {
            true => Ok(Self(code)),
            false => Err(serde::de::Error::custom(format!(
                "the code {code:?} must be written in upper case and underscores, such as NOT_FOUND"
            ))),
        }
    }
}

impl JsonSchema for FailureCode {
    fn schema_name() -> Cow<'static, str> {
        "FailureCode".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z_]+$" })
    }
}
