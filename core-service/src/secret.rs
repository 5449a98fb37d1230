//! Secrets, and the master key that wraps those which are stored.
//!
//! Neither type has `Debug`, `Display` or `Serialize`: what holds one cannot be logged or sent by accident.

use std::convert::Infallible;
use std::io::Write as _;
use std::path::Path;
use std::str::FromStr;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

const KEY_LENGTH: usize = 32;
const NONCE_LENGTH: usize = 24;

/// Text that nobody but its reader may see.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the texts are the same, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &str) -> bool {
        constant_time_eq::constant_time_eq(self.0.as_bytes(), other.as_bytes())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// The key that wraps stored secrets.
#[derive(Clone)]
pub struct MasterKey(XChaCha20Poly1305);

/// What is wrong with a key or with what it should open.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A file cannot be read or written.
    #[error("the file {path} cannot be used")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A master key file holds something else.
    #[error("{0} must hold 64 hexadecimal digits")]
    Malformed(String),
    /// What was wrapped was wrapped by another key, or is damaged.
    #[error("the master key does not open what the database holds; start with the key the other nodes use")]
    WrongKey,
    /// The operating system gives no randomness.
    #[error("the operating system gives no random numbers")]
    Random(#[from] getrandom::Error),
}

impl MasterKey {
    /// Reads the key of a file, which is made, readable by its owner alone, when it is missing.
    ///
    /// # Errors
    /// When the file cannot be used or does not hold a key.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let text = match read_private(path)? {
            Some(text) => text,
            None => {
                let mut key = [0_u8; KEY_LENGTH];
                getrandom::fill(&mut key)?;
                let text = hex::encode(key);
                write_private(path, &text)?;
                text
            }
        };
        let malformed = || SecretError::Malformed(path.display().to_string());
        let key = hex::decode(text.trim()).map_err(|_| malformed())?;
        let cipher = XChaCha20Poly1305::new_from_slice(&key).map_err(|_| malformed())?;
        Ok(Self(cipher))
    }

    /// Wraps bytes for a purpose; only the same purpose opens them.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn wrap(&self, purpose: &str, bytes: &[u8]) -> Result<Vec<u8>, SecretError> {
        let mut nonce = [0_u8; NONCE_LENGTH];
        getrandom::fill(&mut nonce)?;
        let payload = Payload {
            msg: bytes,
            aad: purpose.as_bytes(),
        };
        let sealed = self
            .0
            .encrypt(XNonce::from_slice(&nonce), payload)
            .map_err(|_| SecretError::WrongKey)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`MasterKey::wrap`] gave.
    ///
    /// # Errors
    /// When another key or another purpose wrapped it.
    pub fn unwrap(&self, purpose: &str, wrapped: &[u8]) -> Result<Vec<u8>, SecretError> {
        let (nonce, sealed) = wrapped
            .split_at_checked(NONCE_LENGTH)
            .ok_or(SecretError::WrongKey)?;
        let payload = Payload {
            msg: sealed,
            aad: purpose.as_bytes(),
        };
        self.0
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_| SecretError::WrongKey)
    }
}

/// The text of a private file, if there is one.
///
/// # Errors
/// When it is there and cannot be read.
pub fn read_private(path: &Path) -> Result<Option<String>, SecretError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SecretError::File {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Writes a new file that only its owner can read.
///
/// # Errors
/// When it is there already or cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), SecretError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()
    });
    written.map_err(|source| SecretError::File {
        path: path.display().to_string(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_same_key_and_purpose_open_what_was_wrapped() {
        let folder = tempfile::tempdir().unwrap();
        let key = MasterKey::from_file(&folder.path().join("a")).unwrap();
        let other = MasterKey::from_file(&folder.path().join("b")).unwrap();
        let wrapped = key.wrap("key-hash", b"secret").unwrap();
        assert_eq!(key.unwrap("key-hash", &wrapped).unwrap(), b"secret");
        assert!(key.unwrap("other", &wrapped).is_err());
        assert!(other.unwrap("key-hash", &wrapped).is_err());
        assert!(key.unwrap("key-hash", &wrapped[..10]).is_err());
        let same = MasterKey::from_file(&folder.path().join("a")).unwrap();
        assert_eq!(same.unwrap("key-hash", &wrapped).unwrap(), b"secret");
    }

    #[test]
    fn key_files_are_private_and_checked() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        MasterKey::from_file(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(
            MasterKey::from_file(&path),
            Err(SecretError::Malformed(_))
        ));
    }
}
