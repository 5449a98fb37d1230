//! The catalog: which apps an organization has. Those that come with the service, and those that were added for it or for
//! all, as they are now or as a graph pinned them.
//!
//! What is added here holds at once, what is added on another node within a second. A manifest is read once and found by
//! its digest from then on: it never changes. Absent on purpose: adding (services), and what nodes make of apps (`nodes`).

use std::sync::Arc;
use std::time::Duration;

use engine::graph::FrozenApp;
use moka::sync::Cache;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::connectors::{App, Apps, Brought, ManifestError};
use crate::store::{Store, StoreError};

/// How long the apps of an organization are believed on nodes other than the one that added some: with the look-up, a
/// change is everywhere within a second.
const BELIEVED: Duration = Duration::from_millis(800);
/// Organizations whose apps are kept.
const MOST_ORGANIZATIONS: u64 = 10_000;
/// Manifests that are kept.
const MOST_MANIFESTS: u64 = 2_000;

/// Looks apps up. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    store: Store,
    built_in: Apps,
    /// By organization. A cell is put here before it is filled, so that forgetting reaches it.
    newest: Cache<String, Arc<OnceCell<Apps>>>,
    /// By digest.
    read: Cache<String, Arc<App>>,
}

/// An app that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The manifest that was pinned is not there.
    #[error("the manifest of the app {0} is not there any more")]
    Gone(String),
    /// This version of the service takes it for no manifest.
    #[error("the manifest of the app {app_id} cannot be read: {why}")]
    Unreadable {
        /// The app.
        app_id: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Catalog {
    /// The apps that come with the service, and those in this store.
    pub fn new(store: Store, built_in: Apps) -> Self {
        Self {
            store,
            built_in,
            newest: Cache::builder()
                .max_capacity(MOST_ORGANIZATIONS)
                .time_to_live(BELIEVED)
                .build(),
            read: Cache::new(MOST_MANIFESTS),
        }
    }

    /// The apps that come with the service.
    pub fn built_in(&self) -> &Apps {
        &self.built_in
    }

    /// The apps of an organization as they are now. One whose manifest cannot be read is left out, and the log says so.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest(&self, organization_id: &str) -> Result<Apps, StoreError> {
        let cell = self.newest.get_with(organization_id.to_owned(), Arc::default);
        let apps = cell.get_or_try_init(|| self.load(organization_id)).await?;
        Ok(apps.clone())
    }

    /// The apps that come with the service, and those that a graph pinned.
    ///
    /// # Errors
    /// When one of them cannot be had.
    pub async fn pinned(&self, organization_id: &str, pins: &[FrozenApp]) -> Result<Apps, CatalogError> {
        let mut brought = Vec::with_capacity(pins.len());
        for FrozenApp { id, digest } in pins {
            brought.push(self.brought(organization_id, id, digest).await?);
        }
        Ok(self.built_in.with(brought))
    }

    /// Forgets which apps are newest, so that what is added here holds at once.
    pub fn forget(&self) {
        self.newest.invalidate_all();
    }

    async fn load(&self, organization_id: &str) -> Result<Apps, StoreError> {
        let mut brought = Vec::new();
        for newest in self.store.newest_manifests(organization_id).await? {
            match self
                .brought(organization_id, &newest.app_id, &newest.digest)
                .await
            {
                Ok(app) => brought.push(app),
                Err(CatalogError::Store(error)) => return Err(error),
                Err(error) => tracing::error!(%error, organization_id, "an app is left out of the catalog"),
            }
        }
        Ok(self.built_in.with(brought))
    }

    async fn brought(
        &self,
        organization_id: &str,
        app_id: &str,
        digest: &str,
    ) -> Result<Brought, CatalogError> {
        let app = match self.read.get(digest) {
            Some(app) => app,
            None => {
                let content = self.store.manifest(organization_id, digest).await;
                let content = content.map_err(|error| match error {
                    StoreError::NotFound(_) => CatalogError::Gone(app_id.to_owned()),
                    error => error.into(),
                })?;
                let app = Arc::new(read(app_id, content).await?);
                self.read.insert(digest.to_owned(), Arc::clone(&app));
                app
            }
        };
        let digest = digest.to_owned();
        Ok(Brought { app, digest })
    }
}

async fn read(app_id: &str, content: Vec<u8>) -> Result<App, CatalogError> {
    let unreadable = |why: String| CatalogError::Unreadable {
        app_id: app_id.to_owned(),
        why,
    };
    let app = read_manifest(content).await;
    app.map_err(|error| unreadable(error.to_string()))
}

/// Reads a manifest where that holds nobody up.
///
/// # Errors
/// When it is none.
pub async fn read_manifest(content: Vec<u8>) -> Result<App, ManifestError> {
    let reading = spawn_blocking(move || App::read_bytes(&content)).await;
    reading.unwrap_or(Err(ManifestError::Interrupted))
}
