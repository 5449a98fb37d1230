//! Links that let whoever has one answer one request.
//!
//! A token is the request's id with a keyed hash of it. So nothing about links is stored, a link can be shown as often
//! as the request is, and it is over when the request is.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::id;

/// Bytes of the hash: as many as cannot be guessed.
const HASH_LENGTH: usize = 16;
/// What is hashed before the id: no other use of the secret begins so.
const PURPOSE: &[u8] = b"answer link\0";

/// Makes and reads tokens with a secret that all nodes share.
#[derive(Clone)]
pub struct AnswerLinks(Hmac<Sha256>);

impl AnswerLinks {
    /// Links of this secret.
    pub fn new(secret: &[u8]) -> Self {
        // HMAC takes a key of any length.
        let hmac = Hmac::new_from_slice(secret)
            .unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        Self(hmac.chain_update(PURPOSE))
    }

    /// The token of a request.
    pub(super) fn token(&self, request_id: &str) -> String {
        let hash = self.0.clone().chain_update(request_id).finalize().into_bytes();
        let own = request_id.strip_prefix(&prefix()).unwrap_or(request_id);
        format!("{own}{}", hex::encode(&hash[..HASH_LENGTH]))
    }

    /// The request that a token is of; nothing when nobody made such a token.
    pub(super) fn request_id(&self, token: &str) -> Option<String> {
        let (own, hash) = token.split_at_checked(token.len().checked_sub(2 * HASH_LENGTH)?)?;
        let hash = hex::decode(hash).ok()?;
        let request_id = format!("{}{own}", prefix());
        let hmac = self.0.clone().chain_update(&request_id);
        hmac.verify_truncated_left(&hash).ok().map(|()| request_id)
    }
}

fn prefix() -> String {
    format!("{}_", id::Kind::HumanRequest.prefix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_request_and_one_secret() {
        let links = AnswerLinks::new(b"secret");
        let request_id = id::new(id::Kind::HumanRequest);
        let token = links.token(&request_id);
        assert_eq!(links.request_id(&token), Some(request_id.clone()));
        assert_eq!(AnswerLinks::new(b"other").request_id(&token), None);
        assert_ne!(links.token(&id::new(id::Kind::HumanRequest)), token);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'7' { b'8' } else { b'7' };
            let changed = String::from_utf8(changed).unwrap_or_default();
            assert_eq!(links.request_id(&changed), None, "character {at}");
        }
        for wrong in [
            "",
            "7",
            &token[1..],
            "ä".repeat(40).as_str(),
            &token[token.len() - 32..],
        ] {
            assert_eq!(links.request_id(wrong), None, "{wrong}");
        }
    }
}
