//! What a polling trigger remembers: which items it has dealt with, and what tells old ones that it has not seen.
//!
//! Absent on purpose: asking, starting runs, what tells items apart.

use std::collections::HashSet;

use super::answer::{Answer, DIGEST, Digest, Item, Mark};
use crate::connectors::Order;

/// How many of the latest items are remembered, when fewer are listed.
const REMEMBERED: usize = 10_000;
/// How [`Floor::End`] is written: as no order is.
const END: &str = "true";

/// What a trigger remembers.
pub(super) struct Known {
    /// Of the items that it has dealt with, the latest last.
    digests: Vec<Digest>,
    floor: Floor,
}

/// What tells items that are old and were never listed.
#[derive(Debug, PartialEq, Eq)]
enum Floor {
    /// What was written before there were floors: the next answer tells.
    Unsaid,
    /// Nothing does.
    None,
    /// There are none: a list that begins with the latest item was seen to its end.
    End,
    /// The order below which no item is new.
    At(Order),
}

/// What an answer brings.
pub(super) struct News<'a> {
    /// The new items, as they are listed.
    pub(super) items: Vec<&'a Item>,
    /// Whether there may be others, which nobody will see.
    pub(super) is_partial: bool,
}

/// What is old.
pub(super) struct Old<'k> {
    seen: HashSet<Digest>,
    floor: &'k Floor,
}

impl Known {
    /// What is remembered after the first answer, all of which is old.
    pub(super) fn first(answer: &Answer) -> Self {
        let nothing = Self {
            digests: Vec::new(),
            floor: lowest(answer.items.iter()),
        };
        nothing.with(answer, &[])
    }

    /// Reads what [`Known::write`] wrote, or what servers wrote that knew no floor: digests, and nothing else.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (chunks, rest) = bytes.as_chunks::<DIGEST>();
        let (digests, floor) = match rest {
            [chunks_of_floor] => {
                let digests = chunks.len().saturating_sub(usize::from(*chunks_of_floor));
                let (digests, floor) = chunks.split_at(digests);
                (digests, Floor::read(floor.as_flattened()))
            }
            _ => (chunks, Floor::Unsaid),
        };
        Self {
            digests: digests.to_vec(),
            floor,
        }
    }

    /// Digests, the floor's text filled up with spaces to the length of some digests, and how many these are. A server
    /// that knows no floor takes it for digests of things that never come.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.digests.as_flattened().to_vec();
        let floor = match &self.floor {
            Floor::Unsaid => return bytes,
            Floor::None => String::new(),
            Floor::End => END.to_owned(),
            Floor::At(order) => order.write(),
        };
        let chunks = floor.len().div_ceil(DIGEST);
        bytes.extend_from_slice(floor.as_bytes());
        bytes.resize((self.digests.len() + chunks) * DIGEST, b' ');
        bytes.extend(u8::try_from(chunks));
        bytes
    }

    /// What is old by now.
    pub(super) fn old(&self) -> Old<'_> {
        Old {
            seen: self.digests.iter().copied().collect(),
            floor: &self.floor,
        }
    }

    /// Which items of an answer are new: not dealt with, not below the floor, and, in a list that begins with the latest, not
    /// below one that was dealt with. Such a one has only moved up, into what is listed.
    pub(super) fn news<'a>(&mut self, answer: &'a Answer) -> News<'a> {
        let items = &answer.items;
        let seen: HashSet<Digest> = self.digests.iter().copied().collect();
        let is_known = |item: &&Item| seen.contains(&item.mark.digest);
        if self.floor == Floor::Unsaid
            && let at @ Floor::At(_) = lowest(items.iter().filter(is_known))
        {
            self.floor = at;
        }
        let deepest = items.iter().rposition(|item| is_known(&item));
        let mut old = Old {
            seen,
            floor: &self.floor,
        };
        let end = match deepest {
            Some(place) if answer.latest_first => place,
            None if answer.latest_first && !self.tells_unseen() => 0,
            _ => items.len(),
        };
        let ends_old = items.iter().any(|item| old.holds(&item.mark));
        let candidates = items.iter().take(end);
        let new = candidates
            .filter(|item| !old.holds(&item.mark) && old.seen.insert(item.mark.digest) && item.is_accepted);
        News {
            items: new.collect(),
            is_partial: match answer.is_mixed {
                true => answer.goes_on,
                false => !ends_old && (answer.goes_on || end < items.len()),
            },
        }
    }

    /// Whether an item that was never listed is known to be old or new, even when none that was is listed any more.
    fn tells_unseen(&self) -> bool {
        self.digests.is_empty() || matches!(self.floor, Floor::End | Floor::At(_))
    }

    /// Remembers the items of an answer but those that are left for another time. What is listed is forgotten last.
    pub(super) fn with(self, answer: &Answer, left: &[&Item]) -> Self {
        let left: HashSet<Digest> = left.iter().map(|item| item.mark.digest).collect();
        let mut listed = HashSet::new();
        let dealt_with = answer.items.iter().rev().map(|item| item.mark.digest);
        let latest: Vec<Digest> = dealt_with
            .filter(|digest| !left.contains(digest) && listed.insert(*digest))
            .collect();
        let mut digests = self.digests;
        digests.retain(|digest| !listed.contains(digest));
        digests.extend(latest);
        let forgotten = digests.len().saturating_sub(REMEMBERED.max(listed.len()));
        digests.drain(..forgotten);
        let floor = match self.floor {
            Floor::Unsaid | Floor::None if answer.latest_first && !answer.goes_on => Floor::End,
            floor => floor,
        };
        Self { digests, floor }
    }
}

impl Old<'_> {
    /// Whether an item with this mark is old.
    pub(super) fn holds(&self, mark: &Mark) -> bool {
        self.seen.contains(&mark.digest) || self.floor.is_above(mark)
    }
}

impl Floor {
    /// Reads what was written. A server that knows no such end takes it for none.
    fn read(text: &[u8]) -> Self {
        match text.trim_ascii_end() == END.as_bytes() {
            true => Self::End,
            false => Order::read(text).map_or(Self::None, Self::At),
        }
    }

    fn is_above(&self, mark: &Mark) -> bool {
        match (self, &mark.order) {
            (Self::At(floor), Some(order)) => order.is_below(floor),
            _ => false,
        }
    }
}

/// The lowest order of some items.
fn lowest<'a>(items: impl Iterator<Item = &'a Item>) -> Floor {
    let orders = items.filter_map(|item| item.mark.order.as_ref());
    let lowest = orders.reduce(|lowest, order| match order.is_below(lowest) {
        true => order,
        false => lowest,
    });
    lowest.map_or(Floor::None, |order| Floor::At(order.clone()))
}

#[cfg(test)]
mod tests;
