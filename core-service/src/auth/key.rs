//! The hash of API keys: all that the database holds of them.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::api_key::ApiKeyText;

/// Hashes keys with a secret that all nodes share.
#[derive(Clone)]
pub struct KeyHasher(Hmac<Sha256>);

impl KeyHasher {
    /// A hasher with this secret.
    pub fn new(secret: &[u8]) -> Self {
        // HMAC takes a key of any length.
        Self(
            Hmac::new_from_slice(secret)
                .unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default())),
        )
    }

    /// The hash that the database holds of a key.
    pub fn hash(&self, key: &ApiKeyText) -> [u8; 32] {
        let mut hmac = self.0.clone();
        hmac.update(key.text().as_bytes());
        hmac.finalize().into_bytes().into()
    }
}
