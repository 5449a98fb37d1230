//! The names of a run's timers. A timer's row carries the text form; setting a key again moves its instant.

use std::fmt;
use std::str::FromStr;

use crate::event::NodeKey;

/// What a timer wakes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerKey {
    /// A node's wait or its next attempt: a node has one of them at a time.
    Node(NodeKey),
    /// The run's time is over.
    Run,
}

impl fmt::Display for TimerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Node(key) if key.iteration.is_root() => write!(f, "node:{}", key.node),
            Self::Node(key) => write!(f, "node:{}/{}", key.node, key.iteration),
        }
    }
}

/// The text names no timer.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a timer key is run, node:5 or node:5/3.1")]
pub struct InvalidTimerKey;

impl FromStr for TimerKey {
    type Err = InvalidTimerKey;

    fn from_str(text: &str) -> Result<Self, InvalidTimerKey> {
        if text == "run" {
            return Ok(Self::Run);
        }
        let place = text.strip_prefix("node:").ok_or(InvalidTimerKey)?;
        let (node, iteration) = place.split_once('/').unwrap_or((place, ""));
        let node = node.parse().map_err(|_| InvalidTimerKey)?;
        let iteration = iteration.parse().map_err(|_| InvalidTimerKey)?;
        Ok(Self::Node(NodeKey { node, iteration }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn text_form_round_trips() {
        for text in ["run", "node:5", "node:5/3.1"] {
            assert_eq!(text.parse::<TimerKey>().unwrap().to_string(), text);
        }
        assert_eq!("node:x".parse::<TimerKey>(), Err(InvalidTimerKey));
        assert_eq!("".parse::<TimerKey>(), Err(InvalidTimerKey));
    }
}
