//! `switchyard manifest …`: what authors of manifests need, without a server.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::connectors::App;
use crate::nodes::http::rehearsal;

/// Write manifests of apps.
#[derive(Subcommand)]
pub enum ManifestCommand {
    /// Check manifests and run the tests inside them.
    Check {
        /// The manifests, YAML.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the page on an app for people who use it, as Markdown.
    Page {
        /// The manifest, YAML.
        file: PathBuf,
    },
    /// Print the form of manifests as JSON Schema.
    Schema,
}

/// Manifests with something wrong in them.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ManifestsRefused(Vec<String>);

impl ManifestCommand {
    /// Carries the command out and gives what to print.
    ///
    /// # Errors
    /// With everything that is wrong, after the file it is in.
    pub fn run(&self) -> Result<String, ManifestsRefused> {
        match self {
            Self::Page { file } => {
                let app = read(file).map_err(ManifestsRefused)?;
                Ok(app.page().trim_end().to_owned())
            }
            Self::Schema => Ok(format!("{:#}", App::schema())),
            Self::Check { files } => {
                let checked: Vec<_> = files.iter().map(|file| check(file)).collect();
                let refused = checked.iter().filter_map(|checked| checked.as_ref().err());
                let refused: Vec<String> = refused.flatten().cloned().collect();
                match refused.is_empty() {
                    true => Ok(checked.into_iter().flatten().collect::<Vec<_>>().join("\n")),
                    false => Err(ManifestsRefused(refused)),
                }
            }
        }
    }
}

/// A line on a manifest that is right, or a line for each thing that is wrong.
fn check(file: &Path) -> Result<String, Vec<String>> {
    let app = read(file)?;
    let failures = rehearsal::failures(&app);
    match failures.is_empty() {
        true => Ok(format!(
            "{}: {} modules, {} tests passed",
            file.display(),
            app.modules.len(),
            app.tests.len()
        )),
        false => Err(failures.iter().flat_map(|failure| named(file, failure)).collect()),
    }
}

/// The app of a manifest, or a line for each thing that is wrong.
fn read(file: &Path) -> Result<App, Vec<String>> {
    let text = std::fs::read_to_string(file).map_err(|error| named(file, &error.to_string()))?;
    App::read(&text).map_err(|error| named(file, &error.to_string()))
}

fn named(file: &Path, text: &str) -> Vec<String> {
    let name = file.display();
    text.lines().map(|line| format!("{name}: {line}")).collect()
}
