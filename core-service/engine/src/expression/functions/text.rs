//! Text. Places count characters from zero.

use super::super::evaluator::{Outcome, boolean, position};
use super::super::{EvaluationError, patterns, values};
use super::{Arguments, Function};
use serde_json::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "ascii",
        &["text"],
        "The text without the characters that are not ASCII.",
        ("ascii(\"naïve ☃\")", "\"nave \""),
        ascii,
    ),
    Function::new(
        "capitalize",
        &["text"],
        "The text with its first letter in upper case.",
        ("capitalize(\"make it so\")", "\"Make it so\""),
        capitalize,
    ),
    Function::new(
        "endsWith",
        &["text", "end"],
        "Whether the text ends so.",
        ("endsWith(\"photo.png\"; \".png\")", "true"),
        ends_with,
    ),
    Function::new(
        "escapeHTML",
        &["text"],
        "The text with &, <, >, \" and ' as HTML entities.",
        ("escapeHTML(\"<b>&</b>\")", "\"&lt;b&gt;&amp;&lt;/b&gt;\""),
        escape_html,
    ),
    Function::new(
        "escapeMarkdown",
        &["text"],
        "The text with the characters that Markdown gives a meaning escaped.",
        ("escapeMarkdown(\"*sale*\")", r#""\\*sale\\*""#),
        escape_markdown,
    ),
    Function::new(
        "lower",
        &["text"],
        "The text in lower case.",
        ("lower(\"HELLO\")", "\"hello\""),
        lower,
    ),
    Function::new(
        "padEnd",
        &["text", "length", "[filler]"],
        "The text with fillers (a space by default) behind it up to a length.",
        ("padEnd(\"7\"; 3; \".\")", "\"7..\""),
        pad_end,
    ),
    Function::new(
        "padStart",
        &["text", "length", "[filler]"],
        "The text with fillers (a space by default) before it up to a length.",
        ("padStart(7; 3; \"0\")", "\"007\""),
        pad_start,
    ),
    Function::new(
        "repeat",
        &["text", "count"],
        "The text that many times.",
        ("repeat(\"ab\"; 3)", "\"ababab\""),
        repeat,
    ),
    Function::new(
        "replace",
        &["text", "search", "replacement"],
        "The text with each occurrence of a plain text replaced (`replaceRegex` takes a pattern).",
        ("replace(\"a-b-c\"; \"-\"; \"+\")", "\"a+b+c\""),
        replace,
    ),
    Function::new(
        "replaceEmojiCharacters",
        &["text", "replacement"],
        "The text with each emoji, however many characters it is made of, replaced.",
        (
            "replaceEmojiCharacters(\"well done 👍🏽!\"; \"(y)\")",
            "\"well done (y)!\"",
        ),
        replace_emoji,
    ),
    Function::new(
        "split",
        &["text", "[separator]"],
        "The parts between the separators as an array; without one, the characters.",
        ("split(\"a,b,c\"; \",\")", "[\"a\",\"b\",\"c\"]"),
        split,
    ),
    Function::new(
        "startcase",
        &["text"],
        "The text with each word's first letter in upper case and the others in lower case.",
        ("startcase(\"jOHN doe\")", "\"John Doe\""),
        startcase,
    ),
    Function::new(
        "startsWith",
        &["text", "start"],
        "Whether the text starts so.",
        ("startsWith(\"order-7\"; \"order\")", "true"),
        starts_with,
    ),
    Function::new(
        "stripHTML",
        &["text"],
        "The text without its HTML tags and comments.",
        ("stripHTML(\"<p>Hi <b>there</b></p>\")", "\"Hi there\""),
        strip_html,
    ),
    Function::new(
        "substring",
        &["text", "start", "[end]"],
        "The characters from one place up to before another; negative places count from the end.",
        ("substring(\"workflow\"; 0; 4)", "\"work\""),
        substring,
    ),
    Function::new(
        "toString",
        &["value"],
        "The value as text, the way mixed text shows it: null is empty, arrays and objects are compact JSON.",
        ("toString([1, 2])", "\"[1,2]\""),
        to_string,
    ),
    Function::new(
        "trim",
        &["text"],
        "The text without white space at its start and end.",
        ("trim(\"  hello \")", "\"hello\""),
        trim,
    ),
    Function::new(
        "upper",
        &["text"],
        "The text in upper case.",
        ("upper(\"hello\")", "\"HELLO\""),
        upper,
    ),
];

pub(super) fn text<'a>(text: impl Into<String>) -> Outcome<'a> {
    Ok(Cow::Owned(Value::String(text.into())))
}

fn ascii<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(
        arguments
            .text(0)?
            .chars()
            .filter(char::is_ascii)
            .collect::<String>(),
    )
}

fn capitalize<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut characters = whole.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    text(first + characters.as_str())
}

fn ends_with<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    Ok(boolean(arguments.text(0)?.ends_with(arguments.text(1)?.as_ref())))
}

fn starts_with<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    Ok(boolean(
        arguments.text(0)?.starts_with(arguments.text(1)?.as_ref()),
    ))
}

fn escape_html<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut escaped = String::with_capacity(whole.len());
    for character in whole.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    text(escaped)
}

