//! Servers of files over SSH: OpenSSH, which lets in by a key, and one in Python (`servers/sftp.py`), which lets in by a
//! password.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use tokio::net::TcpStream;

use super::{Needed, is_root, program, script, written_port};
use crate::TemporaryDirectory;
use crate::api::until;
use crate::process::Process;
use crate::server::free_address;

const OPENSSH: Needed = Needed {
    what: "OpenSSH: apt-get install openssh-server openssh-sftp-server openssh-client",
    variable: "SFTP",
};
const ASYNCSSH: Needed = Needed {
    what: "asyncssh: pip install asyncssh, and its environment's bin on the path with a link asyncssh-python",
    variable: "SFTP",
};

/// A running server at `127.0.0.1`.
#[derive(Debug)]
pub struct FileServer {
    process: Process,
    port: u16,
    user: String,
    host_key: String,
    directory: TemporaryDirectory,
}

impl FileServer {
    /// Starts OpenSSH, for whoever runs the test and has [`Self::private_key`]; nothing, loudly, when it is not installed.
    ///
    /// # Panics
    /// When it does not start, or `SWITCHYARD_TEST_REQUIRE_SFTP=1` and it is not installed.
    pub async fn openssh_or_skip(test: &str) -> Option<Self> {
        let found = program("sshd").zip(program("ssh-keygen"));
        let (sshd, keygen) = OPENSSH.or_skip(test, found)?;
        let directory = TemporaryDirectory::new("sftp").expect("a temporary directory");
        let place = directory.path();
        std::fs::create_dir(place.join("files")).expect("a folder for files");
        make_key(&keygen, &place.join("host"), "");
        make_key(&keygen, &place.join("client"), "");
        make_key(&keygen, &place.join("stranger"), "");
        make_key(&keygen, &place.join("locked"), Self::PASSPHRASE);
        let read = |name: &str| std::fs::read_to_string(place.join(name)).expect("a public key");
        let known = read("client.pub") + &read("locked.pub");
        std::fs::write(place.join("known"), known).expect("the keys that are let in");
        let port = free_address().port();
        let configuration = place.join("sshd_config");
        std::fs::write(&configuration, configured(place, port)).expect("the configuration");
        if is_root() {
            // Where it confines itself before anybody has logged in; the package makes it at boot.
            let _there = std::fs::create_dir_all("/run/sshd");
        }
        let arguments = ["-D", "-e", "-f"].map(str::to_owned).into_iter();
        let arguments: Vec<String> = arguments.chain([configuration.display().to_string()]).collect();
        let process = Process::start(&sshd, &arguments, &[], place, &place.join("log"));
        let connected = until(async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
        let log = || std::fs::read_to_string(place.join("log")).unwrap_or_default();
        assert!(connected.is_some(), "sshd does not start:\n{}", log());
        let user = Command::new("id").arg("-un").output().expect("a name");
        Some(Self {
            process,
            port,
            user: String::from_utf8_lossy(&user.stdout).trim().to_owned(),
            host_key: read("host.pub").trim().to_owned(),
            directory,
        })
    }

    /// Starts the server in Python, for `ada` with this password, which it may ask for in its own words; nothing, loudly,
    /// when it is not installed.
    ///
    /// # Panics
    /// When it does not start, or `SWITCHYARD_TEST_REQUIRE_SFTP=1` and it is not installed.
    pub async fn with_password_or_skip(test: &str, password: &str, asks: bool) -> Option<Self> {
        let python = ASYNCSSH.or_skip(test, program("asyncssh-python"))?;
        let directory = TemporaryDirectory::new("sftp").expect("a temporary directory");
        let place = directory.path();
        std::fs::create_dir(place.join("files")).expect("a folder for files");
        let settings = json!({ "directory": place, "user": "ada", "password": password, "asks": asks });
        let arguments = [script("sftp.py").display().to_string(), settings.to_string()];
        let process = Process::start(&python, &arguments, &[], place, &place.join("log"));
        let port = written_port(place, "asyncssh").await;
        let host_key = std::fs::read_to_string(place.join("host_key")).expect("the server's key");
        Some(Self {
            process,
            port,
            user: "ada".to_owned(),
            host_key: host_key.trim().to_owned(),
            directory,
        })
    }

    /// What [`Self::private_key`] `locked` is encrypted with.
    pub const PASSPHRASE: &'static str = "a passphrase of words";

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who is let in.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its public key, in one line.
    #[must_use]
    pub fn host_key(&self) -> &str {
        &self.host_key
    }

    /// The fingerprint of its key, as `ssh-keygen` shows it.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let keygen = program("ssh-keygen").expect("ssh-keygen");
        let file = self.directory.path().join("host.pub");
        let shown = Command::new(keygen)
            .arg("-lf")
            .arg(file)
            .output()
            .expect("a fingerprint");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown.split(' ').nth(1).expect("a fingerprint").to_owned()
    }

    /// A private key: `client` is let in, so is `locked`, which is encrypted; `stranger` is not.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn private_key(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).expect("a private key")
    }

    /// Where tests keep files.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

fn make_key(keygen: &Path, file: &Path, passphrase: &str) {
    let made = Command::new(keygen)
        .args(["-q", "-t", "ed25519", "-N", passphrase, "-f"])
        .arg(file)
        .stdin(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "a key is not made");
}

fn configured(place: &Path, port: u16) -> String {
    let place = place.display();
    format!(
        "Port {port}
ListenAddress 127.0.0.1
HostKey {place}/host
PidFile {place}/pid
AuthorizedKeysFile {place}/known
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"
    )
}
