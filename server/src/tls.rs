//! TLS settings from PEM files.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The TLS settings of a server.
pub type Tls = Arc<ServerConfig>;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate or key file cannot be read as PEM.
    #[error("the {what} is not PEM; give a file that begins with -----BEGIN")]
    Pem {
        /// Which of the two.
        what: &'static str,
        /// What is wrong.
        source: tokio_rustls::rustls::pki_types::pem::Error,
    },
    /// There is no certificate in the file.
    #[error("the certificate file holds no certificate; give the server's certificate and then its issuers")]
    NoCertificate,
    /// Certificate and key do not fit.
    #[error("certificate and key cannot be used together; check that the key is the certificate's")]
    Unusable(#[from] tokio_rustls::rustls::Error),
}

/// The TLS settings of a server from its certificate chain and private key, both PEM.
///
/// # Errors
/// When either cannot be read, or they do not belong together.
pub fn tls_from_pem(certificates: &[u8], key: &[u8]) -> Result<Tls, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem {
            what: "certificate",
            source,
        })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem { what: "key", source })?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
