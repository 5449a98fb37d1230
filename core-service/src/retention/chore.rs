//! What there is to delete, one transaction at a time.

use super::metrics::{Counters, add};
use crate::store::{Store, StoreError, Swept};

/// Something to delete until none is left. Times are epoch milliseconds.
pub(super) enum Chore<'a> {
    /// Idempotency keys that have expired.
    IdempotencyKeys { now: i64 },
    /// What nodes wrote, for runs that are over.
    Effects { before: i64 },
    /// An organization's runs that ended before an instant.
    Runs { organization_id: &'a str, before: i64 },
    /// What hung on deleted runs.
    Remains,
    /// Entries of an organization's feed.
    Activity { organization_id: &'a str, before: i64 },
    /// Pages of the file that nothing needs.
    Space,
}

impl Chore<'_> {
    /// Deletes up to `size` of it.
    pub(super) async fn step(&self, store: &Store, size: i64) -> Result<Swept, StoreError> {
        match *self {
            Self::IdempotencyKeys { now } => store.delete_expired_keys(now, size).await,
            Self::Effects { before } => store.delete_effects(before, size).await,
            Self::Runs {
                organization_id,
                before,
            } => store.delete_runs(organization_id, before, size).await,
            Self::Remains => store.delete_remains(size).await,
            Self::Activity {
                organization_id,
                before,
            } => store.delete_activity(organization_id, before, size).await,
            Self::Space => store.give_back_space(size).await,
        }
    }

    /// Whether there is no more after a step of this size. Remains come in several kinds, so only none means that.
    pub(super) fn is_done(&self, swept: &Swept, size: i64) -> bool {
        !matches!(self, Self::Remains) && swept.deleted < size.unsigned_abs()
    }

    pub(super) fn count(&self, counters: &Counters, swept: &Swept) {
        match self {
            Self::Runs { .. } => add(&counters.runs, swept.deleted),
            Self::Activity { .. } => add(&counters.entries, swept.deleted),
            _ => {}
        }
    }
}
