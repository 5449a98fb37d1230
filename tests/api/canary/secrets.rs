//! Secrets that are looked for, however they are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use test_support::random;

/// Secrets by where they were given, each as the marks that it is known by.
#[derive(Default)]
pub(super) struct Secrets(Vec<(String, Vec<String>)>);

impl Secrets {
    /// A new secret that each way of writing writes otherwise. Its marks are letters and digits at both ends, which none
    /// but Base64 changes: so it is found with whatever escapes, and a part of it is found, too.
    pub(super) fn give(&mut self, place: &str) -> String {
        self.give_with(place, "\"\\&% é-")
    }

    /// As [`Self::give`], for places that take ASCII only.
    pub(super) fn give_ascii(&mut self, place: &str) -> String {
        self.give_with(place, "\"\\&% -")
    }

    pub(super) fn give_with(&mut self, place: &str, between: &str) -> String {
        let (start, end) = (random(), random());
        let text = format!("canary-{start}{between}{end}");
        self.0.push((place.to_owned(), vec![start, end]));
        text
    }

    /// A secret that somebody else has made.
    pub(super) fn know(&mut self, place: &str, text: &str) {
        assert!(text.len() >= 16, "{place} is no secret: {text}");
        self.0.push((place.to_owned(), vec![text.to_owned()]));
    }

    pub(super) fn are_not_in(&self, place: &str, haystack: &str) {
        for (given, marks) in &self.0 {
            for form in marks.iter().flat_map(|mark| forms(mark)) {
                let Some(at) = haystack.find(&form) else { continue };
                let around: String = haystack[..at].chars().rev().take(300).collect();
                let around: String = around.chars().rev().collect();
                panic!("{given} is in {place} as {form}, after: {around}");
            }
        }
    }
}

/// A mark as it is, in hexadecimal, and as it reads in Base64, whatever stands before and behind it.
fn forms(mark: &str) -> Vec<String> {
    let inside = (0..3).map(|before| {
        let encoded = STANDARD.encode([&[0_u8, 0][..before], mark.as_bytes()].concat());
        encoded[(before * 8_usize).div_ceil(6)..(before + mark.len()) * 8 / 6].to_owned()
    });
    let mut forms: Vec<String> = inside.collect();
    let url_safe = forms.iter().map(|form| form.replace('+', "-").replace('/', "_"));
    forms.extend(url_safe.collect::<Vec<_>>());
    forms.extend([mark.to_owned(), hex::encode(mark)]);
    forms
}

#[test]
fn secrets_are_found_however_they_are_written() {
    let mut secrets = Secrets::default();
    let text = secrets.give("a test");
    let json = serde_json::json!(text).to_string();
    for haystack in [
        json.clone(),
        serde_json::json!(json).to_string(),
        test_support::percent_encoded(&text),
        STANDARD.encode(&text),
        STANDARD.encode(format!("ada:{text}")),
        hex::encode(&text),
        text[46..].to_owned(),
    ] {
        let found = std::panic::catch_unwind(|| secrets.are_not_in("a text", &haystack));
        assert!(found.is_err(), "{haystack}");
    }
    secrets.are_not_in("a text", "canary");
}
