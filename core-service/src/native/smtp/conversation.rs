//! SMTP (RFC 5321) over a stream that somebody else has opened: greeting, TLS, login, an e-mail, farewell.
//!
//! `lettre` speaks it. It upgrades to TLS only streams that it has opened itself, so the few lines before that are spoken
//! here ([`ask_for_tls`]), and it is given the encrypted stream with the server's greeting put before it.
//! Absent on purpose: opening streams (`outbound`), when to try again (the engine).

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use super::failure::SmtpError;
use super::message::Letter;

/// The most bytes of a server's reply before TLS.
const LONGEST_REPLY: usize = 16 * 1024;
/// How long a server may take to say farewell.
const FAREWELL: Duration = Duration::from_secs(5);

/// What became of an e-mail that the server took.
#[derive(Debug)]
pub(super) struct Delivery {
    /// For whom it took it.
    pub(super) accepted: Vec<Address>,
    /// For whom it did not, and why.
    pub(super) refused: Vec<RefusedRecipient>,
    /// Its last sentence, which often names the e-mail.
    pub(super) says: String,
}

/// Somebody for whom a server takes no e-mail.
#[derive(Debug)]
pub(super) struct RefusedRecipient {
    pub(super) address: Address,
    pub(super) code: u16,
    pub(super) says: String,
}

/// Asks a server on a stream that is not encrypted to go on with TLS, and gives its greeting. All that is said afterwards
/// is encrypted: nothing beyond the server's agreement is read.
///
/// # Errors
/// When it does not agree: there is no way on without TLS.
pub(super) async fn ask_for_tls(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Result<Vec<u8>, SmtpError> {
    let greeting = reply(stream, "greeting", 220).await?;
    say(stream, &format!("EHLO {}\r\n", ClientId::default())).await?;
    let extensions = reply(stream, "EHLO", 250).await?;
    let can = String::from_utf8_lossy(&extensions).lines().any(|line| {
        line.get(4..)
            .is_some_and(|word| word.trim().eq_ignore_ascii_case("STARTTLS"))
    });
    if !can {
        let message = "the server does not offer STARTTLS; choose tls if it expects TLS from the beginning";
        return Err(SmtpError::Unable(message.to_owned()));
    }
    say(stream, "STARTTLS\r\n").await?;
    reply(stream, "STARTTLS", 220).await?;
    Ok(greeting)
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), line: &str) -> Result<(), SmtpError> {
    let broken = |error| SmtpError::broken("asking for TLS", error);
    stream.write_all(line.as_bytes()).await.map_err(broken)?;
    stream.flush().await.map_err(broken)
}

/// A whole reply with this code, byte by byte, so that nothing after it is read.
async fn reply(stream: &mut (impl AsyncRead + Unpin), what: &str, wanted: u16) -> Result<Vec<u8>, SmtpError> {
    let (mut whole, mut line) = (Vec::new(), 0);
    loop {
        let byte = stream
            .read_u8()
            .await
            .map_err(|error| SmtpError::broken(what, error))?;
        whole.push(byte);
        if whole.len() > LONGEST_REPLY {
            return Err(SmtpError::broken(what, "the reply is too long"));
        }
        if byte != b'\n' {
            continue;
        }
        let text = String::from_utf8_lossy(&whole[line..]).trim_end().to_owned();
        line = whole.len();
        let code = text.get(..3).and_then(|code| code.parse::<u16>().ok());
        let code = code.ok_or_else(|| SmtpError::broken(what, "this is no server of SMTP"))?;
        match (text.as_bytes().get(3), code) {
            (Some(b'-'), _) => {}
            (_, code) if code == wanted => return Ok(whole),
            (_, code) => {
                let says = text.get(3..).unwrap_or_default().trim().to_owned();
                return Err(SmtpError::Refused {
                    what: what.to_owned(),
                    code,
                    says,
                });
            }
        }
    }
}

/// A server that has greeted.
pub(super) struct Conversation {
    connection: AsyncSmtpConnection,
}

impl Conversation {
    /// Begins on a stream on which nothing was said, or on one with the greeting that was read from it before TLS.
    ///
    /// # Errors
    /// When nobody answers who speaks SMTP.
    pub(super) async fn begin<S>(stream: S, greeting: Vec<u8>) -> Result<Self, SmtpError>
    where
        S: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
    {
        let (read, write) = tokio::io::split(stream);
        let stream = Given(tokio::io::join(io::Cursor::new(greeting).chain(read), write));
        let connected =
            AsyncSmtpConnection::connect_with_transport(Box::new(stream), &ClientId::default()).await;
        let connection = connected.map_err(|error| SmtpError::of("greeting", &error))?;
        Ok(Self { connection })
    }

