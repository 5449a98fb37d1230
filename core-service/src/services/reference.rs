//! References to other things in a request: one that cannot be followed is a wrong field, not a missing resource.

use crate::error::Error;
use crate::store::StoreError;

/// A store's error about a request that may name a folder and a team.
pub(super) fn unresolvable(error: StoreError) -> Error {
    match error {
        StoreError::NotFound("folder") => {
            Error::invalid("folderId", "must name a folder of the organization")
        }
        StoreError::NotFound("team") => Error::invalid("teamId", "must name a team of the organization"),
        other => other.into(),
    }
}
