//! A server of mailboxes: Dovecot 2.3, with one user.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::net::TcpStream;

use super::{Needed, is_root, program};
use crate::api::until;
use crate::process::Process;
use crate::server::free_address;
use crate::{Certificate, TemporaryDirectory};

const NEEDED: Needed = Needed {
    what: "Dovecot: apt-get install dovecot-imapd",
    variable: "IMAP",
};

/// A running Dovecot at `localhost`, with a mailbox `Archive` besides the inbox.
#[derive(Debug)]
pub struct MailboxServer {
    process: Process,
    port: u16,
    tls_port: u16,
    certificate: String,
    mail: PathBuf,
    _directory: TemporaryDirectory,
}

impl MailboxServer {
    /// Starts a server for this user with this password; nothing, loudly, when it is not installed.
    ///
    /// # Panics
    /// When it does not start, or `SWITCHYARD_TEST_REQUIRE_IMAP=1` and it is not installed.
    pub async fn start_or_skip(test: &str, (user, password): (&str, &str)) -> Option<Self> {
        let dovecot = NEEDED.or_skip(test, program("dovecot"))?;
        let directory = TemporaryDirectory::new("imap").expect("a temporary directory");
        let place = directory.path();
        let made = Certificate::for_localhost(place);
        std::fs::write(place.join("users"), format!("{user}:{{PLAIN}}{password}::::::\n"))
            .expect("the users");
        let mail = place.join("mail").join(user);
        for mailbox in ["", ".Archive"] {
            for folder in ["cur", "new", "tmp"] {
                std::fs::create_dir_all(mail.join(mailbox).join(folder)).expect("a mailbox");
            }
        }
        if is_root() {
            // It gives mailboxes to nobody who is root.
            give(&place.join("mail"));
        }
        let (port, tls_port) = (free_address().port(), free_address().port());
        let configuration = place.join("dovecot.conf");
        std::fs::write(&configuration, configured(place, &made, port, tls_port)).expect("the configuration");
        let arguments = [
            "-F".to_owned(),
            "-c".to_owned(),
            configuration.display().to_string(),
        ];
        let process = Process::start(&dovecot, &arguments, &[], place, &place.join("log"));
        for port in [port, tls_port] {
            let connected = until(async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
            let log = || std::fs::read_to_string(place.join("log")).unwrap_or_default();
            assert!(connected.is_some(), "Dovecot does not start:\n{}", log());
        }
        Some(Self {
            process,
            port,
            tls_port,
            certificate: made.pem,
            mail,
            _directory: directory,
        })
    }

    /// Its port for connections that begin in the open.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its port for TLS from the beginning.
    #[must_use]
    pub fn tls_port(&self) -> u16 {
        self.tls_port
    }

    /// Its certificate (PEM), which nobody else has signed.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Puts an e-mail into the inbox.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn deliver(&self, name: &str, email: &str) {
        let (new, place) = (self.mail.join("tmp").join(name), self.mail.join("new").join(name));
        std::fs::write(&new, email).expect("an e-mail");
        std::fs::rename(new, place).expect("an e-mail that is whole");
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

fn give(place: &Path) {
    let given = Command::new("chown")
        .args(["-R", "nobody:nogroup"])
        .arg(place)
        .status();
    assert!(
        given.is_ok_and(|status| status.success()),
        "the mailboxes are not given away"
    );
}

fn configured(place: &Path, certificate: &Certificate, port: u16, tls_port: u16) -> String {
    let place = place.display();
    let (cert, key) = (certificate.certificate.display(), certificate.key.display());
    let (user, accounts) = if is_root() {
        ("uid=nobody gid=nogroup".to_owned(), String::new())
    } else {
        let name = |flag: &str| {
            let output = Command::new("id").arg(flag).output().expect("a name");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let (user, group) = (name("-un"), name("-gn"));
        let accounts = format!(
            "default_internal_user = {user}\ndefault_internal_group = {group}\ndefault_login_user = {user}\n"
        );
        (format!("uid={user} gid={group}"), accounts)
    };
    format!(
        "base_dir = {place}/run
state_dir = {place}/state
log_path = {place}/log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{cert}
ssl_key = <{key}
disable_plaintext_auth = no
auth_failure_delay = 0
first_valid_uid = 1
mail_location = maildir:{place}/mail/%u
{accounts}service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {place}/users
}}
userdb {{
  driver = static
  args = {user} home={place}/mail/%u
}}
"
    )
}
