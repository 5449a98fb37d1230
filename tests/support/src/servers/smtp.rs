//! A mail server: aiosmtpd, run by `servers/smtp.py`, which says how it behaves.

use serde_json::{Value, json};

use super::{Needed, python_of, script, written_port};
use crate::api::until;
use crate::process::Process;
use crate::{Certificate, TemporaryDirectory};

const NEEDED: Needed = Needed {
    what: "aiosmtpd on the path: pip install aiosmtpd",
    variable: "SMTP",
};

/// A running mail server at `localhost`.
#[derive(Debug)]
pub struct MailServer {
    directory: TemporaryDirectory,
    process: Process,
    port: u16,
    certificate: String,
}

/// Whether it speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecurity {
    /// Never.
    None,
    /// When it is asked to.
    StartTls,
    /// From the beginning.
    Tls,
}

impl MailServer {
    /// Starts a server that takes e-mails of anybody, or of this user with this password; nothing, loudly, when it is not
    /// installed.
    ///
    /// # Panics
    /// When it does not start, or `SWITCHYARD_TEST_REQUIRE_SMTP=1` and it is not installed.
    pub async fn start_or_skip(
        test: &str,
        security: MailSecurity,
        login: Option<(&str, &str)>,
    ) -> Option<Self> {
        let python = NEEDED.or_skip(test, python_of("aiosmtpd"))?;
        let directory = TemporaryDirectory::new("smtp").expect("a temporary directory");
        let made = Certificate::for_localhost(directory.path());
        let security = match security {
            MailSecurity::None => "none",
            MailSecurity::StartTls => "starttls",
            MailSecurity::Tls => "tls",
        };
        let settings = json!({
            "directory": directory.path(),
            "security": security,
            "certificate": made.certificate,
            "key": made.key,
            "user": login.map(|(user, _)| user),
            "password": login.map(|(_, password)| password),
        });
        let arguments = [script("smtp.py").display().to_string(), settings.to_string()];
        let log = directory.path().join("log");
        let process = Process::start(&python, &arguments, &[], directory.path(), &log);
        let port = written_port(directory.path(), "aiosmtpd").await;
        Some(Self {
            directory,
            process,
            port,
            certificate: made.pem,
        })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its certificate (PEM), which nobody else has signed.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The e-mails that it took, the first one first: `from`, `to` and `options` as they were said, `headers`, `subject`,
    /// `text`, `html`, `attachments`, whether the connection was `encrypted`, and who had a `login`.
    #[must_use]
    pub fn received(&self) -> Vec<Value> {
        let read = |number: u32| std::fs::read(self.directory.path().join(format!("{number}.json"))).ok();
        let letters = (1..).map_while(read);
        letters
            .map(|letter| serde_json::from_slice(&letter).expect("an e-mail"))
            .collect()
    }

    /// As [`Self::received`], once there are so many.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn waited_for(&self, number: usize) -> Vec<Value> {
        let all = until(async || Some(self.received()).filter(|all| all.len() >= number)).await;
        all.unwrap_or_else(|| panic!("not {number} e-mails came: {:?}", self.received()))
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}
