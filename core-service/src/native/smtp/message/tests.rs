//! What is written is read again by another library.

#![allow(clippy::unwrap_used, reason = "tests")]

use mail_parser::{Message as Read, MessageParser, MimeHeaders as _};
use serde_json::json;

use super::*;

const IDENTITY: Identity<'_> = Identity {
    key: "run_1-1-4",
    at_ms: 1_750_000_000_000,
};

fn write(parameters: Value) -> Result<Letter, String> {
    Email::read(parameters.as_object().unwrap())?.write(&IDENTITY, None)
}

fn written(parameters: Value) -> Letter {
    write(parameters).unwrap_or_else(|problem| panic!("{problem}"))
}

fn read(letter: &Letter) -> Read<'_> {
    MessageParser::default().parse(&letter.bytes).unwrap()
}

#[test]
fn text_html_and_names_in_any_language_arrive() {
    let letter = written(json!({
        "from": "Café Zürich <cafe@example.com>",
        "to": [{ "name": "Müller, Jörg", "address": "joerg@example.com" }, "ada@example.com, \"Hopper, Grace\" <grace@example.com>"],
        "cc": "何 <he@example.com>",
        "bcc": "hidden@example.com, ada@example.com",
        "replyTo": { "address": "answers@example.com" },
        "subject": "Grüße aus dem Café: 今日は 👋 und noch viele weitere Wörter, die länger sind als eine Zeile",
        "text": "Liebe Grüße\nvom .\n.\nPunkt",
        "html": "<p>Liebe Grüße 👋</p>",
    }));
    let message = read(&letter);
    assert_eq!(
        message.subject(),
        Some("Grüße aus dem Café: 今日は 👋 und noch viele weitere Wörter, die länger sind als eine Zeile")
    );
    let name = |address: Option<&mail_parser::Address<'_>>, place: usize| {
        address
            .unwrap()
            .iter()
            .nth(place)
            .unwrap()
            .name()
            .map(str::to_owned)
    };
    assert_eq!(name(message.from(), 0).as_deref(), Some("Café Zürich"));
    assert_eq!(name(message.to(), 0).as_deref(), Some("Müller, Jörg"));
    assert_eq!(name(message.to(), 2).as_deref(), Some("Hopper, Grace"));
    assert_eq!(name(message.cc(), 0).as_deref(), Some("何"));
    assert!(message.bcc().is_none(), "nobody sees who else got it");
    assert_eq!(
        message.body_text(0).unwrap(),
        "Liebe Grüße\r\nvom .\r\n.\r\nPunkt"
    );
    assert_eq!(message.body_html(0).unwrap(), "<p>Liebe Grüße 👋</p>");
    assert!(letter.bytes.is_ascii(), "any server takes it");
    assert!(
        letter
            .bytes
            .split(|byte| *byte == b'\n')
            .all(|line| line.len() <= 999)
    );
    let to: Vec<&str> = letter.envelope.to().iter().map(AsRef::as_ref).collect();
    assert_eq!(
        to,
        [
            "joerg@example.com",
            "ada@example.com",
            "grace@example.com",
            "he@example.com",
            "hidden@example.com"
        ]
    );
}

#[test]
fn it_is_the_same_however_often_it_is_sent() {
    let parameters = json!({ "from": "a@example.com", "to": "b@example.com", "text": "x" });
    let (one, two) = (written(parameters.clone()), written(parameters.clone()));
    assert_eq!(one.bytes, two.bytes);
    assert_eq!(one.message_id, two.message_id);
    assert!(one.message_id.ends_with("@example.com>"), "{}", one.message_id);
    assert_eq!(read(&one).date().unwrap().to_timestamp(), 1_750_000_000);
    let of_zurich = written(json!({ "from": "a@zürich.example.com", "to": "b@example.com" }));
    assert!(
        of_zurich.message_id.ends_with("@xn--zrich-kva.example.com>"),
        "{}",
        of_zurich.message_id
    );
    let email = Email::read(parameters.as_object().unwrap()).unwrap();
    let other = Identity {
        key: "run_1-1-5",
        ..IDENTITY
    };
    assert_ne!(email.write(&other, None).unwrap().message_id, one.message_id);
}

#[test]
fn files_arrive_beside_the_text_and_inside_the_html() {
    let letter = written(json!({
        "from": "a@example.com", "to": "b@example.com", "html": "<img src=\"cid:logo\">",
        "attachments": [
            { "filename": "Größe.pdf", "mimeType": "application/pdf", "base64": "JVBERi0x\nLjQ=" },
            { "filename": "logo.png", "mimeType": "image/png", "base64": "iVBORw==", "contentId": "logo" },
            { "filename": "rows.csv", "text": "a;b\nä;ö\n", "mimeType": "text/csv; charset=utf-8" },
        ],
    }));
    let message = read(&letter);
    let attached: Vec<_> = message.attachments().collect();
    let find = |name: &str| {
        *attached
            .iter()
            .find(|file| file.attachment_name() == Some(name))
            .unwrap()
    };
    assert_eq!(find("Größe.pdf").contents(), b"%PDF-1.4");
    assert_eq!(find("rows.csv").contents(), "a;b\nä;ö\n".as_bytes());
    assert_eq!(find("logo.png").content_id(), Some("logo"));
    assert_eq!(message.body_html(0).unwrap(), "<img src=\"cid:logo\">");
}

