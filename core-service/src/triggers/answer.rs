//! What a service has listed: its items, what tells them apart, and whether they are all there are.
//!
//! Absent on purpose: asking, and which of them are new.

use engine::failure::NodeError;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::connectors::{Listed, Order, Poll, TemplateError};
use crate::native::Failure;

/// The bytes of a digest.
pub(super) const DIGEST: usize = 16;
/// The most items of an answer: what is listed is remembered.
pub(super) const MOST_LISTED: usize = 50_000;

/// Tells an item from others.
pub(super) type Digest = [u8; DIGEST];

/// What is known of an item when it is there no more.
pub(super) struct Mark {
    pub(super) digest: Digest,
    pub(super) order: Option<Order>,
}

/// An item of an answer.
pub(super) struct Item {
    pub(super) mark: Mark,
    /// Whether it starts a run when it is new.
    pub(super) is_accepted: bool,
    pub(super) value: Value,
}

/// What a service has listed.
pub(super) struct Answer {
    pub(super) items: Vec<Item>,
    /// Whether the list begins with the latest item.
    pub(super) latest_first: bool,
    /// Whether new items may stand anywhere in the list.
    pub(super) is_mixed: bool,
    /// Whether the service has more than it was asked for.
    pub(super) goes_on: bool,
}

impl Mark {
    pub(super) fn read(value: &Value, poll: &Poll, parameters: &Value) -> Result<Self, TemplateError> {
        let key = Sha256::digest(poll.key(value, parameters)?.as_bytes());
        let mut digest = [0; DIGEST];
        digest.copy_from_slice(&key[..DIGEST]);
        Ok(Self {
            digest,
            order: poll.order(value, parameters)?,
        })
    }
}

impl Item {
    pub(super) fn read(value: Value, poll: &Poll, parameters: &Value) -> Result<Self, TemplateError> {
        Ok(Self {
            mark: Mark::read(&value, poll, parameters)?,
            is_accepted: poll.accepts(&value, parameters)?,
            value,
        })
    }

    /// Tells it from all others.
    pub(super) fn id(&self) -> String {
        hex::encode(self.mark.digest)
    }
}

impl Answer {
    pub(super) fn read(listed: Listed, poll: &Poll, parameters: &Value) -> Result<Self, NodeError> {
        check_number(listed.items.len())?;
        let items = listed.items.into_iter();
        let items = items.map(|value| Item::read(value, poll, parameters));
        let items: Result<Vec<_>, TemplateError> = items.collect();
        let items = items.map_err(|error| NodeError::new("HTTP_ERROR", error.to_string()))?;
        Ok(Self {
            is_mixed: is_mixed(poll, items.iter().map(|item| &item.mark)),
            items,
            latest_first: poll.latest_first,
            goes_on: listed.goes_on,
        })
    }
}

/// Whether new items may stand anywhere among others: the app says so, or nothing says where.
pub(super) fn is_mixed<'a>(poll: &Poll, mut marks: impl Iterator<Item = &'a Mark>) -> bool {
    poll.whole || !(poll.latest_first || poll.limit.is_some() || marks.any(|mark| mark.order.is_some()))
}

/// Refuses an answer that cannot be remembered: the next one would take what was forgotten for new.
fn check_number(items: usize) -> Result<(), NodeError> {
    match items > MOST_LISTED {
        true => Err(NodeError::new(
            Failure::TOO_LARGE,
            format!(
                "the list has {items} items, and a trigger tells what is new among at most {MOST_LISTED}: \
                 let the service give fewer, by a filter or a limit, such as the latest ones only"
            ),
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_list_has_so_many_items() {
        assert!(check_number(MOST_LISTED).is_ok());
        let refused = check_number(MOST_LISTED + 1).unwrap_err();
        assert!(refused.message.contains("50001 items"), "{}", refused.message);
    }
}
