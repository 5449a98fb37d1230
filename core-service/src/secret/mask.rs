//! Finds secrets in what is about to be recorded and puts [`MASK`] in their place.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Number, Value};
use url::Url;

/// What stands where a secret stood.
const MASK: &str = "***";
/// The bytes of a part of a secret that is looked for by itself. What is shorter stands in many a text.
const LONG: usize = 12;

/// Knows secrets in the forms they take inside JSON text, URLs and Base64.
#[derive(Default)]
pub struct Mask {
    /// None when there are no secrets.
    texts: Option<AhoCorasick>,
    /// Secrets that are numbers, too.
    numbers: Vec<Number>,
}

impl Mask {
    /// Finds these secrets.
    pub fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let (mut patterns, mut numbers) = (Vec::new(), Vec::new());
        for secret in secrets {
            patterns.extend(forms(secret));
            numbers.extend(serde_json::from_str::<Number>(secret).ok());
        }
        if patterns.is_empty() {
            return Self::default();
        }
        let texts = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns);
        match texts {
            Ok(texts) => Self {
                texts: Some(texts),
                numbers,
            },
            // More secrets than an automaton takes, which is gigabytes: better nothing is told than one of them.
            Err(_) => Self {
                texts: AhoCorasick::new([""]).ok(),
                numbers,
            },
        }
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.texts.is_none()
    }

    /// Replaces secrets inside a value, names of fields included.
    pub fn value(&self, value: &mut Value) {
        if self.texts.is_none() {
            return;
        }
        match value {
            Value::String(text) => self.text(text),
            Value::Number(number) if self.numbers.contains(number) => *value = Value::String(MASK.to_owned()),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.value(field));
                if fields.keys().any(|name| self.finds(name)) {
                    let masked = std::mem::take(fields).into_iter().map(|(mut name, field)| {
                        self.text(&mut name);
                        (name, field)
                    });
                    *fields = masked.collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces secrets inside a text.
    pub fn text(&self, text: &mut String) {
        let Some(texts) = self.texts.as_ref().filter(|texts| texts.is_match(text.as_str())) else {
            return;
        };
        let mut masked = String::with_capacity(text.len());
        texts.replace_all_with(text, &mut masked, |_, _, masked| {
            masked.push_str(MASK);
            true
        });
        *text = masked;
    }

    fn finds(&self, text: &str) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.is_match(text))
    }
}

/// A secret as it is, and as it reads inside JSON, a URL and Base64. Of one with several lines, such as a private key, each
/// line is a secret, too.
fn forms(secret: &str) -> Vec<String> {
    let lines = secret.lines().map(str::trim);
    let lines = lines.filter(|line| line.len() >= LONG && *line != secret);
    let mut forms: Vec<String> = lines.chain([secret]).flat_map(forms_of).collect();
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

fn forms_of(text: &str) -> Vec<String> {
    let once = quoted(text);
    // JSON inside JSON, as services answer that repeat what they were sent.
    let mut forms = vec![quoted(&once), ascii(&once), once, text.to_owned()];
    let of_form: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    let of_url = of_form.replace('+', "%20");
    forms.extend([lower(&of_form), lower(&of_url), of_form, of_url]);
    forms.extend(in_path(text));
    for engine in [&STANDARD, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(text));
        forms.extend((0..3).filter_map(|before| inside_base64(engine, text, before)));
    }
    forms
}

/// As JSON writes it between quotation marks.
fn quoted(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// As JSON of nothing but ASCII writes it.
fn ascii(quoted: &str) -> String {
    let mut ascii = String::with_capacity(quoted.len());
    for unit in quoted.encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii) {
            Some(byte) => ascii.push(char::from(byte)),
            None => ascii.push_str(&format!("\\u{unit:04x}")),
        }
    }
    ascii
}

/// With the digits of percent-encoding in lower case.
fn lower(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        lower.push('%');
        lower.push_str(&digits.to_ascii_lowercase());
        lower.push_str(rest);
    }
    lower
}

/// As it reads in the path of a URL.
fn in_path(text: &str) -> Option<String> {
    let mut url = Url::parse("http://host/").ok()?;
    url.set_path(text);
    let path = url.path().strip_prefix('/')?;
    // Dots would make it shorter, and then it may be any text.
    (path.len() >= text.len()).then(|| path.to_owned())
}

/// What Base64 makes of a text that others stand before and behind, as far as it does not depend on them.
fn inside_base64(engine: &GeneralPurpose, text: &str, before: usize) -> Option<String> {
    let encoded = engine.encode([&[0_u8, 0][..before], text.as_bytes()].concat());
    let (start, end) = ((before * 8).div_ceil(6), (before + text.len()) * 8 / 6);
    let inside = encoded.get(start..end)?;
    (inside.len() >= LONG).then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(secrets: &[&str], mut value: Value) -> Value {
        Mask::of(secrets.iter().copied()).value(&mut value);
        value
    }

    #[test]
    fn secrets_are_found_wherever_they_stand() {
        let value = json!({ "a": "xs3cret!y", "list": ["s3cret!", { "s3cret!": 1 }], "fine": "s3cret" });
        let expected = json!({ "a": "x***y", "list": ["***", { "***": 1 }], "fine": "s3cret" });
        assert_eq!(masked(&["s3cret!"], value), expected);
    }

    #[test]
    fn other_forms_of_a_secret_are_found() {
        let secret = "pa\"ss wörd";
        for form in [
            "pa\\\"ss wörd",
            "pa\\\\\\\"ss wörd",
            "pa\\\"ss w\\u00f6rd",
            "pa%22ss+w%C3%B6rd",
            "pa%22ss%20w%C3%B6rd",
            "pa%22ss%20w%c3%b6rd",
            "cGEic3Mgd8O2cmQ=",
        ] {
            assert_eq!(
                masked(&[secret], json!(format!("<{form}>"))),
                json!("<***>"),
                "{form}"
            );
        }
        assert_eq!(
            masked(&["12345678"], json!([12_345_678, 12_345_679, "12345678"])),
            json!(["***", 12_345_679, "***"])
        );
    }

    #[test]
    fn a_secret_is_found_among_others() {
        for (before, behind) in [("", ":"), ("ada:", ""), ("\0ada\0", "\0"), ("x", "yz")] {
            let whole = STANDARD.encode(format!("{before}a long password{behind}"));
            let told = masked(&["a long password"], json!(whole));
            assert!(told.as_str().unwrap_or_default().len() <= 15, "{whole}: {told}");
        }
        let key = "-----BEGIN-----\nb3BlbnNzaC1rZXktdjE\nAAAA\n-----END-----\n";
        let told = masked(&[key], json!(["b3BlbnNzaC1rZXktdjE is no line", "AAAA", key]));
        assert_eq!(told, json!(["*** is no line", "AAAA", "***"]));
    }

    #[test]
    fn the_longest_secret_wins_and_without_any_nothing_changes() {
        assert_eq!(
            masked(&["abcdef", "abcdefgh"], json!("abcdefghi abcdefg")),
            json!("***i ***g")
        );
        let value = json!({ "a": [1, null, true, "text"] });
        assert_eq!(masked(&[], value.clone()), value);
    }
}
