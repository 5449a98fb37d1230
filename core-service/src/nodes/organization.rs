//! The kinds of one organization: those of the service, and the modules of the apps that it brought.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::graph::{FrozenApp, Graph};
use engine::kind::{Kinds, Registered, UnknownKind};

use super::Registry;
use super::app_module::AppModule;
use crate::catalog::CatalogError;
use crate::connectors::Apps;
use crate::store::StoreError;

/// The kinds that nodes of an organization may have. Cheap to clone.
#[derive(Clone)]
pub struct OrganizationKinds {
    registry: Arc<Registry>,
    apps: Apps,
}

impl Registry {
    /// The kinds of an organization, with its apps as they are now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(self: &Arc<Self>, organization_id: &str) -> Result<OrganizationKinds, StoreError> {
        let apps = match &self.catalog {
            Some(catalog) => catalog.newest(organization_id).await?,
            None => Apps::default(),
        };
        Ok(self.with(apps))
    }

    /// The kinds of an organization, with its apps as a graph pinned them.
    ///
    /// # Errors
    /// When one of the apps cannot be had.
    pub async fn pinned(
        self: &Arc<Self>,
        organization_id: &str,
        pins: &[FrozenApp],
    ) -> Result<OrganizationKinds, CatalogError> {
        let apps = match &self.catalog {
            Some(catalog) => catalog.pinned(organization_id, pins).await?,
            None => Apps::default(),
        };
        Ok(self.with(apps))
    }

    fn with(self: &Arc<Self>, apps: Apps) -> OrganizationKinds {
        OrganizationKinds {
            registry: Arc::clone(self),
            apps,
        }
    }
}

impl OrganizationKinds {
    /// The apps whose modules they are.
    #[must_use]
    pub fn apps(&self) -> &Apps {
        &self.apps
    }

    /// What pins the apps of a graph's nodes as they are here. Those that come with the service need none.
    #[must_use]
    pub fn pins(&self, graph: &Graph) -> Vec<FrozenApp> {
        let named: BTreeSet<&str> = graph.nodes.iter().map(|node| node.app_id.as_str()).collect();
        let brought = named.into_iter().filter_map(|id| self.apps.brought(id));
        brought
            .map(|brought| FrozenApp {
                id: brought.app.id.clone(),
                digest: brought.digest.clone(),
            })
            .collect()
    }
}

impl Kinds for OrganizationKinds {
    fn find(&self, app_id: &str, module_slug: &str) -> Result<Arc<Registered>, UnknownKind> {
        let Some(brought) = self.apps.brought(app_id) else {
            return self.registry.find(app_id, module_slug);
        };
        let mut modules = AppModule::all(&brought.app);
        let module = modules.find(|module| module.id() == module_slug);
        let module = module.ok_or_else(|| UnknownKind::Module {
            app: app_id.to_owned(),
            module: module_slug.to_owned(),
        })?;
        Ok(Arc::new(Registered::new(module)))
    }
}
