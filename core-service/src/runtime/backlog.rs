//! What is due faster than it can go on: whose runs are claimed next.
//!
//! As long as a claim takes all that is due, it takes what is due the longest. When more is left, organizations take turns,
//! and none may have more runs in memory than it leaves free: whatever one has sleeping, the others wake in time.

use super::Shared;
use super::claim::amount;
use crate::store::{ClaimedRun, Due, Share, StoreError};

/// Organizations of one claim.
const AT_ONCE: usize = 16;
/// An organization that is at its limit is looked at again when this part of the memory's places is free for it, so that
/// claims are not made for single runs.
const PART: usize = 1_024;

/// Whether more is due than was claimed, and whose turn it is.
#[derive(Default)]
pub(super) struct Backlog {
    is_there: bool,
    /// The organization that had the last turn.
    last: String,
}

impl Backlog {
    /// What to claim next; nothing when all that is due belongs to organizations without room.
    pub(super) async fn next(
        &mut self,
        shared: &Shared,
        now: i64,
        limit: i64,
    ) -> Result<Option<Due>, StoreError> {
        if !self.is_there {
            return Ok(Some(Due::Soonest));
        }
        let due = self.organizations(shared, now).await?;
        let is_known = !due.is_empty();
        let least = (shared.config.live_runs / PART).max(1);
        let with_room: Vec<(String, usize)> = due
            .into_iter()
            .map(|id| {
                let room = shared.limits.room_for_claims(&id);
                (id, room)
            })
            .filter(|(_, room)| *room >= least)
            .collect();
        if is_known && with_room.is_empty() {
            return Ok(None);
        }
        let even = limit / amount(with_room.len().max(1));
        let share = |(organization_id, room)| Share {
            organization_id,
            most: even.max(1).min(amount(room)),
        };
        Ok(Some(Due::InTurn(with_room.into_iter().map(share).collect())))
    }

    /// Takes note of what was claimed. Says whether there may be more.
    pub(super) fn note(&mut self, due: &Due, limit: i64, claimed: &[ClaimedRun]) -> bool {
        let is_full = amount(claimed.len()) >= limit;
        self.is_there = match due {
            Due::Soonest => is_full,
            Due::InTurn(shares) => {
                if let Some(last) = shares.last() {
                    self.last.clone_from(&last.organization_id);
                }
                let of = |share: &Share| {
                    let own = |one: &&ClaimedRun| one.run.organization_id == share.organization_id;
                    amount(claimed.iter().filter(own).count())
                };
                is_full || shares.iter().any(|share| of(share) >= share.most)
            }
        };
        self.is_there
    }

    /// Organizations that something is due of, in rotation.
    async fn organizations(&self, shared: &Shared, now: i64) -> Result<Vec<String>, StoreError> {
        let at_once = amount(AT_ONCE);
        let mut due = shared.store.organizations_due(now, &self.last, at_once).await?;
        if due.len() < AT_ONCE && !self.last.is_empty() {
            let first = shared.store.organizations_due(now, "", at_once).await?;
            let further = first.into_iter().filter(|id| *id <= self.last);
            due.extend(further.take(AT_ONCE - due.len()).collect::<Vec<_>>());
        }
        Ok(due)
    }
}
