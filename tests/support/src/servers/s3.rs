//! A store that speaks S3: moto, run by `servers/s3.py`, which checks signatures.

use serde_json::json;

use super::{Needed, python_of, script, written_port};
use crate::TemporaryDirectory;
use crate::process::Process;

const NEEDED: Needed = Needed {
    what: "moto on the path: pip install 'moto[server]'",
    variable: "S3",
};

/// A running store at `127.0.0.1`.
#[derive(Debug)]
pub struct ObjectStore {
    process: Process,
    port: u16,
    _directory: TemporaryDirectory,
}

impl ObjectStore {
    /// Starts a store with these buckets, for whoever has this key and its secret, and the session token if there is one;
    /// nothing, loudly, when it is not installed.
    ///
    /// # Panics
    /// When it does not start, or `SWITCHYARD_TEST_REQUIRE_S3=1` and it is not installed.
    pub async fn start_or_skip(
        test: &str,
        (key, secret): (&str, &str),
        token: Option<&str>,
        buckets: &[&str],
    ) -> Option<Self> {
        let python = NEEDED.or_skip(test, python_of("moto_server"))?;
        let directory = TemporaryDirectory::new("s3").expect("a temporary directory");
        let settings = json!({
            "directory": directory.path(),
            "keys": { key: secret },
            "token": token,
            "buckets": buckets,
        });
        let arguments = [script("s3.py").display().to_string(), settings.to_string()];
        let log = directory.path().join("log");
        let process = Process::start(&python, &arguments, &[], directory.path(), &log);
        let port = written_port(directory.path(), "moto").await;
        Some(Self {
            process,
            port,
            _directory: directory,
        })
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}
