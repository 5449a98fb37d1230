//! Servers that drivers speak to, started from the machine's own binaries on free ports, with data of their own.
//!
//! Where a server is not installed, its tests say loudly that they are skipped; `SWITCHYARD_TEST_REQUIRE_MARIADB=1` and
//! `SWITCHYARD_TEST_REQUIRE_REDIS=1` make that a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::net::TcpStream;

use crate::api::until;
use crate::process::Process;
use crate::server::free_address;
use crate::{Certificate, PostgresServer, TemporaryDirectory, found_or_skip, say_loudly};

/// The password that all these servers ask for.
pub const PASSWORD: &str = "correct horse battery";

/// A server of a test's own. Dropping it ends it.
pub struct NativeServer {
    process: Process,
    port: u16,
    certificate: Certificate,
    _directory: TemporaryDirectory,
}

impl NativeServer {
    /// Its port on this machine.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate (PEM, for `localhost`) that it proves itself by.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate.pem
    }

    /// Stops it where it is: it takes connections, and answers nobody.
    pub fn pause(&self) {
        self.process.signal("STOP");
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts a server and waits until it answers at its port.
    async fn start(
        binary: &Path,
        port: u16,
        arguments: &[String],
        certificate: Certificate,
        directory: TemporaryDirectory,
    ) -> Self {
        let log = directory.path().join("log");
        let process = Process::start(binary, arguments, &[], directory.path(), &log);
        let connected = until(async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        assert!(
            connected.is_some(),
            "{} does not answer:\n{told}",
            binary.display()
        );
        Self {
            process,
            port,
            certificate,
            _directory: directory,
        }
    }
}

/// A PostgreSQL server with a port and TLS, whose user `postgres` has the password; nothing, loudly, when there is none.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_POSTGRES=1` and there is none.
pub async fn postgresql_or_skip(test: &str) -> Option<(PostgresServer, u16, Certificate)> {
    let port = free_address().port();
    let started = tokio::task::spawn_blocking(move || PostgresServer::start_on_port(port)).await;
    let started = started.unwrap_or_else(|error| panic!("PostgreSQL does not start: {error}"));
    let (server, certificate) = found_or_skip(test, started)?;
    let statement = format!("ALTER ROLE postgres PASSWORD '{PASSWORD}'");
    crate::execute(&server.url(), &statement)
        .await
        .expect("a password");
    Some((server, port, certificate))
}

/// A MariaDB server with a database `shop` and a user `ada`, who has the password; nothing, loudly, when there is none.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_MARIADB=1` and there is none.
pub async fn mariadb_or_skip(test: &str) -> Option<NativeServer> {
    let found = find("mariadbd").zip(find("mariadb-install-db"));
    let (server, installer) = required(test, "MARIADB", "mariadb-server", found)?;
    let directory = TemporaryDirectory::new("mariadb").expect("a temporary directory");
    let data = directory.path().join("data");
    // A server that starts deletes the temporary tables of all others in its directory for them.
    let temporary = directory.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a directory for temporary tables");
    let installed = Command::new(installer)
        .env("TMPDIR", &temporary)
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .arg(format!("--datadir={}", data.display()))
        .args(as_root())
        .stdout(Stdio::null())
        .status();
    assert!(
        installed.is_ok_and(|status| status.success()),
        "MariaDB's tables are not made"
    );
    let prepare = directory.path().join("prepare.sql");
    let statements = format!(
        "CREATE DATABASE shop;\nCREATE USER ada@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON shop.* TO ada@'%';\n"
    );
    std::fs::write(&prepare, statements).expect("the file of statements");
    let certificate = Certificate::for_localhost(directory.path());
    let port = free_address().port();
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", data.display()),
        format!("--tmpdir={}", temporary.display()),
        format!("--socket={}", directory.path().join("socket").display()),
        format!("--init-file={}", prepare.display()),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--character-set-server=utf8mb4".to_owned(),
        "--innodb-flush-log-at-trx-commit=0".to_owned(),
        format!("--ssl-cert={}", certificate.certificate.display()),
        format!("--ssl-key={}", certificate.key.display()),
    ];
    arguments.extend(as_root());
    Some(NativeServer::start(&server, port, &arguments, certificate, directory).await)
}

/// A Redis server that asks for the password, with TLS when the test wants it; nothing, loudly, when there is none.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_REDIS=1` and there is none.
pub async fn redis_or_skip(test: &str, with_tls: bool) -> Option<NativeServer> {
    let server = required(test, "REDIS", "redis-server", find("redis-server"))?;
    let directory = TemporaryDirectory::new("redis").expect("a temporary directory");
    let certificate = Certificate::for_localhost(directory.path());
    let port = free_address().port().to_string();
    let (plain, encrypted) = if with_tls {
        ("0", port.as_str())
    } else {
        (port.as_str(), "0")
    };
    let arguments = [
        ["--port", plain],
        ["--tls-port", encrypted],
        ["--tls-cert-file", &certificate.certificate.display().to_string()],
        ["--tls-key-file", &certificate.key.display().to_string()],
        ["--tls-auth-clients", "no"],
        ["--bind", "127.0.0.1"],
        ["--requirepass", PASSWORD],
        ["--save", ""],
        ["--dir", &directory.path().display().to_string()],
    ];
    let arguments: Vec<String> = arguments
        .as_flattened()
        .iter()
        .map(|&word| word.to_owned())
        .collect();
    let port = port.parse().expect("a port");
    Some(NativeServer::start(&server, port, &arguments, certificate, directory).await)
}

/// What was found; else nothing, loudly, or the end of the test.
fn required<T>(test: &str, name: &str, package: &str, found: Option<T>) -> Option<T> {
    if found.is_none() {
        let variable = format!("SWITCHYARD_TEST_REQUIRE_{name}");
        let required = std::env::var(variable).is_ok_and(|value| value == "1");
        let missing = format!("no {package}: install it (Debian: apt-get install {package})");
        assert!(!required, "{test} needs it: {missing}");
        say_loudly(&format!("SKIPPED: {test}: {missing}"));
    }
    found
}

/// Where a program is: on the path, or where Debian keeps servers.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// MariaDB runs as root only when it is told to.
fn as_root() -> Option<String> {
    let output = Command::new("id").arg("-u").output();
    let is_root = output.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    is_root.then(|| "--user=root".to_owned())
}
