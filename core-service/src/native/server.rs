//! The server that a connection's fields name: `host`, `port`, `tls` and `caCertificate` mean the same to every driver.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::bounded::{Bounded, Budget};
use super::values::misfit;
use super::{Failure, Session};

/// A server, and how it is spoken to.
pub struct Server<'a> {
    /// Its name or address.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// Whether it has to prove who it is, and what is said is encrypted.
    pub is_encrypted: bool,
    /// Certificates (PEM) that are trusted besides those of the operating system.
    pub ca_certificate: Option<&'a str>,
}

/// A connection, plain or encrypted.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// A connection of which only so much can be read.
pub type Stream = Bounded<Box<dyn Duplex>>;

impl<'a> Server<'a> {
    /// What the connection's fields say.
    pub fn of(session: Session<'a>, usual_port: u16) -> Result<Self, Failure> {
        let fields = session.connection;
        Ok(Self {
            host: fields.required_text("host")?,
            port: fields.port(usual_port)?,
            is_encrypted: match fields.text("tls")? {
                None | Some("require") => true,
                Some("disable") => false,
                Some(_) => return Err(misfit("tls", "require or disable")),
            },
            ca_certificate: fields.text("caCertificate")?,
        })
    }

    /// A plain connection to it.
    pub async fn dial(&self, session: Session<'_>) -> Result<TcpStream, Failure> {
        let dialed = session.dialer.tcp(self.host, self.port).await;
        dialed.map_err(|error| Failure::of_dialing(self.host, &error))
    }

    /// The connection, encrypted when it has to be.
    pub async fn secured(&self, session: Session<'_>, stream: TcpStream) -> Result<Box<dyn Duplex>, Failure> {
        if !self.is_encrypted {
            return Ok(Box::new(stream));
        }
        let encrypted = session.dialer.tls(self.host, stream, self.ca_certificate).await;
        match encrypted {
            Ok(encrypted) => Ok(Box::new(encrypted)),
            Err(error) => Err(Failure::of_dialing(self.host, &error)),
        }
    }
}

/// So much may be read of a stream.
pub fn bounded(stream: Box<dyn Duplex>, session: Session<'_>) -> (Stream, Budget) {
    let budget = Budget::new(session.limits.bytes);
    (Bounded::new(stream, budget.clone()), budget)
}
