//! The product's binaries, as they are now.
//!
//! Cargo builds another package's binaries for nobody's tests, so they are built here, once a process. Where they are
//! built already, `SWITCHYARD_TEST_BINARIES` names their directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Beginnings of the environment variables that describe one package.
const OF_A_PACKAGE: [&str; 5] = [
    "OUT_DIR",
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
];

/// Path of a binary of this workspace: `switchyard` or `rest-facade`.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let path = DIRECTORY.get_or_init(directory).join(name);
    assert!(
        path.is_file(),
        "{} is missing; run `cargo build -p core-service -p rest-facade`",
        path.display()
    );
    path
}

fn directory() -> PathBuf {
    if let Some(directory) = std::env::var_os("SWITCHYARD_TEST_BINARIES") {
        return directory.into();
    }
    // A test's own place is <target>/<profile>/deps/<name>.
    let own = std::env::current_exe().unwrap_or_default();
    let directory = own.ancestors().nth(2).unwrap_or(Path::new("")).to_path_buf();
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    // What cargo tells this test of its package would make build scripts of dependencies run again.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| OF_A_PACKAGE.iter().any(|prefix| name.starts_with(prefix)))
        {
            build.env_remove(name);
        }
    }
    let built = build
        .args([
            "build",
            "--quiet",
            "--package",
            "core-service",
            "--package",
            "rest-facade",
            "--bins",
        ])
        .args(["--profile", profile])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(
        built.as_ref().is_ok_and(std::process::ExitStatus::success),
        "the binaries under test cannot be built: {built:?}"
    );
    directory
}
