//! A temporary PostgreSQL cluster from the machine's own binaries.
//!
//! It listens on a Unix socket in its own directory only, so no port is needed, unless a test asks for one. A watcher process outlives this one
//! just long enough to stop it, however this one ends.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Certificate, Missing, TemporaryDirectory};

/// A running cluster. The end of this process stops it and removes its directory, whatever way it ends.
#[derive(Debug)]
pub struct PostgresServer {
    account: Account,
    control: String,
    root: PathBuf,
    settings: String,
    /// Closed when this process ends, which is what the watcher waits for.
    _watcher: std::process::Child,
}

/// How PostgreSQL is stopped.
#[derive(Debug, Clone, Copy)]
pub enum StopMode {
    /// Sessions are ended and their transactions undone.
    Fast,
    /// As after a loss of power: the next start recovers.
    Immediate,
}

impl PostgresServer {
    /// Starts a cluster.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start.
    pub fn start() -> Result<Self, Missing> {
        Self::start_with(|_root, _account| Ok("-c listen_addresses=".to_owned()))
    }

    /// Starts a cluster that listens on a port of this machine too, with TLS by a certificate for `localhost`. Who comes
    /// by that way needs a password.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start.
    pub fn start_on_port(port: u16) -> Result<(Self, Certificate), Missing> {
        let mut made = None;
        let server = Self::start_with(|root, account| {
            let certificate = Certificate::for_localhost(root);
            account.own(&certificate.key)?;
            let settings = format!(
                "-c listen_addresses=127.0.0.1 -c port={port} -c ssl=on -c ssl_cert_file={} -c ssl_key_file={}",
                certificate.certificate.display(),
                certificate.key.display()
            );
            made = Some(certificate);
            Ok(settings)
        })?;
        let certificate = made.ok_or(Missing::Broken("there is no certificate".to_owned()))?;
        Ok((server, certificate))
    }

    fn start_with(
        settings: impl FnOnce(&Path, &Account) -> Result<String, Missing>,
    ) -> Result<Self, Missing> {
        let binaries = find_binaries().ok_or(Missing::NotInstalled)?;
        let directory = TemporaryDirectory::new("postgres").map_err(broken)?;
        let root = directory.path().to_path_buf();
        let account = Account::find();
        account.give(&root)?;
        let initdb = [
            binaries.join("initdb").display().to_string(),
            "--pgdata".to_owned(),
            root.join("data").display().to_string(),
            "--auth-local=trust".to_owned(),
            "--auth-host=scram-sha-256".to_owned(),
            "--username=postgres".to_owned(),
            "--encoding=UTF8".to_owned(),
            "--no-sync".to_owned(),
        ];
        account.run(&initdb)?;
        let control = binaries.join("pg_ctl").display().to_string();
        let settings = settings(&root, &account)?;
        account.run(&control_words(&control, &root, &settings, START))?;
        let stop = account.command(&control_words(&control, &root, "", &["stop", "-m", "immediate"]));
        let watcher = watch(&stop, &root)?;
        // From here on the watcher removes it.
        std::mem::forget(directory);
        Ok(Self {
            account,
            control,
            root,
            settings,
            _watcher: watcher,
        })
    }

    /// Stops the cluster and starts it again.
    ///
    /// # Errors
    /// When it does not stop or start.
    pub fn restart(&self, mode: StopMode) -> Result<(), Missing> {
        let mode = match mode {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        };
        for words in [&["stop", "-w", "-m", mode][..], START] {
            self.account
                .run(&control_words(&self.control, &self.root, &self.settings, words))?;
        }
        Ok(())
    }

    /// URL of its database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        let socket = percent_encode(&self.root);
        format!(
            "postgres://postgres@localhost/postgres?host={socket}{}",
            self.port_in_url()
        )
    }
}

