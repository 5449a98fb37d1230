//! Apps of OpenAPI documents, 3.0 and 3.1: servers, security schemes and operations become a manifest.
//!
//! Pure: a document comes in, a manifest in YAML comes out, which is read, checked and edited like any other. What a
//! manifest cannot say is named in a list of warnings, and left out. Deliberately absent: what the service checks itself
//! (patterns, lengths, ranges), the shape of answers, triggers, and documents that are spread over several files.

mod body;
mod document;
mod field;
mod name;
mod operation;
mod parameter;
mod schema;
mod security;
mod server;

use serde_json::{Map, Value, json};

use document::{Document, Part};
use operation::Operations;
use security::Security;
use server::Server;

/// The most bytes of a document.
pub const MOST_BYTES: usize = 8 << 20;
/// The most operations of a document.
pub const MOST_OPERATIONS: usize = 500;
/// The most warnings that are given.
const MOST_WARNINGS: usize = 1_000;
/// The most characters of a name and of a description.
const LONGEST_NAME: usize = 200;
const LONGEST_TEXT: usize = 1_000;

/// What the document does not say, or what is wanted otherwise.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The app's id; made of the title by default.
    pub app_id: Option<String>,
    /// Where the API is; the document's first server by default.
    pub base_url: Option<String>,
}

/// A manifest that was made.
#[derive(Debug)]
pub struct Imported {
    /// YAML.
    pub manifest: String,
    /// What is not in it, each after its place in the document.
    pub warnings: Vec<String>,
}

/// A document that no manifest can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ImportError {
    place: String,
    message: String,
}

impl ImportError {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            message: message.into(),
        }
    }

    /// Where it is: in the `document`, such as `document.servers[0].url`, or in what is wished.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// What is to be told of a document that became a manifest.
#[derive(Default)]
struct Warnings {
    texts: Vec<String>,
    untold: usize,
}

impl Warnings {
    fn say(&mut self, place: &str, message: impl std::fmt::Display) {
        match self.texts.len() < MOST_WARNINGS {
            true => self.texts.push(format!("{place}: {message}")),
            false => self.untold += 1,
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.untold > 0 {
            self.texts.push(format!("and {} more", self.untold));
        }
        self.texts
    }
}

/// Makes a manifest of a document.
///
/// # Errors
/// When it is no OpenAPI document of a version that is known, says too much, or does not say where the API is.
pub fn import(bytes: &[u8], wishes: &Wishes) -> Result<Imported, ImportError> {
    let document = Document::read(bytes)?;
    let root = document.root();
    check_version(&root)?;
    let mut warnings = Warnings::default();
    let info = root.member("info", &mut warnings);
    let title = info.as_ref().and_then(|info| info.text("title"));
    let id = app_id(wishes, title)?;
    let name = title.map(|title| name::short(title, LONGEST_NAME));
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone());
    let server = Server::of(&root, wishes, &mut warnings)?;
    let security = Security::of(&root, &server, &mut warnings);
    let operations = Operations::of(&root, &security, &mut warnings)?;
    if let Some(webhooks) = root.value.get("webhooks").and_then(Value::as_object)
        && !webhooks.is_empty()
    {
        warnings.say("webhooks", "are left out; triggers are written by hand");
    }
    let mut manifest = Map::new();
    manifest.insert("manifest".to_owned(), json!(super::manifest::VERSION));
    manifest.insert("id".to_owned(), json!(id));
    manifest.insert("name".to_owned(), json!(name));
    let description = info.as_ref().and_then(|info| info.text("description"));
    if let Some(description) = description {
        manifest.insert(
            "description".to_owned(),
            json!(name::short(description, LONGEST_TEXT)),
        );
    }
    if let Some(links) = links(&root, &mut warnings) {
        manifest.insert("links".to_owned(), links);
    }
    manifest.insert("baseUrl".to_owned(), json!(server.base_url));
    manifest.insert("hosts".to_owned(), json!(security.hosts));
    if !security.connections.is_empty() {
        let refused = json!([{ "when": "{{response.status == 401}}", "code": "CREDENTIAL_INVALID" }]);
        manifest.insert("connections".to_owned(), Value::Array(security.connections));
        manifest.insert("errors".to_owned(), refused);
    }
    manifest.insert("modules".to_owned(), Value::Array(operations.modules));
    let written = serde_saphyr::to_string(&Value::Object(manifest));
    let manifest = written.map_err(|error| ImportError::new("document", error.to_string()))?;
    Ok(Imported {
        manifest,
        warnings: warnings.finish(),
    })
}

fn check_version(root: &Part<'_>) -> Result<(), ImportError> {
    let said = root.value.get("openapi").map(|said| match said {
        Value::String(version) => version.clone(),
        // In YAML, 3.1 is a number.
        other => other.to_string(),
    });
    match said {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
        Some(version) => Err(ImportError::new(
            "document.openapi",
            format!("is {version:?}; documents of the versions 3.0 and 3.1 can be imported"),
        )),
        None if root.value.get("swagger").is_some() => Err(ImportError::new(
            "document.swagger",
            "is an older form; convert the document to OpenAPI 3 first",
        )),
        None => Err(ImportError::new(
            "document.openapi",
            "is required: an OpenAPI document says its version, such as openapi: 3.1.0",
        )),
    }
}

fn app_id(wishes: &Wishes, title: Option<&str>) -> Result<String, ImportError> {
    if let Some(id) = &wishes.app_id {
        return Ok(id.clone());
    }
    let id = title.map(name::id).filter(|id| !id.is_empty());
    id.ok_or_else(|| ImportError::new("appId", "is required: the document's title makes no id"))
}

/// Where to read more.
fn links(root: &Part<'_>, warnings: &mut Warnings) -> Option<Value> {
    let is_web = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
    let documentation = root.member("externalDocs", warnings);
    let documentation = documentation.and_then(|docs| docs.text("url")).filter(is_web);
    Some(json!({ "documentation": documentation? }))
}

#[cfg(test)]
mod tests;
