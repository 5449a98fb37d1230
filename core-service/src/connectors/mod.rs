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
mod host;
mod manifest;
mod module;
mod options;
mod page;
mod pagination;
mod request;
mod search;
mod template;
mod token;
mod trial;
mod trigger;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use connection::{Connection, ConnectionData, ConnectionType, Grant, GrantError};
pub use delivery::{Delivered, Receiver};
pub use failure::ToldFailure;
pub use field::{Field, FieldProblem, FieldType};
pub use host::HostRefused;
pub use manifest::{App, ManifestError, ManifestProblem, RateLimit, Retry};
pub use module::{ConnectionNeed, Module, ModuleType};
pub use options::{DynamicOption, DynamicOptions, Rpc};
pub use search::{Searched, search};
pub use template::TemplateError;
pub use token::{ClientAuthentication, ISSUED, OAuth2, Pkce, TokenExchange, TokenResponse};
pub use trial::{Trial, TrialExchange, TrialRequest, TrialResponse};
pub use trigger::{Poll, Webhook};
pub use walk::{Connected, Step, Walk};

/// The manifests that come with the service, each after its file's name.
const BUILT_IN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/apps.rs"));

/// The apps of a process, by id. Cheap to clone.
#[derive(Clone)]
pub struct Apps(Arc<BTreeMap<String, Arc<App>>>);

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
        Ok(Self(Arc::new(apps.collect::<Result<_, AppFileError>>()?)))
    }

    /// The app with this id.
    pub fn find(&self, app_id: &str) -> Option<&Arc<App>> {
        self.0.get(app_id)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<App>> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests;
