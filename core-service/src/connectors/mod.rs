//! Apps: services that nodes talk to, each a data file (a manifest) that one interpreter reads.
//!
//! A manifest says how to connect to its service, what its modules take, and which request a module makes of that. Its
//! templates are the ones that workflows use, so no manifest holds code: they reach the module's `parameters`, the
//! `connection` and the `response`. The interpreter ([`Walk`]) is pure: whoever sends asks it what to send.
//!
//! Absent on purpose: sending (`outbound`), executing nodes (`nodes`), keeping credentials (`credentials`).

mod check;
mod connection;
mod delivery;
mod failure;
mod field;
mod finish;
mod guard;
mod host;
mod issue;
#[cfg(test)]
mod laws;
mod manifest;
mod module;
pub mod openapi;
mod options;
mod order;
mod page;
mod pagination;
mod refusal;
mod request;
mod search;
mod template;
mod token;
mod trial;
mod trigger;
mod until;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use connection::{Connection, ConnectionData, ConnectionType, Grant, GrantError};
pub use delivery::{Delivered, Receiver};
pub use failure::ToldFailure;
pub use field::{Field, FieldProblem, FieldType};
pub use finish::Need;
pub use host::HostRefused;
pub use issue::{ConsentQuestion, Issued, TokenGrant};
pub use manifest::{App, ManifestError, ManifestProblem, RateLimit, Retry};
pub use module::{ConnectionNeed, Module, ModuleType};
pub use options::{DynamicOption, DynamicOptions, Listed, Rpc};
pub use order::Order;
pub use refusal::TokenProblem;
pub use search::{Searched, search};
pub use template::TemplateError;
pub use token::{ClientAuthentication, ISSUED, OAuth2, Pkce, TokenExchange, TokenResponse};
pub use trial::{Becomes, Trial, TrialDelivery, TrialExchange, TrialRequest, TrialResponse};
pub use trigger::{Poll, Webhook};
pub use until::Until;
pub use walk::{Connected, Step, Walk};

/// The manifests that come with the service, each after its file's name.
const BUILT_IN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/apps.rs"));

/// Apps by id: those that come with the service, and those that an organization brought. Cheap to clone.
#[derive(Clone, Default)]
pub struct Apps {
    built_in: Arc<BTreeMap<String, Arc<App>>>,
    brought: Arc<BTreeMap<String, Brought>>,
}

/// An app that does not come with the service.
#[derive(Clone)]
pub struct Brought {
    /// The app.
    pub app: Arc<App>,
    /// SHA-256 of its manifest, in hexadecimal.
    pub digest: String,
}

/// A file that is no manifest.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {error}")]
pub struct AppFileError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    #[source]
    pub error: ManifestError,
}

impl Apps {
    /// Those that come with the service.
    ///
    /// # Errors
    /// When one of them is no manifest, which a test makes sure of.
    pub fn built_in() -> Result<Self, AppFileError> {
        let apps = BUILT_IN.iter().map(|(file, text)| {
            let app = App::read(text).map_err(|error| AppFileError {
                file: (*file).to_owned(),
                error,
            })?;
            Ok((app.id.clone(), Arc::new(app)))
        });
        Ok(Self {
            built_in: Arc::new(apps.collect::<Result<_, AppFileError>>()?),
            brought: Arc::default(),
        })
    }

    /// With these and no others that an organization brought.
    #[must_use]
    pub fn with(&self, brought: Vec<Brought>) -> Self {
        let by_id = brought.into_iter().map(|one| (one.app.id.clone(), one));
        Self {
            built_in: Arc::clone(&self.built_in),
            brought: Arc::new(by_id.collect()),
        }
    }

    /// The app with this id. What an organization brought stands before what came with the service after that.
    pub fn find(&self, app_id: &str) -> Option<&Arc<App>> {
        let brought = self.brought(app_id).map(|brought| &brought.app);
        brought.or_else(|| self.built_in.get(app_id))
    }

    /// The app with this id, when an organization brought it.
    pub fn brought(&self, app_id: &str) -> Option<&Brought> {
        self.brought.get(app_id)
    }

    /// Whether an app with this id comes with the service.
    pub fn is_built_in(&self, app_id: &str) -> bool {
        self.built_in.contains_key(app_id)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<App>> {
        let mut all: BTreeMap<&String, &Arc<App>> = self.built_in.iter().collect();
        all.extend(self.brought.iter().map(|(id, brought)| (id, &brought.app)));
        all.into_values()
    }
}

#[cfg(test)]
mod tests;
