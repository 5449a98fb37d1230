//! A session with an IMAP server that knows who is asking.

use std::time::Duration;

use async_imap::error::Error as ImapError;
use async_imap::types::Mailbox;
use async_imap::{Client, Session as ImapSession};
use tokio::time::timeout;

use super::criteria::mailbox_name;
use crate::native::bounded::Budget;
use crate::native::server::{Duplex, Server, Stream, bounded};
use crate::native::values::misfit;
use crate::native::{Failure, Session};

/// Ports: with TLS from the beginning, and otherwise.
const TLS_PORT: u16 = 993;
const PORT: u16 = 143;

/// How long a server may take to say farewell.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session, and how much may still come of it.
pub(super) struct Login {
    pub(super) session: ImapSession<Stream>,
    pub(super) budget: Budget,
}

/// A mailbox that is open.
pub(super) struct Opened {
    /// Changes when the server gives all e-mails new numbers.
    pub(super) uid_validity: u32,
}

impl Login {
    /// Logs in at the server that a connection's fields name.
    pub(super) async fn of(session: Session<'_>) -> Result<Self, Failure> {
        let fields = session.connection;
        let (user, password) = (
            fields.required_text("username")?,
            fields.required_text("password")?,
        );
        let security = fields.text("security")?.unwrap_or("tls");
        let usual_port = match security {
            "tls" => TLS_PORT,
            "starttls" | "none" => PORT,
            _ => return Err(misfit("security", "tls, starttls or none")),
        };
        let server = Server {
            host: fields.required_text("host")?,
            port: fields.port(usual_port)?,
            is_encrypted: security != "none",
            ca_certificate: fields.text("caCertificate")?,
        };
        let stream = server.dial(session).await?;
        let stream: Box<dyn Duplex> = match security {
            "starttls" => {
                let (open, _) = bounded(Box::new(stream), session);
                let mut client = greeted(open).await?;
                let agreed = client.run_command_and_check_ok("STARTTLS", None).await;
                agreed.map_err(|error| begun("asking for TLS", &error))?;
                // What came after the agreement, in the open, is forgotten with the client's buffer.
                let encrypted = session
                    .dialer
                    .tls(server.host, client.into_inner(), server.ca_certificate)
                    .await;
                Box::new(encrypted.map_err(|error| Failure::of_dialing(server.host, &error))?)
            }
            _ => server.secured(session, stream).await?,
        };
        let (stream, budget) = bounded(stream, session);
        let client = match security {
            "starttls" => Client::new(stream),
            _ => greeted(stream).await?,
        };
        let session = client
            .login(user, password)
            .await
            .map_err(|(error, _)| not_in(&error))?;
        Ok(Self { session, budget })
    }

    /// Opens a mailbox, to be changed or only to be read.
    pub(super) async fn open(&mut self, name: &str, to_change: bool) -> Result<Opened, Failure> {
        let written = mailbox_name(name)?;
        let opened: Result<Mailbox, ImapError> = match to_change {
            true => self.session.select(&written).await,
            false => self.session.examine(&written).await,
        };
        let mailbox = opened.map_err(|error| reading(&format!("the mailbox {name}"), &error))?;
        Ok(Opened {
            uid_validity: mailbox.uid_validity.unwrap_or(0),
        })
    }

    /// Says farewell. What was done is done, whatever the server answers, and whether it does.
    pub(super) async fn end(mut self) {
        match timeout(FAREWELL, self.session.logout()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "an IMAP server did not say farewell"),
            Err(_elapsed) => tracing::debug!("an IMAP server did not say farewell in time"),
        }
    }
}

async fn greeted(stream: Stream) -> Result<Client<Stream>, Failure> {
    let mut client = Client::new(stream);
    let greeting = client.read_response().await;
    match greeting {
        Ok(Some(_)) => Ok(client),
        Ok(None) => Err(Failure::Unreachable(
            "the server ended the connection without a greeting".to_owned(),
        )),
        Err(error) => Err(Failure::Unreachable(format!(
            "the server does not speak IMAP: {error}"
        ))),
    }
}

fn begun(what: &str, error: &ImapError) -> Failure {
    match error {
        ImapError::No(says) | ImapError::Bad(says) => {
            Failure::Refused(format!("the server refuses {what}: {}", sentence(says)))
        }
        error => Failure::Unreachable(format!("the connection broke at {what}: {error}")),
    }
}

fn not_in(error: &ImapError) -> Failure {
    match error {
        ImapError::No(says) if says.contains("UNAVAILABLE") || says.contains("INUSE") => {
            Failure::Busy(format!("the server lets nobody in for now: {}", sentence(says)))
        }
        ImapError::No(says) => {
            let says = sentence(says);
            Failure::Credential(format!("the server refuses the user name and password: {says}"))
        }
        ImapError::Validate(error) => {
            Failure::Credential(format!("the user name or password cannot be sent: {error}"))
        }
        error => begun("the login", error),
    }
}

/// The server's own words in an error of the library, which tells them as it tells values to programmers.
fn sentence(told: &str) -> &str {
    let quoted = told.rsplit_once("Some(\"").map(|(_, rest)| rest);
    quoted
        .and_then(|rest| rest.rsplit_once("\")"))
        .map_or(told, |(words, _)| words)
}

/// A failure of what changes nothing.
pub(super) fn reading(what: &str, error: &ImapError) -> Failure {
    match error {
        ImapError::Validate(error) => Failure::Parameters(format!("{what}: {error}")),
        error => begun(what, error),
    }
}

/// A failure of what may have been done.
pub(super) fn writing(what: &str, error: &ImapError) -> Failure {
    match reading(what, error) {
        Failure::Unreachable(why) => Failure::Lost(why),
        failure => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_server_speaks_in_its_own_words() {
        for (told, words) in [
            (
                r#"code: None, info: Some("[AUTHENTICATIONFAILED] no")"#,
                "[AUTHENTICATIONFAILED] no",
            ),
            (
                r#"outcome: Outcome { code: Some(TryCreate), information: Some("Mailbox (1) is gone.") }"#,
                "Mailbox (1) is gone.",
            ),
            ("code: None, info: None", "code: None, info: None"),
            ("plain", "plain"),
        ] {
            assert_eq!(sentence(told), words);
        }
    }
}
