//! A binary of the product as a child process that cannot outlive the test.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::api::until;

/// A running child. Dropping it kills it; so does the end of this process, whatever way it ends.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    watcher: Child,
}

impl Process {
    /// Starts a binary in a directory; its output is added to a log file. It sees no environment but this and what it
    /// needs.
    pub(crate) fn start(
        binary: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        directory: &Path,
        log: &Path,
    ) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("the log file");
        let kept = ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE"];
        let kept = kept
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let child = Command::new(binary)
            .args(arguments)
            .env_clear()
            .envs(kept)
            .envs(environment.iter().cloned())
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log file, twice"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", binary.display()));
        let watcher = watch(child.id());
        Self { child, watcher }
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child to ask")
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "SIG{name} was not sent"
        );
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        // The watcher goes first: it must not kill whoever has the same id later.
        for child in [&mut self.watcher, &mut self.child] {
            if let Err(error) = child.kill().and_then(|()| child.wait()) {
                eprintln!("process {} is not killed: {error}", child.id());
            }
        }
    }

    /// Waits for the process to end.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        until(async || self.ended()).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a shell that waits for this process to end and then kills the child.
fn watch(child: u32) -> Child {
    let script = r#"trap '' INT TERM HUP; read -r _ || true; kill -KILL "$1" 2>/dev/null"#;
    Command::new("sh")
        .args(["-c", script, "sh", &child.to_string()])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}