fn escape_markdown<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut escaped = String::with_capacity(whole.len());
    for character in whole.chars() {
        if r"\`*_{}[]()<>#+-.!|~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    text(escaped)
}

fn lower<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(arguments.text(0)?.to_lowercase())
}

fn upper<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(arguments.text(0)?.to_uppercase())
}

fn trim<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    text(arguments.text(0)?.trim())
}

/// The fillers that are missing to the length, which is the second argument.
fn padding(arguments: &Arguments<'_>, whole: &str) -> Result<String, EvaluationError> {
    let wanted = usize::try_from(arguments.integer(1)?).unwrap_or(0);
    let missing = wanted.saturating_sub(whole.chars().count());
    let filler = arguments.text_or(2, " ")?;
    let longest = filler.chars().map(char::len_utf8).max().unwrap_or(0);
    arguments
        .budget()
        .spend_text(whole.len().saturating_add(missing.saturating_mul(longest)))?;
    Ok(filler.chars().cycle().take(missing).collect())
}

fn pad_end<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let padding = padding(arguments, &whole)?;
    text(whole.into_owned() + &padding)
}

fn pad_start<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let padding = padding(arguments, &whole)?;
    text(padding + &whole)
}

fn repeat<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let count = usize::try_from(arguments.integer(1)?).unwrap_or(0);
    arguments.budget().spend_text(whole.len().saturating_mul(count))?;
    text(whole.repeat(count))
}

fn replace<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (whole, search) = (arguments.text(0)?, arguments.text(1)?);
    let replacement = arguments.text(2)?;
    if search.is_empty() {
        return text(whole);
    }
    let occurrences = whole.matches(search.as_ref()).count();
    let length = whole.len() - occurrences * search.len();
    arguments
        .budget()
        .spend_text(length.saturating_add(occurrences.saturating_mul(replacement.len())))?;
    text(whole.replace(search.as_ref(), &replacement))
}

/// A flag, or a pictograph (shown as one of itself or by a selector) with its modifiers and what is joined to it.
const EMOJI: &str = r"(?x)
    \p{RI}\p{RI}
  | (?: \p{Emoji_Presentation} | \p{ExtPict}\x{FE0F} ) [\x{FE0F}\p{EMod}]*
    (?: \x{200D}\p{ExtPict} [\x{FE0F}\p{EMod}]* )*
  | [0-9\#*]\x{FE0F}?\x{20E3}";

fn replace_emoji<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (whole, replacement) = (arguments.text(0)?, arguments.text(1)?);
    let emoji = patterns::compile(EMOJI, "")
        .map_err(|problem| arguments.error(&problem))?
        .regex;
    let occurrences = emoji.find_iter(&whole).count();
    let growth = occurrences.saturating_mul(replacement.len());
    arguments
        .budget()
        .spend_text(whole.len().saturating_add(growth))?;
    text(emoji.replace_all(&whole, regex::NoExpand(&replacement)))
}

fn split<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (whole, separator) = (arguments.text(0)?, arguments.text(1)?);
    let parts: Vec<Value> = if separator.is_empty() {
        arguments.budget().spend_values(whole.chars().count())?;
        whole
            .chars()
            .map(|character| Value::String(character.to_string()))
            .collect()
    } else {
        arguments
            .budget()
            .spend_values(whole.matches(separator.as_ref()).count())?;
        whole.split(separator.as_ref()).map(Value::from).collect()
    };
    Ok(Cow::Owned(Value::Array(parts)))
}

fn startcase<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut result = String::with_capacity(whole.len());
    let mut is_start = true;
    for character in whole.chars() {
        if is_start {
            result.extend(character.to_uppercase());
        } else {
            result.extend(character.to_lowercase());
        }
        is_start = !(character.is_alphanumeric() || character == '\'');
    }
    text(result)
}

fn strip_html<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let mut plain = String::with_capacity(whole.len());
    let mut rest = whole.as_ref();
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        plain.push_str(before);
        let length = tag_length(tag);
        if length == 0 {
            plain.push('<');
        }
        rest = tag.get(length.max(1)..).unwrap_or_default();
    }
    plain.push_str(rest);
    text(plain)
}

/// How many bytes the tag or comment takes that starts here; zero when `<` is just a character.
fn tag_length(text: &str) -> usize {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment
            .find("-->")
            .map_or(text.len(), |end| "<!--".len() + end + "-->".len());
    }
    let opens_tag = |character: char| character.is_ascii_alphabetic() || matches!(character, '/' | '!' | '?');
    if !text.chars().nth(1).is_some_and(opens_tag) {
        return 0;
    }
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (None, '>') => return index + 1,
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    text.len()
}

fn substring<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let whole = arguments.text(0)?;
    let length = whole.chars().count();
    let place = |index: i64| position(length, index).unwrap_or(0).min(length);
    let start = place(arguments.integer(1)?);
    let end = arguments.optional_integer(2)?.map_or(length, place);
    text(
        whole
            .chars()
            .skip(start)
            .take(end.saturating_sub(start))
            .collect::<String>(),
    )
}

fn to_string<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    match arguments.value(0)? {
        Cow::Owned(Value::String(whole)) => text(whole),
        Cow::Borrowed(whole @ Value::String(_)) => Ok(Cow::Borrowed(whole)),
        value => text(values::text(&value, arguments.budget())?),
    }
}
