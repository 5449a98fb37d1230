//! Authenticated encryption: what is sealed opens only with the same key and in the same place.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

use super::SecretError;

pub(super) const KEY_LENGTH: usize = 32;
const NONCE_LENGTH: usize = 24;

/// A key for XChaCha20-Poly1305, whose nonces are long enough to be random.
#[derive(Clone)]
pub(super) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    pub(super) fn new(key: &[u8; KEY_LENGTH]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// A nonce and the bytes, sealed for a place.
    pub(super) fn seal(&self, place: &[u8], bytes: &[u8]) -> Result<Vec<u8>, SecretError> {
        let nonce: [u8; NONCE_LENGTH] = random()?;
        let payload = Payload {
            msg: bytes,
            aad: place,
        };
        // It fails for texts of hundreds of gigabytes only.
        let sealed = self.0.encrypt(XNonce::from_slice(&nonce), payload);
        let sealed = sealed.map_err(|_too_long| SecretError::Damaged)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// What [`Cipher::seal`] sealed; nothing when key or place are others or the bytes were changed.
    pub(super) fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LENGTH)?;
        let payload = Payload {
            msg: sealed,
            aad: place,
        };
        self.0.decrypt(XNonce::from_slice(nonce), payload).ok()
    }
}

/// Random bytes of the operating system.
pub(super) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], SecretError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// One byte string of several, so that no two lists of parts give the same.
pub(super) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        whole.extend_from_slice(&(part.len() as u64).to_be_bytes());
        whole.extend_from_slice(part);
    }
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_same_key_and_place_open_what_was_sealed() {
        let (key, other) = (Cipher::new(&random().unwrap()), Cipher::new(&random().unwrap()));
        let sealed = key.seal(b"here", b"secret").unwrap();
        assert_eq!(key.open(b"here", &sealed).unwrap(), b"secret");
        assert!(key.open(b"there", &sealed).is_none());
        assert!(other.open(b"here", &sealed).is_none());
        for length in 0..sealed.len() {
            assert!(key.open(b"here", &sealed[..length]).is_none());
            let mut changed = sealed.clone();
            changed[length] ^= 1;
            assert!(key.open(b"here", &changed).is_none());
        }
        assert_ne!(sealed, key.seal(b"here", b"secret").unwrap(), "nonces are random");
    }

    #[test]
    fn parts_keep_their_boundaries() {
        assert_ne!(joined(&[b"ab", b"c"]), joined(&[b"a", b"bc"]));
        assert_ne!(joined(&[b"ab"]), joined(&[b"ab", b""]));
    }
}
