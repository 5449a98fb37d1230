//! What a manifest is, version 1: the app as a whole. Whatever it says that is not known here is refused.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::check;
use super::connection::Connection;
use super::failure::FailureRule;
use super::host::HostRule;
use super::module::Module;
use super::options::Rpc;
use super::request::Home;
use super::template::Template;
use super::trial::Trial;

/// The version of manifests that this interpreter reads.
pub(super) const VERSION: u32 = 1;

/// A service that nodes talk to.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "Manifest of an app, version 1")]
pub struct App {
    /// The version of the form: 1.
    #[serde(rename = "manifest")]
    pub(super) version: u32,
    /// Its id: lower-case letters, digits and underscores.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// What it is for, as words to be found by.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Where to read more.
    #[serde(default)]
    pub links: Links,
    /// The driver that speaks to its servers, where that is no HTTP. Its modules name operations of the driver instead of
    /// requests, and its connections have the fields that the driver reads; there is no `baseUrl` then, nor `headers`,
    /// `hosts`, `errors` and `tests`.
    #[serde(default)]
    pub driver: Option<String>,
    /// What the paths of its requests are below. It may reach `connection`.
    #[serde(default)]
    pub(super) base_url: Option<Template>,
    /// Headers of all its requests, by name.
    #[serde(default)]
    pub(super) headers: Option<Template>,
    /// Where its requests may go, and its credentials with them; by default the host of `baseUrl`, when that is fixed.
    /// Entries may reach `connection`.
    #[serde(default)]
    pub(super) hosts: Vec<HostRule>,
    /// How often it may be called.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    /// How often a node tries again by itself after a temporary failure.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// The ways to connect.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// Rules that tell failures in the answers to all its requests.
    #[serde(default)]
    pub(super) errors: Vec<FailureRule>,
    /// What it can do.
    #[serde(default)]
    pub modules: Vec<Module>,
    /// What dynamic options can ask it.
    #[serde(default)]
    pub rpcs: Vec<Rpc>,
    /// What shows that the manifest is right.
    #[serde(default)]
    pub tests: Vec<Trial>,
}

/// Where to read more about an app.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Links {
    /// The service's site.
    #[serde(default)]
    pub website: Option<String>,
    /// The reference of its API, by which the manifest is written.
    #[serde(default)]
    pub documentation: Option<String>,
}

/// How often an app may be called with one credential. Requests beyond it wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimit {
    /// So many requests, which may come at once,
    pub requests: u32,
    /// in so many seconds.
    pub seconds: u32,
}

/// How often a node tries again by itself after a temporary failure; a node's own `config.retry` takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all, from 2 to 10.
    pub max_attempts: u32,
    /// Milliseconds before the second attempt; twice as long before each further one, or as long as the service asks.
    pub delay_ms: u64,
}

/// A text that is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It does not have the form.
    #[error("{0}")]
    Form(Box<serde_saphyr::Error>),
    /// It has the form, and makes no sense.
    #[error("{}", lines(.0))]
    Sense(Vec<ManifestProblem>),
    /// It is not text.
    #[error("it is not UTF-8 text: byte {0} cannot be read")]
    Bytes(usize),
    /// It is larger than manifests may be.
    #[error("it has {0} bytes; a manifest has at most {most}", most = App::MOST_BYTES)]
    TooLarge(usize),
    /// Reading it did not come to an end.
    #[error("it could not be read")]
    Interrupted,
}

/// One thing in a manifest that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ManifestProblem {
    /// Where, such as `modules.list_issues.request.path`.
    pub path: String,
    /// What is wrong, and what would help.
    pub message: String,
}

fn lines(problems: &[ManifestProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl App {
    /// The most bytes of a manifest.
    pub const MOST_BYTES: usize = 1024 * 1024;

    /// Reads a manifest in YAML that somebody hands in.
    ///
    /// # Errors
    /// When it is none.
    pub fn read_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > Self::MOST_BYTES {
            return Err(ManifestError::TooLarge(bytes.len()));
        }
        let text = std::str::from_utf8(bytes);
        Self::read(text.map_err(|error| ManifestError::Bytes(error.valid_up_to()))?)
    }

    /// Reads a manifest in YAML.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(text: &str) -> Result<Self, ManifestError> {
        let app: Self = serde_saphyr::from_str(text).map_err(|error| ManifestError::Form(Box::new(error)))?;
        app.completed()
    }

    fn completed(mut self) -> Result<Self, ManifestError> {
        for connection in &mut self.connections {
            connection.complete().map_err(|message| {
                let path = format!("connections.{}", connection.id);
                ManifestError::Sense(vec![ManifestProblem { path, message }])
            })?;
        }
        if self.hosts.is_empty()
            && let Some(host) = self.base_host()
        {
            self.hosts.push(host);
        }
        match check::problems(&self) {
            problems if problems.is_empty() => Ok(self),
            problems => Err(ManifestError::Sense(problems)),
        }
    }

    /// The form of manifests, as JSON Schema 2020-12.
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
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

    pub(super) fn home(&self) -> Home<'_> {
        Home {
            base_url: self.base_url.as_ref(),
            headers: self.headers.as_ref(),
        }
    }

    /// The host of the base URL, when it is fixed.
    fn base_host(&self) -> Option<HostRule> {
        HostRule::of_url(&Url::parse(self.base_url.as_ref()?.literal()?).ok()?)
    }
}
