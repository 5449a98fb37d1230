//! Adding apps: manifests that somebody wrote, and those that are made of OpenAPI documents.

use contract::access::Operator;
use contract::v1;
use contract::validation::Violation;
use engine::graph::NATIVE_APP;
use tokio::task::spawn_blocking;

use super::Services;
use crate::auth::Authorized;
use crate::catalog::read_manifest;
use crate::connectors::openapi::{self, ImportError, Wishes};
use crate::connectors::{App, ManifestError};
use crate::error::{Error, Result};
use crate::nodes::http::rehearsal;
use crate::store::NewManifest;

/// The largest message: the largest document, and what names it.
pub(super) const MAX_MESSAGE_BYTES: usize = openapi::MOST_BYTES + (64 << 10);

/// Adds a manifest to the catalog of an organization, or of all.
pub(super) async fn add(
    services: &Services,
    caller: &Authorized<Operator>,
    organization_id: Option<&str>,
    content: Vec<u8>,
) -> Result<v1::CatalogVersion> {
    let app = read(services, &content).await?;
    let new = NewManifest {
        organization_id,
        app_id: &app.id,
        label: &app.name,
        digest: &engine::canonical::sha256_hex(&content),
        content: &content,
    };
    let version = services.store.add_manifest(&caller.actor(), &new).await?;
    services.catalog.forget();
    Ok(v1::CatalogVersion {
        module_count: i32::try_from(app.modules.len()).unwrap_or(i32::MAX),
        app_id: app.id,
        version: i32::try_from(version).unwrap_or(i32::MAX),
    })
}

/// Makes a manifest of an OpenAPI document, and adds it unless that is not wanted.
pub(super) async fn import(
    services: &Services,
    caller: &Authorized<Operator>,
    request: v1::ImportOpenApiRequest,
) -> Result<v1::ImportOpenApiResponse> {
    let wishes = Wishes {
        app_id: request.app_id,
        base_url: request.base_url,
    };
    let importing = spawn_blocking(move || openapi::import(&request.document, &wishes)).await;
    let imported = importing.map_err(Error::internal)?.map_err(unusable)?;
    let manifest = imported.manifest.into_bytes();
    let app = match request.dry_run {
        Some(true) => {
            read(services, &manifest).await?;
            None
        }
        _ => Some(
            add(
                services,
                caller,
                request.organization_id.as_deref(),
                manifest.clone(),
            )
            .await?,
        ),
    };
    Ok(v1::ImportOpenApiResponse {
        app,
        warnings: imported.warnings,
        manifest,
    })
}

/// The app that a manifest is, when it can be added.
async fn read(services: &Services, content: &[u8]) -> Result<App> {
    let app = read_manifest(content.to_vec()).await.map_err(refusal)?;
    if app.id == NATIVE_APP || services.catalog.built_in().is_built_in(&app.id) {
        let message = format!(
            "{} is an app that comes with the service; choose another id",
            app.id
        );
        return Err(Error::invalid("manifest.id", message));
    }
    let rehearsing = spawn_blocking(move || (rehearsal::failures(&app), app)).await;
    match rehearsing.map_err(Error::internal)? {
        (failures, app) if failures.is_empty() => Ok(app),
        (failures, _) => {
            let violation = |failure: String| Violation {
                path: "manifest".to_owned(),
                message: format!("does not pass its own {failure}"),
            };
            Err(Error::violations(failures.into_iter().map(violation).collect()))
        }
    }
}

fn refusal(error: ManifestError) -> Error {
    match error {
        ManifestError::Sense(problems) => {
            let violations = problems.into_iter().map(|problem| Violation {
                path: format!("manifest.{}", problem.path),
                message: problem.message,
            });
            Error::violations(violations.collect())
        }
        ManifestError::Interrupted => Error::internal(error),
        ManifestError::Form(error) => {
            Error::invalid("manifest", format!("is no manifest: {}", error.without_snippet()))
        }
        error => Error::invalid("manifest", format!("is no manifest: {error}")),
    }
}

fn unusable(error: ImportError) -> Error {
    Error::invalid(error.place(), error.to_string())
}
