//! Cursors: where the next page begins, and of which query. Opaque to callers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::{Result, refuse};

const FINGERPRINT_LENGTH: usize = 8;

/// The pages of one query. A cursor of another query is refused, because it would skip and repeat rows.
pub struct Pages {
    fingerprint: [u8; FINGERPRINT_LENGTH],
}

impl Pages {
    /// The pages of the query that these parts describe.
    pub fn of(parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.len().to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let mut fingerprint = [0; FINGERPRINT_LENGTH];
        fingerprint.copy_from_slice(&hasher.finalize()[..FINGERPRINT_LENGTH]);
        Self { fingerprint }
    }

    /// Where a page begins; nothing for the first one.
    ///
    /// # Errors
    /// When the cursor is malformed or of another query.
    pub fn position<T: DeserializeOwned>(&self, cursor: &str) -> Result<Option<T>> {
        if cursor.is_empty() {
            return Ok(None);
        }
        let malformed = || refuse("cursor", "is not a cursor of this list; begin without one");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
        let (fingerprint, position) = bytes.split_at_checked(FINGERPRINT_LENGTH).ok_or_else(malformed)?;
        if fingerprint != self.fingerprint {
            return Err(refuse(
                "cursor",
                "belongs to a query with other parameters; begin without one",
            ));
        }
        serde_json::from_slice(position)
            .map(Some)
            .map_err(|_| malformed())
    }

    /// Cuts a list that was read with one row more than the page holds, and gives the cursor of the rest.
    pub fn cut<T, P: Serialize>(
        &self,
        rows: &mut Vec<T>,
        page_size: i64,
        position: impl FnOnce(&T) -> P,
    ) -> Option<String> {
        let size = usize::try_from(page_size).unwrap_or(usize::MAX);
        if rows.len() <= size {
            return None;
        }
        rows.truncate(size);
        rows.last().map(|last| {
            let position = serde_json::to_vec(&position(last)).unwrap_or_default();
            URL_SAFE_NO_PAD.encode([self.fingerprint.as_slice(), &position].concat())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_cursor_leads_on_in_its_own_query_only() {
        let pages = Pages::of(&["workflows", "name"]);
        let mut rows = vec![1, 2, 3];
        let cursor = pages.cut(&mut rows, 2, |last| (*last, "id")).unwrap();
        assert_eq!(rows, [1, 2]);
        let position: (i64, String) = pages.position(&cursor).unwrap().unwrap();
        assert_eq!(position, (2, "id".to_owned()));
        assert!(
            Pages::of(&["workflowsn", "ame"])
                .position::<(i64, String)>(&cursor)
                .is_err()
        );
        for wrong in ["!", "AAAA", "AAAAAAAAAAAAAAAA", "ä"] {
            assert!(pages.position::<(i64, String)>(wrong).is_err(), "{wrong}");
        }
        assert!(pages.position::<(i64, String)>("").unwrap().is_none());
    }

    #[test]
    fn the_last_page_has_none() {
        assert!(Pages::of(&[]).cut(&mut vec![1, 2], 2, |last| *last).is_none());
    }
}
