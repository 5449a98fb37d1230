//! An e-mail as a value: who, when, what it says, and what is attached.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{Address, DateTime, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders as _};
use serde_json::{Map, Value, json};

/// What is told of what is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attachments {
    /// Name, type and size.
    Named,
    /// The content, too.
    Whole,
}

/// An e-mail that a server gave, perhaps only its beginning.
pub(super) fn told(bytes: &[u8], attachments: Attachments) -> Map<String, Value> {
    let mut told = Map::new();
    let Some(message) = MessageParser::default().parse(bytes) else {
        return told;
    };
    let mut put = |name: &str, value: Value| told.insert(name.to_owned(), value);
    put("messageId", message.message_id().map(in_brackets).into());
    put("inReplyTo", first(message.in_reply_to()).into());
    put("from", addresses(message.from()));
    put("to", addresses(message.to()));
    put("cc", addresses(message.cc()));
    put("replyTo", addresses(message.reply_to()));
    put("subject", message.subject().into());
    put("date", message.date().map(DateTime::to_rfc3339).into());
    put("text", text(&message).into());
    let html = message.html_part(0).filter(|part| part.is_text_html());
    put("html", html.and_then(MessagePart::text_contents).into());
    let attached = message.attachments().map(|part| attachment(part, attachments));
    put("attachments", attached.collect());
    told
}

/// What was written as text; of an e-mail in HTML alone, what can be read of it.
fn text(message: &Message<'_>) -> Option<String> {
    message.body_text(0).map(|text| text.into_owned())
}

fn addresses(list: Option<&Address<'_>>) -> Value {
    let each = list.into_iter().flat_map(Address::iter);
    let shown = each.filter_map(|one| Some(json!({ "name": one.name(), "address": one.address()? })));
    shown.collect()
}

fn attachment(part: &MessagePart<'_>, attachments: Attachments) -> Value {
    let mime_type = part
        .content_type()
        .map(|content_type| match content_type.subtype() {
            Some(subtype) => format!("{}/{subtype}", content_type.ctype()),
            None => content_type.ctype().to_owned(),
        });
    let mut shown = json!({
        "filename": part.attachment_name(),
        "mimeType": mime_type,
        "size": part.contents().len(),
    });
    if attachments == Attachments::Whole {
        shown["base64"] = STANDARD.encode(part.contents()).into();
    }
    shown
}

fn first(header: &HeaderValue<'_>) -> Option<String> {
    match header {
        HeaderValue::Text(text) => Some(in_brackets(text)),
        HeaderValue::TextList(texts) => texts.first().map(|text| in_brackets(text)),
        _ => None,
    }
}

/// As it stands in headers, and as it has to be given to answer the e-mail.
fn in_brackets(id: &str) -> String {
    format!("<{id}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMAIL: &str = "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>\r\n\
        To: ada@example.com, \"Hopper, Grace\" <grace@example.com>\r\n\
        Subject: =?utf-8?b?R3LDvMOfZQ==?=\r\nMessage-ID: <1@example.com>\r\nIn-Reply-To: <0@example.com>\r\n\
        Date: Thu, 23 Jul 2026 11:05:00 +0200\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe\r\n\
        --b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQ=\r\n--b--\r\n";

    #[test]
    fn an_email_is_told() {
        let told = Value::Object(told(EMAIL.as_bytes(), Attachments::Whole));
        let expected = json!({
            "messageId": "<1@example.com>", "inReplyTo": "<0@example.com>",
            "from": [{ "name": "Jörg", "address": "joerg@example.com" }],
            "to": [{ "name": null, "address": "ada@example.com" }, { "name": "Hopper, Grace", "address": "grace@example.com" }],
            "cc": [], "replyTo": [], "subject": "Grüße", "date": "2026-07-23T11:05:00+02:00", "text": "Grüße", "html": null,
            "attachments": [{ "filename": "a.pdf", "mimeType": "application/pdf", "size": 8, "base64": "JVBERi0xLjQ=" }],
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_part_of_an_email_and_no_email_are_told_as_far_as_they_go() {
        for end in 0..EMAIL.len() {
            let _ = told(&EMAIL.as_bytes()[..end], Attachments::Named);
        }
        let part = told(&EMAIL.as_bytes()[..EMAIL.len() - 20], Attachments::Named);
        assert_eq!(
            (&part["subject"], &part["text"]),
            (&json!("Grüße"), &json!("Grüße"))
        );
        let _ = told(b"\xff\x00\r\n\r\n", Attachments::Named);
    }
}
