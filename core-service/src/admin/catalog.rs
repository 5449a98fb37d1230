//! `switchyard admin catalog …`: apps that do not come with the service.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use contract::v1;
use serde_json::{Value, json};

use super::{AdminError, Told};

#[derive(Subcommand)]
pub(super) enum Catalog {
    /// Add an app from an OpenAPI 3.0 or 3.1 document.
    ///
    /// Its first server becomes the base URL, its security schemes become ways to connect, and each operation becomes a
    /// module with a field for each parameter and each property of its body. What a manifest cannot say is printed as a
    /// warning and left out. A changed document that is imported again is the next version of its app; deployed workflows
    /// stay with the version that they were deployed with. docs/connectors.md tells more.
    ImportOpenapi {
        /// The document, JSON or YAML, of at most 8 MiB and 500 operations.
        file: PathBuf,
        /// Id of the organization that gets it; all when absent.
        #[arg(long)]
        org: Option<String>,
        /// Id of the app, such as corner_shop; made of the document's title when absent.
        #[arg(long)]
        id: Option<String>,
        /// Where the API is; the document's first server when absent.
        #[arg(long, value_name = "URL")]
        base_url: Option<String>,
        /// Print the manifest and add nothing, so that it can be edited and then added by `catalog add`.
        #[arg(long)]
        print: bool,
    },
    /// Add an app from a manifest.
    ///
    /// The manifest is checked, and the tests inside it are run, as `switchyard manifest check` does. Another manifest
    /// with the same id is the next version of its app; the same one again changes nothing. New runs of drafts use the
    /// newest version, deployed workflows stay with the one that they were deployed with. An app of one organization takes
    /// the place of one with the same id for all. docs/connectors.md tells how manifests are written.
    Add {
        /// The manifest, YAML, of at most 1 MiB.
        file: PathBuf,
        /// Id of the organization that gets it; all when absent.
        #[arg(long)]
        org: Option<String>,
    },
}

/// A call that is to be made.
pub(super) enum CatalogCall {
    Import(v1::ImportOpenApiRequest),
    Add(v1::AddManifestRequest),
}

impl Catalog {
    pub(super) fn call(self) -> Result<CatalogCall, AdminError> {
        Ok(match self {
            Self::ImportOpenapi {
                file,
                org,
                id,
                base_url,
                print,
            } => CatalogCall::Import(v1::ImportOpenApiRequest {
                document: read_file(&file)?,
                organization_id: org,
                app_id: id,
                base_url,
                dry_run: Some(print),
            }),
            Self::Add { file, org } => CatalogCall::Add(v1::AddManifestRequest {
                manifest: read_file(&file)?,
                organization_id: org,
            }),
        })
    }
}

pub(super) fn added(response: v1::AddManifestResponse) -> Told {
    app(response.app.unwrap_or_default()).into()
}

pub(super) fn imported(response: v1::ImportOpenApiResponse) -> Told {
    let warnings = response.warnings;
    let manifest = String::from_utf8_lossy(&response.manifest);
    match response.app {
        Some(version) => {
            let mut members = app(version);
            members["warnings"] = json!(warnings);
            members.into()
        }
        // As comments, so that what is printed is a manifest as it stands.
        None => {
            let comments: String = warnings.iter().map(|warning| format!("# {warning}\n")).collect();
            Told {
                members: json!({ "manifest": manifest, "warnings": warnings }),
                text: Some(format!("{comments}{}", manifest.trim_end())),
            }
        }
    }
}

fn app(version: v1::CatalogVersion) -> Value {
    json!({ "appId": version.app_id, "version": version.version, "modules": version.module_count })
}

fn read_file(path: &Path) -> Result<Vec<u8>, AdminError> {
    std::fs::read(path).map_err(|error| AdminError::Unusable(format!("{}: {error}", path.display())))
}