#[test]
fn own_headers_and_what_is_answered() {
    let letter = written(json!({
        "from": "a@example.com", "to": "b@example.com", "inReplyTo": "<1@example.com>",
        "headers": { "X-Order": 7, "List-Unsubscribe": "<mailto:off@example.com>", "X-Über": null, "X-Word": "Grüße" },
    }));
    let message = read(&letter);
    assert_eq!(message.in_reply_to().as_text(), Some("1@example.com"));
    assert_eq!(message.references().as_text(), Some("1@example.com"));
    let text = String::from_utf8(letter.bytes.clone()).unwrap();
    assert!(text.contains("\r\nX-Order: 7\r\n"), "{text}");
    assert!(text.contains("\r\nX-Word: =?utf-8?"), "{text}");
}

#[test]
fn what_is_no_text_reads_like_one_and_the_connection_names_a_sender() {
    let parameters = json!({ "to": "b@example.com", "from": null, "subject": 7, "text": true });
    let email = Email::read(parameters.as_object().unwrap()).unwrap();
    let letter = email.write(&IDENTITY, Some("Shop <shop@example.com>")).unwrap();
    let message = read(&letter);
    assert_eq!(
        (message.subject(), message.body_text(0).unwrap().trim()),
        (Some("7"), "true")
    );
    assert_eq!(letter.envelope.from().unwrap().to_string(), "shop@example.com");
}

#[test]
fn nothing_begins_another_header_or_command() {
    let letter = written(json!({
        "from": "a@example.com", "to": "b@example.com", "subject": "Hello\r\nBcc: evil@example.com\n\nBody",
    }));
    let message = read(&letter);
    assert_eq!(message.subject(), Some("Hello Bcc: evil@example.com Body"));
    assert!(message.bcc().is_none());
    let with = |name: &str, value: Value| {
        let mut parameters = json!({ "from": "a@example.com", "to": "b@example.com" });
        parameters[name] = value;
        write(parameters).map(|letter| letter.message_id)
    };
    for (name, value) in [
        ("from", json!("a@example.com>\r\nRCPT TO:<evil@example.com")),
        ("from", json!("A\r\nBcc: e@x.org <a@example.com>")),
        (
            "to",
            json!([{ "name": "B\nBcc: e@x.org", "address": "b@example.com" }]),
        ),
        (
            "to",
            json!([{ "address": "\"b\r\nRCPT TO:<e@x.org>\"@example.com" }]),
        ),
        ("to", json!("\"b c\"@example.com")),
        ("cc", json!("nobody")),
        ("replyTo", json!("x@example.com\nBcc: e@x.org")),
        ("inReplyTo", json!("<1@x>\r\nBcc: e@x.org")),
        ("headers", json!({ "X-A": "1\r\nBcc: e@x.org" })),
        ("headers", json!({ "X-A:\r\nBcc": "e@x.org" })),
        ("headers", json!({ "X A": "1" })),
        ("headers", json!({ "BCC": "e@x.org" })),
        ("headers", json!({ "Content-Type": "text/html" })),
        ("headers", json!({ "X-List": [1] })),
        ("attachments", json!([{ "filename": "a\r\nX-B: 1", "text": "" }])),
        (
            "attachments",
            json!([{ "filename": "a", "text": "", "contentId": "1>\r\nX-B: 1" }]),
        ),
        (
            "attachments",
            json!([{ "filename": "a", "text": "", "mimeType": "text/plain\r\nX-B: 1" }]),
        ),
    ] {
        let refused = with(name, value.clone());
        assert!(refused.is_err(), "{name} {value}: {refused:?}");
    }
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    for (parameters, says) in [
        (json!({ "to": "b@example.com" }), "from is required"),
        (
            json!({ "from": "a@example.com, b@example.com", "to": "b@example.com" }),
            "from must be one address",
        ),
        (
            json!({ "from": "a@example.com", "to": "b@example.com", "text": [1] }),
            "text: it must be a text",
        ),
        (json!({ "from": "a@example.com" }), "must name somebody"),
        (json!({ "from": "a@example.com", "to": "" }), "must name somebody"),
        (
            json!({ "from": "a@example.com", "to": vec!["x@example.com"; 2], "cc": (0..100).map(|n| format!("c{n}@example.com")).collect::<Vec<_>>() }),
            "has 101 recipients",
        ),
        (
            json!({ "from": "a@example.com", "to": "b@example.com", "attachments": [{ "filename": "f", "base64": "%" }] }),
            "f is not Base64",
        ),
        (
            json!({ "from": "a@example.com", "to": "b@example.com", "attachments": [{ "filename": "f" }] }),
            "f needs base64 or text",
        ),
        (
            json!({ "from": "a@example.com", "to": "b@example.com", "attachments": [{ "filename": "f", "text": "", "mimeType": "word" }] }),
            "is no MIME type",
        ),
        (
            json!({ "from": "a@example.com", "to": "b@example.com", "surprise": 1 }),
            "unknown field",
        ),
    ] {
        let problem = write(parameters).unwrap_err();
        assert!(problem.contains(says), "{problem} has not {says}");
    }
}
