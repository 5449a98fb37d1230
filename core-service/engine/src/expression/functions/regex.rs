//! Regular expressions of the linear-time kind: no look-around, no back-references.

use super::super::EvaluationError;
use super::super::evaluator::{Outcome, boolean};
use super::array::array;
use super::text::text;
use super::{Arguments, Function};
use regex::Captures;
use serde_json::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "match",
        &["text", "pattern", "[flags]"],
        "The first match and its groups as an array, the whole match first, or null.",
        (r#"match("order 42 paid"; "order (\d+)")"#, r#"["order 42","42"]"#),
        first_match,
    ),
    Function::new(
        "matchAll",
        &["text", "pattern", "[flags]"],
        "Every match, each as an array of the whole match and its groups.",
        (
            r#"matchAll("a1 b2"; "([a-z])(\d)")"#,
            r#"[["a1","a","1"],["b2","b","2"]]"#,
        ),
        match_all,
    ),
    Function::new(
        "replaceRegex",
        &["text", "pattern", "replacement", "[flags]"],
        "The text with each match replaced; `$1` or `${name}` in the replacement is a group.",
        (
            r#"replaceRegex("2026-07-23"; "(\d+)-(\d+)-(\d+)"; "$3.$2.$1")"#,
            "\"23.07.2026\"",
        ),
        replace,
    ),
    Function::new(
        "test",
        &["text", "pattern", "[flags]"],
        "Whether the pattern matches anywhere in the text (`^` and `$` tie it to its ends).",
        (r#"test("hello@example.com"; "^\S+@\S+$")"#, "true"),
        test,
    ),
];

/// Searching is linear, but some ten times slower than copying.
const SEARCH_FACTOR: usize = 8;
/// A text's every match may need its whole rest to be searched.
const BYTES_PER_MATCH_STEP: usize = 512;

fn searched<'a>(arguments: &Arguments<'a>) -> Result<Cow<'a, str>, EvaluationError> {
    let text = arguments.text(0)?;
    arguments
        .budget()
        .spend_bytes(text.len().saturating_mul(SEARCH_FACTOR))?;
    Ok(text)
}

fn pay_for_match(arguments: &Arguments<'_>, text: &str) -> Result<(), EvaluationError> {
    arguments.budget().spend(1 + text.len() / BYTES_PER_MATCH_STEP)
}

fn groups(arguments: &Arguments<'_>, captures: &Captures<'_>) -> Result<Value, EvaluationError> {
    arguments.budget().spend_values(captures.len())?;
    let mut groups = Vec::with_capacity(captures.len());
    for group in captures.iter() {
        let group = group.map(|group| group.as_str());
        arguments.budget().spend_bytes(group.map_or(0, str::len))?;
        groups.push(group.map_or(Value::Null, Value::from));
    }
    Ok(Value::Array(groups))
}

fn test<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let text = searched(arguments)?;
    Ok(boolean(arguments.pattern(1, 2)?.is_match(&text)))
}

fn first_match<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let text = searched(arguments)?;
    match arguments.pattern(1, 2)?.captures(&text) {
        Some(captures) => groups(arguments, &captures).map(Cow::Owned),
        None => Ok(Cow::Owned(Value::Null)),
    }
}

fn match_all<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let text = searched(arguments)?;
    let mut matches = Vec::new();
    for captures in arguments.pattern(1, 2)?.captures_iter(&text) {
        pay_for_match(arguments, &text)?;
        matches.push(groups(arguments, &captures)?);
    }
    array(matches)
}

fn replace<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = searched(arguments)?;
    let replacement = arguments.text(2)?;
    let mut result = String::new();
    let mut end = 0;
    for captures in arguments.pattern(1, 3)?.captures_iter(&whole) {
        pay_for_match(arguments, &whole)?;
        let Some(found) = captures.get(0) else {
            continue;
        };
        // What a match can add: the replacement, each `$` of which may stand for the whole match.
        let groups = replacement.matches('$').count();
        let most = replacement
            .len()
            .saturating_add(groups.saturating_mul(found.len()));
        let between = whole.get(end..found.start()).unwrap_or_default();
        arguments
            .budget()
            .spend_growth(result.len(), most.saturating_add(between.len()))?;
        result.push_str(between);
        captures.expand(&replacement, &mut result);
        end = found.end();
    }
    result.push_str(whole.get(end..).unwrap_or_default());
    text(result)
}
