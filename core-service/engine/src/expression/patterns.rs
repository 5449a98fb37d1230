//! Regular expressions: linear in the text, and bounded in what compiling and keeping them may take.
//!
//! A template does not own its compiled patterns: a few letters can compile to hundreds of kilobytes, and a
//! workflow may hold thousands of templates. Each thread keeps those it used last instead.

use super::limits::MAX_PATTERN_BYTES;
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;

/// What a compiled expression, and again the cache it searches with, may take in bytes: `\w{20}` fits.
const MAX_COMPILED_BYTES: usize = 2 * 1024 * 1024;
/// The deepest nesting of groups.
const MAX_NESTING: u32 = 50;
/// How many compiled expressions a thread keeps.
const KEPT: usize = 16;

/// A pattern with flags out of `i` (any case), `m` (`^` and `$` at line ends), `s` (`.` is any character), `x`
/// (spaces and comments are ignored), and what it was compiled to.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: String,
    flags: String,
    pub(super) regex: Regex,
}

impl Pattern {
    pub(super) fn is(&self, text: &str, flags: &str) -> bool {
        self.text == text && self.flags == flags
    }
}

thread_local! {
    /// The one used last comes last.
    static RECENT: RefCell<Vec<Pattern>> = const { RefCell::new(Vec::new()) };
}

/// Says what is wrong with a pattern or its flags, without the cost of compiling it.
pub(super) fn check(text: &str, flags: &str) -> Result<(), String> {
    check_length(text)?;
    let flag = check_flags(flags)?;
    let mut builder = regex_syntax::ParserBuilder::new();
    builder
        .nest_limit(MAX_NESTING)
        .case_insensitive(flag('i'))
        .multi_line(flag('m'))
        .dot_matches_new_line(flag('s'))
        .ignore_whitespace(flag('x'));
    builder
        .build()
        .parse(text)
        .map(|_| ())
        .map_err(|error| malformed(&error.to_string()))
}

/// The compiled pattern, or what is wrong with it.
pub(super) fn compile(text: &str, flags: &str) -> Result<Pattern, String> {
    RECENT.with_borrow_mut(|recent| {
        let pattern = match recent.iter().position(|pattern| pattern.is(text, flags)) {
            Some(index) => recent.remove(index),
            None => build(text, flags)?,
        };
        if recent.len() >= KEPT {
            recent.remove(0);
        }
        recent.push(pattern.clone());
        Ok(pattern)
    })
}

fn build(text: &str, flags: &str) -> Result<Pattern, String> {
    check_length(text)?;
    let flag = check_flags(flags)?;
    let built = RegexBuilder::new(text)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING)
        .case_insensitive(flag('i'))
        .multi_line(flag('m'))
        .dot_matches_new_line(flag('s'))
        .ignore_whitespace(flag('x'))
        .build();
    match built {
        Ok(regex) => Ok(Pattern {
            text: text.to_owned(),
            flags: flags.to_owned(),
            regex,
        }),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err("the regular expression is too large; repeat less in it".to_owned())
        }
        Err(error) => Err(malformed(&error.to_string())),
    }
}

fn check_length(text: &str) -> Result<(), String> {
    match text.len() > MAX_PATTERN_BYTES {
        true => Err(format!(
            "a regular expression has at most {MAX_PATTERN_BYTES} bytes; look for a text with `contains`"
        )),
        false => Ok(()),
    }
}

fn check_flags(flags: &str) -> Result<impl Fn(char) -> bool, String> {
    match flags.chars().find(|flag| !"imsx".contains(*flag)) {
        Some(other) => Err(format!(
            "there is no regular expression flag `{other}`, only i, m, s and x"
        )),
        None => Ok(|flag| flags.contains(flag)),
    }
}

/// The cause is the last line of a drawing of the place.
fn malformed(error: &str) -> String {
    let cause = error.lines().last().unwrap_or_default();
    format!(
        "the regular expression is malformed: {}",
        cause.trim_start_matches("error: ")
    )
}
