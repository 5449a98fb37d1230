//! Real servers of other protocols than HTTP, each for one test: in a directory of its own, on a port of its own, and gone
//! with the test.
//!
//! Where a server is not installed, tests say loudly that they are skipped; `SWITCHYARD_TEST_REQUIRE_…=1` makes that a
//! failure.

mod imap;
mod s3;
mod sftp;
mod smtp;

use std::path::{Path, PathBuf};

pub use imap::MailboxServer;
pub use s3::ObjectStore;
pub use sftp::FileServer;
pub use smtp::{MailSecurity, MailServer};

use crate::api::until;
use crate::say_loudly;

/// What a server is looked for by.
struct Needed {
    /// What it is, and how to get it.
    what: &'static str,
    /// The end of `SWITCHYARD_TEST_REQUIRE_`.
    variable: &'static str,
}

impl Needed {
    /// What was found, or nothing, loudly.
    fn or_skip<T>(&self, test: &str, found: Option<T>) -> Option<T> {
        if found.is_none() {
            let variable = format!("SWITCHYARD_TEST_REQUIRE_{}", self.variable);
            let required = std::env::var(variable).is_ok_and(|value| value == "1");
            assert!(!required, "{test} needs {}", self.what);
            say_loudly(&format!("SKIPPED: {test}: there is no {}", self.what));
        }
        found
    }
}

/// A program on the path, or where Debian keeps those of the system.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Whether tests are run by root, whom some servers treat otherwise.
fn is_root() -> bool {
    let output = std::process::Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The Python of the environment that a tool of PyPI is installed in.
fn python_of(tool: &str) -> Option<PathBuf> {
    let python = program(tool)?.with_file_name("python");
    python.is_file().then_some(python)
}

/// A script of this package's folder `servers`.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers").join(name)
}

/// The port that a script has written into its directory.
async fn written_port(directory: &Path, what: &str) -> u16 {
    let port = until(async || std::fs::read_to_string(directory.join("port")).ok()).await;
    let log = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let port = port.unwrap_or_else(|| panic!("{what} does not start:\n{}", log()));
    port.trim().parse().expect("a port")
}
