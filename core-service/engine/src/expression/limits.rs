//! The limits of the language and the budget that one evaluation spends.

/// The longest template, in characters.
pub const MAX_CHARACTERS: usize = 10_000;
/// The deepest nesting of an expression.
pub const MAX_DEPTH: usize = 64;
/// The most work one evaluation may do.
pub const MAX_STEPS: u64 = 1_000_000;
/// The largest result of one expression, in bytes.
pub const MAX_RESULT_BYTES: usize = 5 * 1024 * 1024;
