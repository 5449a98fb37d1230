//! Texts of code as texts of ours. JavaScript's may hold halves of characters, which ours cannot.

use rquickjs::String as Text;

/// The text, with U+FFFD in place of each half of a character.
pub(super) fn well_formed(text: &Text<'_>) -> rquickjs::Result<String> {
    match text.to_string() {
        Err(rquickjs::Error::Utf8(_)) => {
            let json = text.ctx().json_stringify(text.clone())?;
            let json = json.map_or_else(|| Ok(String::new()), |json| json.to_string())?;
            Ok(serde_json::from_str(&without_halves(&json)).unwrap_or_default())
        }
        outcome => outcome,
    }
}

/// JSON writes a half of a character as an escape, and a whole one as itself.
fn without_halves(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        whole.push_str(before);
        let is_half = |escape: &str| {
            let third = escape.strip_prefix("\\ud").and_then(|rest| rest.bytes().next());
            third.is_some_and(|digit| matches!(digit, b'8'..=b'f'))
        };
        let length = if escape.starts_with("\\u") { 6 } else { 2 };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push_str(if is_half(escape) { "\u{fffd}" } else { escape });
        rest = after;
    }
    whole.push_str(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else() {
        let json = r#""a\ud800\"\\ud800\n\u0007\udfffz""#;
        let text: Result<String, _> = serde_json::from_str(&without_halves(json));
        assert_eq!(text.ok().as_deref(), Some("a\u{fffd}\"\\ud800\n\u{7}\u{fffd}z"));
    }
}