    /// Says who is there.
    ///
    /// # Errors
    /// When the server does not believe it, or cannot be told.
    pub(super) async fn log_in(&mut self, user: &str, password: &str) -> Result<(), SmtpError> {
        let credentials = Credentials::new(user.to_owned(), password.to_owned());
        let answered = self.connection.auth(DEFAULT_MECHANISMS, &credentials).await;
        answered
            .map(drop)
            .map_err(|error| match SmtpError::of("login", &error) {
                SmtpError::Refused { code, says, .. } => SmtpError::Login { code, says },
                SmtpError::Unable(_) => {
                    SmtpError::Unable("the server offers neither PLAIN nor LOGIN to log in with".to_owned())
                }
                error => error,
            })
    }

    /// Sends an e-mail to all for whom the server takes it.
    ///
    /// # Errors
    /// When it takes it for nobody.
    pub(super) async fn send(&mut self, letter: &Letter) -> Result<Delivery, SmtpError> {
        let envelope = &letter.envelope;
        let mut options = Vec::new();
        if envelope.to().iter().chain(envelope.from()).any(is_international) {
            if !self
                .connection
                .server_info()
                .supports_feature(Extension::SmtpUtfEight)
            {
                let message = "the server takes only addresses of plain letters: it does not know SMTPUTF8";
                return Err(SmtpError::Unable(message.to_owned()));
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        let from = envelope.from().cloned();
        let sender = from.as_ref().map_or("", AsRef::as_ref);
        let what = format!("the sender {sender}");
        let answered = self.connection.command(Mail::new(from, options)).await;
        answered.map_err(|error| SmtpError::of(what, &error))?;
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        for address in envelope.to() {
            let answered = self
                .connection
                .command(Rcpt::new(address.clone(), Vec::new()))
                .await;
            match answered.map_err(|error| SmtpError::of(format!("the recipient {address}"), &error)) {
                Ok(_) => accepted.push(address.clone()),
                // 421: it says farewell and hears nobody else.
                Err(SmtpError::Refused { code, says, .. }) if code != 421 => {
                    refused.push(RefusedRecipient {
                        address: address.clone(),
                        code,
                        says,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        if accepted.is_empty() {
            return Err(nobody(&refused));
        }
        let answered = self.connection.command(Data).await;
        answered.map_err(|error| SmtpError::of("the e-mail", &error))?;
        // The end of its last line is sent with the mark of its end.
        let bytes = letter.bytes.strip_suffix(b"\r\n").unwrap_or(&letter.bytes);
        let answered = self.connection.message(bytes).await;
        let response = answered.map_err(|error| match SmtpError::of("the e-mail", &error) {
            SmtpError::Broken { why, .. } => SmtpError::Lost(why),
            error => error,
        })?;
        let says = response.message().collect::<Vec<_>>().join(" ");
        Ok(Delivery {
            accepted,
            refused,
            says,
        })
    }

    /// Says farewell. What was sent is sent, whatever the server answers, and whether it does.
    pub(super) async fn end(mut self) {
        match timeout(FAREWELL, self.connection.quit()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a mail server did not say farewell"),
            Err(_elapsed) => tracing::debug!("a mail server did not say farewell in time"),
        }
    }
}

/// Whether an address has letters beyond ASCII.
fn is_international(address: &Address) -> bool {
    let text: &str = address.as_ref();
    !text.is_ascii()
}

/// The refusal of all recipients: for now, when it is so for one of them.
fn nobody(refused: &[RefusedRecipient]) -> SmtpError {
    let kindest = refused.iter().min_by_key(|one| one.code);
    let (code, says) = kindest.map_or((550, String::new()), |one| (one.code, one.says.clone()));
    let addresses: Vec<&str> = refused.iter().map(|one| one.address.as_ref()).collect();
    let what = format!("every recipient, {}", addresses.join(", "));
    SmtpError::Refused { what, code, says }
}

/// A stream that was opened elsewhere.
struct Given<S>(S);

impl<S> fmt::Debug for Given<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a stream")
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> AsyncTokioStream for Given<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Given<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Given<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
