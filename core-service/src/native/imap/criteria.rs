//! Which e-mails are looked for, as IMAP's SEARCH wants it said, and names as IMAP wants them written.

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use jiff::civil::Date;

use crate::native::values::misfit;
use crate::native::{Failure, Values};

/// What follows `UID SEARCH`.
pub(super) fn search(parameters: Values<'_>) -> Result<String, Failure> {
    let mut words = Vec::new();
    for (name, word) in [
        ("from", "FROM"),
        ("to", "TO"),
        ("subject", "SUBJECT"),
        ("containing", "TEXT"),
    ] {
        if let Some(text) = parameters.text(name)?.filter(|text| !text.is_empty()) {
            words.push(format!("{word} {}", quoted(name, text)?));
        }
    }
    for (name, word) in [("since", "SINCE"), ("before", "BEFORE")] {
        if let Some(text) = parameters.text(name)?.filter(|text| !text.is_empty()) {
            let date = text.get(..10).unwrap_or(text).parse::<Date>();
            let date = date.map_err(|_| misfit(name, "a date such as 2026-07-23"))?;
            words.push(format!("{word} {}", date.strftime("%-d-%b-%Y")));
        }
    }
    for (name, is, is_not) in [("unread", "UNSEEN", "SEEN"), ("flagged", "FLAGGED", "UNFLAGGED")] {
        if let Some(given) = parameters.get(name) {
            let wanted = given.as_bool().ok_or_else(|| misfit(name, "true or false"))?;
            words.push(if wanted { is } else { is_not }.to_owned());
        }
    }
    let said = if words.is_empty() {
        "ALL".to_owned()
    } else {
        words.join(" ")
    };
    Ok(if said.is_ascii() {
        said
    } else {
        format!("CHARSET UTF-8 {said}")
    })
}

/// A text in quotation marks. It can end neither them nor the line.
fn quoted(name: &str, text: &str) -> Result<String, Failure> {
    match text.chars().any(char::is_control) {
        true => Err(misfit(
            name,
            "a text without line breaks and other control characters",
        )),
        false => Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))),
    }
}

/// The name of a mailbox in modified UTF-7 (RFC 3501, 5.1.3), which is plain where the name is.
pub(super) fn mailbox_name(name: &str) -> Result<String, Failure> {
    if name.chars().any(char::is_control) {
        return Err(misfit(
            "mailbox",
            "a name without line breaks and other control characters",
        ));
    }
    let (mut written, mut foreign) = (String::new(), Vec::new());
    for letter in name.chars() {
        if letter.is_ascii() {
            put_foreign(&mut written, &mut foreign);
            written.push(letter);
            if letter == '&' {
                written.push('-');
            }
        } else {
            let mut units = [0; 2];
            let units = letter.encode_utf16(&mut units);
            foreign.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    put_foreign(&mut written, &mut foreign);
    Ok(written)
}

fn put_foreign(written: &mut String, foreign: &mut Vec<u8>) {
    if !foreign.is_empty() {
        let engine = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);
        written.push('&');
        engine.encode_string(&*foreign, written);
        written.push('-');
        foreign.clear();
    }
}

/// A flag of e-mails: one of IMAP's own, or a keyword.
pub(super) fn flag(word: &str) -> Result<String, Failure> {
    let own = ["seen", "flagged", "answered", "draft"];
    let lower = word.to_ascii_lowercase();
    if own.contains(&lower.as_str()) {
        return Ok(format!("\\{}{}", &lower[..1].to_ascii_uppercase(), &lower[1..]));
    }
    let is_keyword = !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"$_-.".contains(&byte));
    match is_keyword {
        true => Ok(word.to_owned()),
        false => Err(misfit(
            "flag",
            "seen, flagged, answered, draft, or a word of letters, digits, $, _, - and .",
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};

    use super::*;

    fn said(parameters: Value) -> Result<String, Failure> {
        search(Values(parameters.as_object().unwrap()))
    }

    #[test]
    fn what_is_looked_for_is_said_as_imap_wants_it() {
        assert_eq!(said(json!({})).unwrap(), "ALL");
        let parameters = json!({
            "from": "ada", "subject": "a \"b\" \\ c", "since": "2026-07-03T10:00:00Z", "before": "2026-12-24",
            "unread": true, "flagged": false, "to": null, "containing": "",
        });
        assert_eq!(
            said(parameters).unwrap(),
            r#"FROM "ada" SUBJECT "a \"b\" \\ c" SINCE 3-Jul-2026 BEFORE 24-Dec-2026 UNSEEN UNFLAGGED"#
        );
        assert_eq!(
            said(json!({ "containing": "Grüße" })).unwrap(),
            "CHARSET UTF-8 TEXT \"Grüße\""
        );
        for wrong in [
            json!({ "from": "a\r\nA1 DELETE INBOX" }),
            json!({ "since": "yesterday" }),
            json!({ "unread": "yes" }),
            json!({ "subject": 7 }),
        ] {
            assert!(matches!(said(wrong), Err(Failure::Parameters(_))));
        }
    }

    #[test]
    fn names_are_written_in_modified_utf_7() {
        for (name, written) in [
            ("INBOX", "INBOX"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("R&D", "R&-D"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("👋", "&2D3cSw-"),
        ] {
            assert_eq!(mailbox_name(name).unwrap(), written);
        }
        assert!(mailbox_name("a\r\nb").is_err());
    }

    #[test]
    fn flags_are_imaps_own_or_plain_words() {
        assert_eq!(flag("seen").unwrap(), "\\Seen");
        assert_eq!(flag("Answered").unwrap(), "\\Answered");
        assert_eq!(flag("$Forwarded").unwrap(), "$Forwarded");
        for wrong in ["", "two words", "\\Deleted", "a)", "ü"] {
            assert!(flag(wrong).is_err(), "{wrong}");
        }
    }
}
