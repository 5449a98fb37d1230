//! What a manifest is, version 1. Whatever it says that is not known here is refused.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use url::Url;

use super::connection::{Connection, ConnectionData};
use super::field::{Field, FieldProblem};
use super::options::OptionsTemplate;
use super::template::{Reach, Template, TemplateError};

/// The version of manifests that this interpreter reads.
const VERSION: u32 = 1;

/// A service that nodes talk to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct App {
    #[serde(rename = "manifest")]
    version: u32,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// Where its requests may go, and its credentials with them.
    hosts: Vec<HostPattern>,
    /// The ways to connect.
    pub connections: Vec<Connection>,
    /// What it can do.
    pub modules: Vec<Module>,
    /// What dynamic options can ask it.
    #[serde(default)]
    pub rpcs: Vec<Rpc>,
}

/// One thing that an app can do.
#[derive(Deserialize)]
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
    /// Whether it works without a credential.
    pub connection: ConnectionNeed,
    /// Its parameters.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Parameters that pass its check.
    #[serde(default)]
    pub example: Map<String, Value>,
    /// The request it makes.
    request: Template,
}

/// What kind of thing a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModuleType {
    /// It does something.
    Action,
    /// It finds things.
    Search,
}

/// Whether a module works without a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionNeed {
    /// With and without.
    Optional,
    /// Only with one.
    Required,
}

/// A question whose answer is the choices of a field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rpc {
    /// Its id within the app.
    pub id: String,
    /// Its name.
    pub label: String,
    /// The parameters that the answer depends on.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The request it makes.
    request: Template,
    /// How the choices are read from the response.
    pub options: OptionsTemplate,
}

/// A host that an app's requests may go to: its name, `*.` and a domain, or `*`.
struct HostPattern(String);

/// A text that is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It does not have the form.
    #[error("the manifest cannot be read: {0}")]
    Form(Box<serde_saphyr::Error>),
    /// It has the form, and makes no sense.
    #[error("the manifest of {app}: {problem}")]
    Sense {
        /// The app.
        app: String,
        /// What is wrong.
        problem: String,
    },
}

impl ModuleType {
    /// The word of the contract for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Search => "search",
        }
    }
}

impl App {
    /// Reads a manifest in YAML.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(text: &str) -> Result<Self, ManifestError> {
        let app: Self = serde_saphyr::from_str(text).map_err(|error| ManifestError::Form(Box::new(error)))?;
        match app.problem() {
            None => Ok(app),
            Some(problem) => Err(ManifestError::Sense { app: app.id, problem }),
        }
    }

    /// The way to connect with this id.
    pub fn connection(&self, id: &str) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.id == id)
    }

    /// The module with this id.
    pub fn module(&self, id: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.id == id)
    }

    /// The rpc with this id.
    pub fn rpc(&self, id: &str) -> Option<&Rpc> {
        self.rpcs.iter().find(|rpc| rpc.id == id)
    }

    /// Whether its requests, and its credentials with them, may go to this URL's host.
    pub fn permits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.hosts.iter().any(|pattern| pattern.matches(host))
    }

    fn problem(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("version {} is not known, only {VERSION}", self.version));
        }
        let connections = self.connections.iter().map(|connection| connection.id.as_str());
        let modules = self.modules.iter().map(|module| module.id.as_str());
        let rpcs = self.rpcs.iter().map(|rpc| rpc.id.as_str());
        let fields = self.connections.iter().map(|connection| &connection.fields);
        let fields = fields.chain(self.modules.iter().map(|module| &module.fields));
        repeated(connections)
            .or_else(|| repeated(modules))
            .or_else(|| repeated(rpcs))
            .map(|id| format!("the id {id} stands twice"))
            .or_else(|| fields.into_iter().find_map(|fields| fields_problem(fields)))
    }
}

impl Module {
    /// The value of its request's template, for a node's parameters.
    ///
    /// # Errors
    /// When the template gives nothing usable.
    pub fn request(
        &self,
        parameters: &Map<String, Value>,
        data: Option<(&Connection, &ConnectionData)>,
    ) -> Result<Value, TemplateError> {
        let parameters = with_defaults(&self.fields, parameters);
        request(&self.request, &parameters, data)
    }

    /// Checks the values of parameters. Those with templates must be left out.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), FieldProblem> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.map_or(Ok(()), |field| field.check(value))
    }
}

impl Rpc {
    /// The value of its request's template, for a caller's parameters.
    ///
    /// # Errors
    /// When the template gives nothing usable.
    pub fn request(
        &self,
        parameters: &Value,
        data: Option<(&Connection, &ConnectionData)>,
    ) -> Result<Value, TemplateError> {
        request(&self.request, parameters, data)
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self.0.strip_prefix('*') {
            Some(domain) => host.ends_with(domain),
            None => host == self.0,
        }
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let name = text.strip_prefix("*.").unwrap_or(&text);
        let is_name = |name: &str| {
            let allowed =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
            !name.is_empty() && name.bytes().all(allowed)
        };
        match text == "*" || is_name(name) {
            true => Ok(Self(text)),
            false => Err(serde::de::Error::custom(format!("{text} is no host"))),
        }
    }
}

fn request(
    template: &Template,
    parameters: &Value,
    data: Option<(&Connection, &ConnectionData)>,
) -> Result<Value, TemplateError> {
    // Secrets get into requests by the connection's own rules alone.
    let public = data.map(|(connection, data)| connection.public(data));
    let mut reach = Reach::new();
    reach.parameters = Some(parameters);
    reach.connection = public.as_ref();
    template.evaluate(&reach)
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

fn repeated<'a>(mut ids: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    ids.find(|id| !seen.insert(*id))
}

fn fields_problem(fields: &[Field]) -> Option<String> {
    if let Some(name) = repeated(fields.iter().map(|field| field.name.as_str())) {
        return Some(format!("the field {name} stands twice"));
    }
    let wrong = fields
        .iter()
        .filter_map(|field| field.check(field.default.as_ref()?).err());
    wrong
        .map(|problem| format!("the default of {} {}", problem.name, problem.message))
        .next()
}
