//! Apps: services that nodes talk to, each a data file (a manifest) that one interpreter reads.
//!
//! A manifest says how to connect to its service, what its modules take, and which request a module makes of that. Its
//! templates are the ones that workflows use, so no manifest holds code: they reach the module's parameters, the fields
//! of the connection and the response, as `$vars.parameters`, `$vars.connection` and `$vars.response`.
//!
//! Absent on purpose: sending (`outbound`), executing nodes (`nodes`), keeping credentials (`credentials`).

mod connection;
mod field;
mod manifest;
mod options;
mod search;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use connection::{Connection, ConnectionData, Grant, GrantError};
pub use field::{Field, FieldProblem, FieldType};
pub use manifest::{App, ConnectionNeed, ManifestError, Module, ModuleType, Rpc};
pub use options::{DynamicOption, DynamicOptions, OptionsTemplate};
pub use search::{Searched, search};
pub use template::TemplateError;

/// The manifests that come with the service.
const BUILT_IN: [&str; 1] = [include_str!("apps/http.yaml")];

/// The apps of a process, by id. Cheap to clone.
#[derive(Clone)]
pub struct Apps(Arc<BTreeMap<String, Arc<App>>>);

impl Apps {
    /// Those that come with the service.
    ///
    /// # Errors
    /// When one of them is no manifest, which a test makes sure of.
    pub fn built_in() -> Result<Self, ManifestError> {
        let apps = BUILT_IN.iter().map(|text| {
            let app = App::read(text)?;
            Ok((app.id.clone(), Arc::new(app)))
        });
        Ok(Self(Arc::new(apps.collect::<Result<_, ManifestError>>()?)))
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
