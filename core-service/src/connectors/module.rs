//! Modules: what an app can do, and what starts runs.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::failure::FailureRule;
use super::field::{Field, FieldProblem, with_defaults};
use super::guard::Guard;
use super::pagination::Pagination;
use super::request::RequestTemplate;
use super::template::Template;
use super::trigger::{Poll, Webhook};

/// One thing that an app can do.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Module {
    /// Its id within the app.
    pub id: String,
    /// Its name.
    pub label: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub module_type: ModuleType,
    /// What it does.
    pub description: String,
    /// Whether it works without a credential; `required` by default.
    #[serde(default)]
    pub connection: ConnectionNeed,
    /// Its parameters.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Parameters that pass its check.
    #[serde(default)]
    pub example: Map<String, Value>,
    /// Parameters that it refuses, before anything is asked. The first guard that holds says why.
    #[serde(default)]
    pub(super) refuse: Vec<Guard>,
    /// The request it makes.
    #[serde(default)]
    pub(super) request: Option<RequestTemplate>,
    /// The operation of the app's driver that it calls, instead of a request. The module's fields have the names of the
    /// operation's parameters.
    #[serde(default)]
    pub operation: Option<String>,
    /// How the list goes on (`search`, and triggers that poll).
    #[serde(default)]
    pub(super) pagination: Option<Pagination>,
    /// Of the response: the node's output (`action`); of the delivery: the run's input (triggers with a webhook). The
    /// body by default.
    #[serde(default)]
    pub(super) output: Option<Template>,
    /// Of the response: the list (`search`, and triggers that poll). The body by default.
    #[serde(default)]
    pub(super) items: Option<Template>,
    /// The most items that are given (`search`).
    #[serde(default)]
    pub(super) limit: Option<Template>,
    /// Rules that tell failures; they come before those of the app.
    #[serde(default)]
    pub(super) errors: Vec<FailureRule>,
    /// For a trigger that asks again and again.
    #[serde(default)]
    pub poll: Option<Poll>,
    /// For a trigger that the service calls.
    #[serde(default)]
    pub webhook: Option<Webhook>,
}

/// What kind of thing a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModuleType {
    /// It does something and has one output.
    Action,
    /// It finds things; what follows it runs once for each.
    Search,
    /// It starts runs, by `poll` or by `webhook`.
    Trigger,
}

/// Whether a module works without a credential.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionNeed {
    /// With and without.
    Optional,
    /// Only with one.
    #[default]
    Required,
}

impl ModuleType {
    /// The word of the contract for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Search => "search",
            Self::Trigger => "trigger",
        }
    }
}

impl Module {
    /// Checks the values of parameters. Those with templates must be left out.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), FieldProblem> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.map_or(Ok(()), |field| field.check(value))
    }

    /// A node's parameters, with what stands for those that are not given.
    pub fn with_defaults(&self, parameters: &Map<String, Value>) -> Value {
        with_defaults(&self.fields, parameters)
    }

    /// The most pages of its list that are read.
    pub(super) fn most_pages(&self) -> u32 {
        let pagination = self.pagination.as_ref();
        pagination.map_or(1, |pagination| pagination.most(self.poll.is_some()))
    }

    /// Whether what follows it runs once for each thing it finds.
    pub fn emits_several(&self) -> bool {
        self.module_type == ModuleType::Search
    }
}
