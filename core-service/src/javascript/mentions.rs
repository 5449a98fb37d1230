//! Which nodes' outputs code can ask for, as far as its text tells, so that no others are handed to it.
//!
//! This reads no JavaScript: whatever might be another way to the outputs makes it give all of them.

use std::collections::BTreeSet;

/// What code sees the outputs by.
const NAME: &str = "nodes";
/// Other ways to them: what these words lead to cannot be told from the text.
const DETOURS: [&str; 3] = ["arguments", "eval", "\\u"];

/// The nodes whose outputs code can ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mentions {
    /// These.
    Some(BTreeSet<i64>),
    /// Any.
    All,
}

impl Mentions {
    /// What code asks for by `nodes[1]`, `nodes["1"]` and `nodes['1']`; anything else it does with `nodes` is all.
    #[must_use]
    pub fn of(code: &str) -> Self {
        if DETOURS.iter().any(|detour| code.contains(detour)) {
            return Self::All;
        }
        let mut found = BTreeSet::new();
        for (at, _) in code.match_indices(NAME) {
            let (before, after) = (&code[..at], &code[at + NAME.len()..]);
            if before.ends_with(is_part_of_name) || after.starts_with(is_part_of_name) {
                continue;
            }
            match index(after) {
                Some(id) => found.insert(id),
                None => return Self::All,
            };
        }
        Self::Some(found)
    }

    /// Whether this node is one of them.
    #[must_use]
    pub fn contains(&self, id: i64) -> bool {
        match self {
            Self::Some(ids) => ids.contains(&id),
            Self::All => true,
        }
    }
}

/// The number in brackets that text begins with.
fn index(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let text = text.strip_prefix("?.").unwrap_or(text).trim_start();
    let (inside, _) = text.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim();
    let quoted = |quote: char| inside.strip_prefix(quote)?.strip_suffix(quote);
    let digits = quoted('"').or_else(|| quoted('\'')).unwrap_or(inside);
    // `01` is another property than `1`.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    is_plain.then(|| digits.parse().ok()).flatten()
}

fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_mentions_are_all_that_is_needed() {
        for (code, expected) in [
            ("return input.a", &[][..]),
            (
                "return nodes[1].body + nodes['12']?.x + nodes [ \"3\" ]",
                &[1, 3, 12],
            ),
            ("const childnodes = nodes?.[2]; return childnodes", &[2]),
            ("return nodesById[1] + $nodes[4] + nöodes", &[]),
        ] {
            let expected = Mentions::Some(expected.iter().copied().collect());
            assert_eq!(Mentions::of(code), expected, "{code}");
        }
    }

    #[test]
    fn anything_else_gives_all() {
        for code in [
            "return nodes",
            "const { 1: a } = nodes",
            "return nodes[input.id]",
            "return nodes[1 + 1]",
            "return nodes['01']",
            "return nodes.x",
            "return eval('no' + 'des')",
            "return arguments[1]",
            "return n\\u006fdes",
        ] {
            assert_eq!(Mentions::of(code), Mentions::All, "{code}");
        }
    }
}
