//! Opens connections, to addresses that may be reached only: for the HTTP client, and for drivers of other protocols.
//!
//! A driver gets an open stream and dials nobody by itself. One whose library insists on dialling gets addresses that have
//! been checked, and connects to one of those, not to the name.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self as tls, ClientConfig, RootCertStore};

use super::address::AddressRules;

/// How long looking up, connecting and the TLS handshake may take together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// None of the host's addresses may be reached.
    #[error("its address is not allowed")]
    Blocked,
    /// The name leads nowhere.
    #[error("its name cannot be looked up")]
    Name(#[source] io::Error),
    /// The connection is refused or breaks.
    #[error("{0}")]
    Refused(#[source] io::Error),
    /// The other side does not prove who it is.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// What is to be trusted is no certificate.
    #[error("the CA certificate is none: it must be in PEM, from BEGIN CERTIFICATE to END CERTIFICATE")]
    Certificate,
    /// TLS cannot be set up here.
    #[error("TLS is not available")]
    NoTls,
    /// Nothing happens.
    #[error("connecting took longer than {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
}

impl DialError {
    /// Whether the other side answers and cannot be trusted, which another attempt does not change.
    #[must_use]
    pub fn is_distrust(&self) -> bool {
        matches!(self, Self::Tls(error) if is_distrust(error))
    }
}

/// Whether an error is of a certificate that is not trusted.
#[must_use]
pub fn is_distrust(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(tls::Error::InvalidCertificate(_)))
}

/// Opens connections. Cheap to clone.
#[derive(Clone)]
pub struct Dialer {
    rules: AddressRules,
    trusted: Arc<[CertificateDer<'static>]>,
    roots: Arc<RootCertStore>,
    /// What stands in for every host, without encryption.
    #[cfg(test)]
    pub(super) stand_in: Option<SocketAddr>,
}

/// The certificates that the operating system trusts, as far as they can be read.
pub(super) fn native_certificates() -> Vec<CertificateDer<'static>> {
    let mut found = rustls_native_certs::load_native_certs().certs;
    found.retain(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    if found.is_empty() {
        tracing::warn!("the operating system has no trusted certificates: connections over TLS will fail");
    }
    found
}

impl Dialer {
    /// A dialer that trusts these certificates.
    pub(super) fn new(rules: AddressRules, trusted: Vec<CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        Self {
            rules,
            trusted: trusted.into(),
            roots: Arc::new(roots),
            #[cfg(test)]
            stand_in: None,
        }
    }

    #[cfg(test)]
    pub(super) fn standing_in(address: SocketAddr) -> Self {
        Self {
            stand_in: Some(address),
            ..Self::new(AddressRules::new(&[]), Vec::new())
        }
    }

    /// What may be reached of a host's addresses, for libraries that dial by themselves.
    ///
    /// # Errors
    /// When the name leads nowhere, or nowhere that may be reached.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        #[cfg(test)]
        if let Some(address) = self.stand_in {
            return Ok(vec![address]);
        }
        let found = lookup_host((host, port)).await.map_err(DialError::Name)?;
        let found: Vec<_> = found.filter(|address| self.rules.permit(address.ip())).collect();
        match found.is_empty() {
            true => Err(DialError::Blocked),
            false => Ok(found),
        }
    }

    /// A connection to the first of the host's addresses that may be reached and answers.
    ///
    /// # Errors
    /// When there is none within [`CONNECT_TIMEOUT`].
    pub async fn tcp(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let opened = timeout(CONNECT_TIMEOUT, self.open(host, port)).await;
        opened.unwrap_or(Err(DialError::Timeout))
    }

    async fn open(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let addresses = self.addresses(host, port).await?;
        let share = CONNECT_TIMEOUT / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut failure = DialError::Blocked;
        for address in addresses {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true).map_err(DialError::Refused)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = DialError::Refused(error),
                Err(_elapsed) => failure = DialError::Timeout,
            }
        }
        Err(failure)
    }

    /// Encrypts a connection whose other side proves to be this host, by a certificate that the operating system trusts or
    /// that one of `also` (PEM) has signed.
    ///
    /// # Errors
    /// When it does not prove that within [`CONNECT_TIMEOUT`].
    pub async fn tls<S>(&self, host: &str, stream: S, also: Option<&str>) -> Result<TlsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| DialError::Tls(io::Error::other(error)))?;
        let connector = TlsConnector::from(Arc::new(self.tls_config(also)?));
        let encrypted = timeout(CONNECT_TIMEOUT, connector.connect(name, stream)).await;
        encrypted
            .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
            .map_err(DialError::Tls)
    }

    /// What [`Dialer::tls`] trusts, for libraries that encrypt by themselves.
    ///
    /// # Errors
    /// When `also` holds no certificates.
    pub fn trusted(&self, also: Option<&str>) -> Result<Vec<CertificateDer<'static>>, DialError> {
        let mut trusted = self.trusted.to_vec();
        trusted.extend(also.map(certificates).transpose()?.into_iter().flatten());
        Ok(trusted)
    }

    /// Trusts what [`Dialer::tls`] trusts.
    pub(super) fn tls_config(&self, also: Option<&str>) -> Result<ClientConfig, DialError> {
        let mut roots = Arc::clone(&self.roots);
        if let Some(also) = also {
            let more = Arc::make_mut(&mut roots);
            for certificate in certificates(also)? {
                more.add(certificate).map_err(|_| DialError::Certificate)?;
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|_| DialError::NoTls)?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The certificates of a text in PEM, at least one.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, DialError> {
    let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    read.ok()
        .filter(|read| !read.is_empty())
        .ok_or(DialError::Certificate)
}
