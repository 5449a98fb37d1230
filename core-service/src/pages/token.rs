//! What the link to a page carries.

use sha2::{Digest as _, Sha256};

use crate::secret::Secret;

/// 128 random bits, as text. The database finds a link by its hash.
pub struct Token(Secret);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        Ok(Self(Secret::from(hex::encode(random))))
    }

    /// The one that a link came with.
    pub(super) fn of_link(text: String) -> Self {
        Self(Secret::from(text))
    }

    /// The text that the link ends with.
    pub fn text(&self) -> &Secret {
        &self.0
    }

    /// What the database finds it by.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.expose()).into()
    }
}
