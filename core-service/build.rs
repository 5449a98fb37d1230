//! Gathers the manifests of apps, so that a new app is one new file.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const APPS: &str = "src/connectors/apps";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its directory in the environment"
)]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={APPS}");
    // Asked when it runs, not when it is compiled: a copied target directory belongs to another tree then.
    let home = env::var_os("CARGO_MANIFEST_DIR");
    let home = home.ok_or_else(|| io::Error::other("CARGO_MANIFEST_DIR is not set"))?;
    let folder = Path::new(&home).join(APPS);
    let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<io::Result<Vec<PathBuf>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let entries = files.iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        format!("({name:?}, include_str!({:?}))", file.display())
    });
    let list = entries.collect::<Vec<_>>().join(",\n");
    let target = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&target).join("apps.rs"), format!("[{list}]"))
}
