//! Registrations in use: what is stored of a trigger that a service calls, opened and joined with the module of its app.
//!
//! A registration holds all that is needed to tell the service, so that this is possible when version and workflow are
//! there no more. Absent on purpose: telling services (`triggers`), and taking what they deliver (`services`).

use std::sync::Arc;

use engine::canonical;
use engine::graph::{FrozenApp, Graph, Node};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, CatalogError};
use crate::connectors::{App, Apps, Module, Webhook};
use crate::id;
use crate::secret::{Place, Secret, SecretError, Vault};
use crate::store::{NewRegistration, Registration, StoreError};

/// The path below the base URL that the ids of webhooks and registrations follow.
pub const HOOKS: &str = "/hooks/";
/// The kinds of places that secrets, and what is remembered of answers, are sealed for.
const SECRET: &str = "registration";
const KEPT: &str = "registration_kept";
/// The bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Makes registrations and opens them. Cheap to clone.
#[derive(Clone)]
pub struct Registrations {
    vault: Vault,
    catalog: Catalog,
    base_url: Arc<str>,
}

/// What a trigger was when its version was deployed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    app_id: String,
    /// The digest of the manifest, when the app did not come with the service.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    manifest: Option<String>,
    module: String,
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    credential_id: Option<String>,
}

/// A registration whose secrets are at hand. Neither shown nor logged.
pub struct OpenRegistration {
    /// The apps, with its own as it was when the version was deployed.
    pub apps: Apps,
    /// The app.
    pub app: Arc<App>,
    /// Which of the app's modules it is of.
    place: usize,
    /// The trigger's parameters.
    pub parameters: Map<String, Value>,
    /// The credential it uses.
    pub credential_id: Option<String>,
    /// What the manifest's templates reach: `url`, `secret` and what was kept.
    pub webhook: Value,
}

