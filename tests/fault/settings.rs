//! How long the suite is, and what its random choices begin with.

use crate::random;

/// Whether the long suite was asked for.
pub(crate) fn is_long() -> bool {
    std::env::var("SWITCHYARD_FAULT_LONG").is_ok_and(|value| value == "1")
}

/// Rounds of a test: those of the quick suite, or of the long one.
pub(crate) fn rounds(quick: u64, long: u64) -> u64 {
    let of_suite = if is_long() { long } else { quick };
    number_from("SWITCHYARD_FAULT_ROUNDS").unwrap_or(of_suite)
}

/// What random choices begin with: given, or new.
pub(crate) fn seed() -> u64 {
    number_from("SWITCHYARD_FAULT_SEED").unwrap_or_else(random::seed)
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")))
}
