//! What a manifest is, version 1: the app as a whole. Whatever it says that is not known here is refused.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use super::check;
use super::connection::Connection;
use super::failure::FailureRule;
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
    /// What the paths of its requests are below. It may reach `connection`.
    #[serde(default)]
    pub(super) base_url: Option<Template>,
    /// Headers of all its requests, by name.
    #[serde(default)]
    pub(super) headers: Option<Template>,
    /// Where its requests may go, and its credentials with them; by default the host of `baseUrl`, when that is fixed.
    #[serde(default)]
    pub(super) hosts: Vec<HostPattern>,
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

/// A host that an app's requests may go to: its name, `*.` and a domain, or `*`. With a port, only that port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern(String);

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
            self.hosts.push(HostPattern(host));
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

    /// Whether its requests, and its credentials with them, may go to this URL's host.
    pub fn permits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let with_port = url.port().map(|port| format!("{host}:{port}"));
        let permits = |pattern: &HostPattern| {
            pattern.matches(host) || with_port.as_deref().is_some_and(|host| pattern.0 == host)
        };
        self.hosts.iter().any(permits)
    }

    pub(super) fn home(&self) -> Home<'_> {
        Home {
            base_url: self.base_url.as_ref(),
            headers: self.headers.as_ref(),
        }
    }

    /// The host of the base URL, with the port when it is a special one, when it is fixed.
    fn base_host(&self) -> Option<String> {
        let url = Url::parse(self.base_url.as_ref()?.literal()?).ok()?;
        let host = url.host_str()?;
        Some(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
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
        let (name, port) = name.split_once(':').unwrap_or((name, "443"));
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        let is_name = !name.is_empty() && name.bytes().all(allowed) && port.parse::<u16>().is_ok();
        match text == "*" || is_name {
            true => Ok(Self(text)),
            false => Err(serde::de::Error::custom(format!(
                "{text} is no host; write a name in lower case, *.example.com, or *"
            ))),
        }
    }
}

impl JsonSchema for HostPattern {
    fn schema_name() -> Cow<'static, str> {
        "HostPattern".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^(\*|(\*\.)?[a-z0-9.-]+(:[0-9]+)?)$",
            "description": "A host's name, *. and a domain, or *; with a port, only that port."
        })
    }
}
