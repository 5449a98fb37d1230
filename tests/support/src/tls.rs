//! A certificate for `localhost` that clients of the same test trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::CertifiedKey;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A certificate, its key and who trusts it.
#[derive(Clone)]
pub struct Certificate {
    /// PEM file of the certificate.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// The certificate as PEM.
    pub pem: String,
    /// Settings of clients that trust it.
    pub client: Arc<ClientConfig>,
}

impl Certificate {
    /// Makes one and writes it into a directory.
    ///
    /// # Panics
    /// When that fails.
    #[must_use]
    pub fn for_localhost(directory: &Path) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
        let pem = cert.pem();
        std::fs::write(&certificate, &pem).expect("the certificate's file");
        std::fs::write(&key, signing_key.serialize_pem()).expect("the key's file");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a trusted certificate");
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            certificate,
            key,
            pem,
            client: Arc::new(client),
        }
    }
}