/// A registration that cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The app cannot be had.
    #[error(transparent)]
    App(#[from] CatalogError),
    /// The app has no longer what the trigger is of.
    #[error("the catalog has no longer what the trigger is of")]
    Gone,
    /// It cannot be sealed or opened.
    #[error("what is secret in the registration cannot be used: {0}")]
    Secret(#[from] SecretError),
    /// There is no randomness.
    #[error("the operating system has no randomness to give")]
    Random(#[from] getrandom::Error),
}

impl From<serde_json::Error> for RegistrationError {
    fn from(_: serde_json::Error) -> Self {
        Self::Secret(SecretError::Damaged)
    }
}

impl RegistrationError {
    /// The database's failure, when it is one that passes.
    ///
    /// # Errors
    /// Gives back what is none.
    pub fn passing(self) -> Result<StoreError, Self> {
        match self {
            Self::App(CatalogError::Store(error)) | Self::Secret(SecretError::Store(error))
                if error.is_temporary() =>
            {
                Ok(error)
            }
            error => Err(error),
        }
    }
}

impl Registrations {
    /// Those sealed by a vault, for the apps of the catalog, with URLs that begin like this.
    pub fn new(vault: Vault, catalog: Catalog, base_url: Arc<str>) -> Self {
        Self {
            vault,
            catalog,
            base_url,
        }
    }

    /// The URL that a service calls.
    pub fn url(&self, id: &str) -> String {
        format!("{}{HOOKS}{id}", self.base_url)
    }

    /// Registrations for the triggers of a graph that services call. They take the place of those that the workflow has
    /// only where these are for something else.
    ///
    /// # Errors
    /// When a secret cannot be made or sealed.
    pub async fn of_graph(
        &self,
        organization_id: &str,
        graph: &Graph,
        apps: &Apps,
    ) -> Result<Vec<NewRegistration>, RegistrationError> {
        let mut made = Vec::new();
        for node in graph.nodes.iter().filter(|node| !node.config.is_disabled()) {
            if let Some(webhook) = webhook_of(node, apps) {
                made.push(self.of_node(organization_id, node, apps, webhook).await?);
            }
        }
        Ok(made)
    }

    async fn of_node(
        &self,
        organization_id: &str,
        node: &Node,
        apps: &Apps,
        webhook: &Webhook,
    ) -> Result<NewRegistration, RegistrationError> {
        let source = Source {
            app_id: node.app_id.clone(),
            manifest: apps.brought(&node.app_id).map(|brought| brought.digest.clone()),
            module: node.module_slug.clone(),
            parameters: node.params.clone(),
            credential_id: node.credential_id.clone(),
        };
        let id = id::new_registration()?;
        let mut secret = [0_u8; SECRET_BYTES];
        getrandom::fill(&mut secret)?;
        let secret = hex::encode(secret);
        let place = place(organization_id, SECRET, &id);
        let source = canonical::to_string(&serde_json::to_value(source)?);
        // A URL that a person has entered somewhere stays, whatever else of the trigger changes.
        let question = match webhook.is_attached() {
            true => source.clone(),
            false => json!([&node.app_id, &node.module_slug]).to_string(),
        };
        Ok(NewRegistration {
            node_id: node.id,
            question: canonical::sha256(question.as_bytes()).to_vec(),
            source: source.into_bytes(),
            secret: self.vault.seal(place, secret.as_bytes()).await?,
            id,
        })
    }

    /// Opens a registration.
    ///
    /// # Errors
    /// When it is sealed otherwise, or of something that there is no more.
    pub async fn open(&self, registration: &Registration) -> Result<OpenRegistration, RegistrationError> {
        let source: Source = serde_json::from_slice(&registration.source)?;
        let id = source.app_id.clone();
        let pins: Vec<FrozenApp> = source
            .manifest
            .into_iter()
            .map(|digest| FrozenApp {
                id: id.clone(),
                digest,
            })
            .collect();
        let apps = self.catalog.pinned(&registration.organization_id, &pins).await?;
        let app = Arc::clone(apps.find(&id).ok_or(RegistrationError::Gone)?);
        let place = app.modules.iter().position(|module| module.id == source.module);
        Ok(OpenRegistration {
            apps,
            place: place.ok_or(RegistrationError::Gone)?,
            app,
            parameters: source.parameters,
            credential_id: source.credential_id,
            webhook: Value::Object(self.webhook(registration).await?),
        })
    }

    /// What is to be remembered of a service's answer, sealed.
    ///
    /// # Errors
    /// When it cannot be sealed.
    pub async fn seal_kept(
        &self,
        registration: &Registration,
        kept: &Map<String, Value>,
    ) -> Result<Vec<u8>, RegistrationError> {
        let place = place(&registration.organization_id, KEPT, &registration.id);
        Ok(self.vault.seal(place, &serde_json::to_vec(kept)?).await?)
    }

    async fn webhook(&self, registration: &Registration) -> Result<Map<String, Value>, RegistrationError> {
        let Registration {
            id,
            organization_id,
            secret,
            kept,
            ..
        } = registration;
        let mut webhook = match kept {
            Some(kept) => {
                let text = self
                    .vault
                    .open_text(place(organization_id, KEPT, id), kept)
                    .await?;
                serde_json::from_str(text.expose())?
            }
            None => Map::new(),
        };
        let secret = self.vault.open_text(place(organization_id, SECRET, id), secret);
        webhook.insert("secret".to_owned(), secret.await?.expose().into());
        webhook.insert("url".to_owned(), self.url(id).into());
        Ok(webhook)
    }
}

impl OpenRegistration {
    /// The module of the trigger.
    pub fn module(&self) -> &Module {
        // It was found there when the registration was opened.
        &self.app.modules[self.place]
    }

    /// What nobody may read: the secret, the end of the URL, which lets anybody call, and what else proves deliveries.
    pub fn secrets(&self) -> Vec<Secret> {
        let text = |name: &str| self.webhook.get(name).and_then(Value::as_str);
        let url = text("url").and_then(|url| url.rsplit('/').next());
        let proofs = self.module().webhook.iter().flat_map(Webhook::proofs);
        let texts = text("secret")
            .into_iter()
            .chain(url)
            .chain(proofs.filter_map(text));
        texts.map(|text| Secret::from(text.to_owned())).collect()
    }
}

/// What services call a node for, if they do.
pub fn webhook_of<'a>(node: &Node, apps: &'a Apps) -> Option<&'a Webhook> {
    let module = apps.find(&node.app_id)?.module(&node.module_slug)?;
    module.webhook.as_ref()
}

fn place<'a>(organization_id: &'a str, kind: &'a str, id: &'a str) -> Place<'a> {
    Place {
        organization_id,
        kind,
        id,
    }
}
