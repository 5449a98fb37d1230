//! Finds secrets in what is about to be recorded and puts [`MASK`] in their place.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Number, Value};

/// What stands where a secret stood.
const MASK: &str = "***";

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

/// A secret as it is, and as it reads inside JSON text, a URL and Base64.
fn forms(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let mut forms = vec![
        secret.to_owned(),
        quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned(),
        form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        STANDARD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
    ];
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
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
        for form in ["pa\\\"ss wörd", "pa%22ss+w%C3%B6rd", "cGEic3Mgd8O2cmQ="] {
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
    fn the_longest_secret_wins_and_without_any_nothing_changes() {
        assert_eq!(
            masked(&["abcdef", "abcdefgh"], json!("abcdefghi abcdefg")),
            json!("***i ***g")
        );
        let value = json!({ "a": [1, null, true, "text"] });
        assert_eq!(masked(&[], value.clone()), value);
    }
}
