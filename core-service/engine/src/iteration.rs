//! Where in nested scopes something runs: the item indexes from the outermost scope inwards.

use std::fmt;
use std::str::FromStr;

/// The path of a scope iteration. Empty for the run's own scope, which allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Iteration(Vec<u32>);

impl Iteration {
    /// The run's own scope.
    pub const ROOT: Self = Self(Vec::new());

    /// An iteration from its indexes, outermost first.
    pub fn new(indexes: impl Into<Vec<u32>>) -> Self {
        Self(indexes.into())
    }

    /// Whether this is the run's own scope.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The indexes, outermost first.
    pub fn indexes(&self) -> &[u32] {
        &self.0
    }

    /// The iteration of the item `index` in a scope opened inside this iteration.
    #[must_use]
    pub fn child(&self, index: u32) -> Self {
        let mut indexes = Vec::with_capacity(self.0.len() + 1);
        indexes.extend_from_slice(&self.0);
        indexes.push(index);
        Self(indexes)
    }

    /// The iteration around this one and the item's index in it; nothing for the run's own scope.
    pub fn split_last(&self) -> Option<(Self, u32)> {
        let (last, outer) = self.0.split_last()?;
        Some((Self(outer.to_vec()), *last))
    }
}

impl fmt::Display for Iteration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, index) in self.0.iter().enumerate() {
            if depth > 0 {
                f.write_str(".")?;
            }
            write!(f, "{index}")?;
        }
        Ok(())
    }
}

/// The text is not numbers separated by dots.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an iteration is written as numbers separated by dots, such as 3.1")]
pub struct InvalidIteration;

impl FromStr for Iteration {
    type Err = InvalidIteration;

    fn from_str(text: &str) -> Result<Self, InvalidIteration> {
        if text.is_empty() {
            return Ok(Self::ROOT);
        }
        let indexes: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        indexes.map(Self).map_err(|_| InvalidIteration)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn text_form_round_trips() {
        for text in ["", "3", "3.1", "0.0.7"] {
            assert_eq!(text.parse::<Iteration>().unwrap().to_string(), text);
        }
        assert_eq!("3.".parse::<Iteration>(), Err(InvalidIteration));
    }

    #[test]
    fn child_and_split_are_inverse() {
        let outer = Iteration::new([3]);
        let inner = outer.child(1);
        assert_eq!(inner.to_string(), "3.1");
        assert_eq!(inner.split_last(), Some((outer, 1)));
        assert_eq!(Iteration::ROOT.split_last(), None);
    }
}
