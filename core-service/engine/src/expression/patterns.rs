//! Regular expressions: linear in the text, and bounded in what compiling one may take.

use regex::{Regex, RegexBuilder};

/// What a compiled expression may take, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;
/// The deepest nesting of groups.
const MAX_NESTING: u32 = 50;

/// Compiles a pattern with flags out of `i` (any case), `m` (`^` and `$` at line ends), `s` (`.` is any
/// character), `x` (spaces and comments are ignored), or says what is wrong.
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            other => {
                return Err(format!(
                    "there is no regular expression flag `{other}`, only i, m, s and x"
                ));
            }
        };
    }
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "the regular expression is too large; repeat less in it".to_owned()
        }
        // The cause is the last line of a drawing.
        error => {
            let text = error.to_string();
            let cause = text.lines().last().unwrap_or_default();
            format!(
                "the regular expression is malformed: {}",
                cause.trim_start_matches("error: ")
            )
        }
    })
}