impl PostgresServer {
    /// The socket's name holds the port.
    fn port_in_url(&self) -> String {
        let port = self.settings.split("-c port=").nth(1);
        let port = port.and_then(|rest| rest.split(' ').next());
        port.map(|port| format!("&port={port}")).unwrap_or_default()
    }
}

const START: &[&str] = &["start", "-w"];

/// A command of `pg_ctl` for the cluster of a directory.
fn control_words(control: &str, root: &Path, settings: &str, words: &[&str]) -> Vec<String> {
    let settings = format!(
        "{settings} -c unix_socket_directories={} -c max_connections=300",
        root.display()
    );
    let (data, log) = (root.join("data"), root.join("log"));
    let mut command = vec![control.to_owned()];
    command.extend(words.iter().copied().map(str::to_owned));
    command.extend(["-D".to_owned(), data.display().to_string()]);
    if words == START {
        command.extend([
            "-l".to_owned(),
            log.display().to_string(),
            "-o".to_owned(),
            settings,
        ]);
    }
    command
}

/// Where `initdb` and `pg_ctl` are: on the path, or where Debian keeps each version (the newest).
fn find_binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    let number = |path: &PathBuf| {
        let version = path.parent()?.file_name()?.to_str()?;
        version.split('.').next()?.parse::<u32>().ok()
    };
    versions.sort_by_key(number);
    let holds_both = |path: &PathBuf| path.join("initdb").is_file() && path.join("pg_ctl").is_file();
    on_path
        .into_iter()
        .chain(versions.into_iter().rev())
        .find(holds_both)
}

/// PostgreSQL refuses to run as root, so root runs it as another user.
#[derive(Debug)]
struct Account {
    name: Option<&'static str>,
}

impl Account {
    fn find() -> Self {
        let output = Command::new("id").arg("-u").output();
        let is_root = output.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
        let exists = |name: &&str| {
            Command::new("id")
                .arg(name)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        Self {
            name: if is_root {
                ["postgres", "nobody"].into_iter().find(exists)
            } else {
                None
            },
        }
    }

    fn give(&self, directory: &Path) -> Result<(), Missing> {
        let Some(name) = self.name else { return Ok(()) };
        let owner = Command::new("chown")
            .arg(name)
            .arg(directory)
            .status()
            .map_err(broken)?;
        if owner.success() {
            Ok(())
        } else {
            Err(Missing::Broken(format!("chown {name} failed")))
        }
    }

    /// Makes a file this account's alone, as PostgreSQL wants its key.
    fn own(&self, file: &Path) -> Result<(), Missing> {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).map_err(broken)?;
        self.give(file)
    }

    fn command(&self, words: &[String]) -> Vec<String> {
        let mut command = Vec::new();
        if let Some(name) = self.name {
            command.extend(["setpriv", "--reuid", name, "--clear-groups"].map(str::to_owned));
        }
        command.extend_from_slice(words);
        command
    }

    fn run(&self, words: &[String]) -> Result<(), Missing> {
        let words = self.command(words);
        // Output goes to a file by itself: a server that inherits a pipe would keep it open.
        let status = Command::new(&words[0])
            .args(&words[1..])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .status()
            .map_err(broken)?;
        if status.success() {
            Ok(())
        } else {
            Err(Missing::Broken(format!("{} failed: {status}", words.join(" "))))
        }
    }
}

/// Starts a shell that waits for this process to end, then stops the server and removes its directory.
fn watch(stop: &[String], root: &Path) -> Result<std::process::Child, Missing> {
    let script =
        r#"trap '' INT TERM HUP; read -r _ || true; root=$1; shift; "$@" >/dev/null 2>&1; rm -rf "$root""#;
    Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(root)
        .args(stop)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(broken)
}

fn percent_encode(path: &Path) -> String {
    path.display().to_string().replace('%', "%25").replace('/', "%2F")
}

fn broken(error: std::io::Error) -> Missing {
    Missing::Broken(error.to_string())
}
