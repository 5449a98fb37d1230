//! An e-mail made of a node's parameters: its envelope, and its text as RFC 5322 and MIME want it.
//!
//! Nothing that a parameter holds can begin another header: line breaks in a subject become spaces, and anywhere else
//! in a header they are refused. Absent on purpose: sending it (`conversation`).

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue, InReplyTo, References};
use lettre::message::{MultiPart, SinglePart};
use lettre::{Address, Message};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use url::Host;

use super::addresses::Addresses;
use super::attachment::Attached;

/// The most recipients of one e-mail: as many as every server takes (RFC 5321, 4.5.3.1.8).
const MOST_RECIPIENTS: usize = 100;
/// What is a header's own field, or is written by the message itself.
const TAKEN: [&str; 13] = [
    "from",
    "sender",
    "to",
    "cc",
    "bcc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "in-reply-to",
    "references",
    "return-path",
];

/// The parameters of an e-mail.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Email {
    from: Addresses,
    to: Addresses,
    cc: Addresses,
    bcc: Addresses,
    reply_to: Addresses,
    #[serde(deserialize_with = "written")]
    subject: Option<String>,
    #[serde(deserialize_with = "written")]
    text: Option<String>,
    #[serde(deserialize_with = "written")]
    html: Option<String>,
    in_reply_to: Option<String>,
    attachments: Option<Vec<Attached>>,
    headers: Option<Map<String, Value>>,
}

/// What tells one e-mail from all others.
pub(super) struct Identity<'a> {
    /// The key of the execution, the same however often it is sent.
    pub(super) key: &'a str,
    /// Its date, in epoch milliseconds.
    pub(super) at_ms: i64,
}

/// An e-mail that can be sent.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) message_id: String,
    pub(super) envelope: Envelope,
    pub(super) bytes: Vec<u8>,
}

impl Email {
    /// Reads evaluated parameters.
    ///
    /// # Errors
    /// When they are of the wrong types, as templates may give them.
    pub(super) fn read(parameters: &Map<String, Value>) -> Result<Self, String> {
        serde_path_to_error::deserialize(parameters).map_err(|error| error.to_string())
    }

    /// The e-mail, always the same bytes for the same identity but for the marks between its parts; of a usual sender when
    /// no other is given.
    ///
    /// # Errors
    /// With what is wrong with the parameters.
    pub(super) fn write(
        mut self,
        identity: &Identity<'_>,
        usual_sender: Option<&str>,
    ) -> Result<Letter, String> {
        if let (Addresses::None, Some(sender)) = (&self.from, usual_sender) {
            self.from = Addresses::Text(sender.to_owned());
        }
        let envelope = self.envelope()?;
        let from = self
            .from
            .single("from")?
            .ok_or("from is required: neither the node nor the connection names a sender")?;
        let message_id = message_id(identity.key, from.email.domain());
        let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(identity.at_ms).unwrap_or(0));
        let mut builder = Message::builder()
            .envelope(envelope.clone())
            .from(from)
            .date(at)
            .message_id(Some(message_id.clone()))
            .subject(one_line(self.subject.as_deref().unwrap_or_default()));
        for to in self.to.read("to")? {
            builder = builder.to(to);
        }
        for cc in self.cc.read("cc")? {
            builder = builder.cc(cc);
        }
        for reply_to in self.reply_to.read("replyTo")? {
            builder = builder.reply_to(reply_to);
        }
        if let Some(answered) = self.in_reply_to.filter(|id| !id.is_empty()) {
            check_line("inReplyTo", &answered)?;
            builder = builder
                .header(InReplyTo::from(answered.clone()))
                .header(References::from(answered));
        }
        for (name, value) in self.headers.into_iter().flatten() {
            if let Some(header) = own_header(&name, &value)? {
                builder = builder.raw_header(header);
            }
        }
        let body = body(self.text, self.html, self.attachments.unwrap_or_default())?;
        let message = match body {
            Part::Single(part) => builder.singlepart(part),
            Part::Multi(parts) => builder.multipart(parts),
        };
        let message = message.map_err(|error| format!("the e-mail cannot be written: {error}"))?;
        Ok(Letter {
            message_id,
            envelope,
            bytes: message.formatted(),
        })
    }

    /// Who sends it and who gets it, each once.
    fn envelope(&self) -> Result<Envelope, String> {
        let from = self
            .from
            .single("from")?
            .ok_or("from is required: neither the node nor the connection names a sender")?;
        let lists = [("to", &self.to), ("cc", &self.cc), ("bcc", &self.bcc)];
        let (mut seen, mut recipients) = (BTreeSet::new(), Vec::<Address>::new());
        for (name, addresses) in lists {
            let mailboxes = addresses.read(name)?.into_iter();
            recipients.extend(
                mailboxes
                    .map(|one| one.email)
                    .filter(|one| seen.insert(one.clone())),
            );
        }
        match recipients.len() {
            0 => Err("to, cc or bcc must name somebody".to_owned()),
            1..=MOST_RECIPIENTS => {
                Envelope::new(Some(from.email), recipients).map_err(|error| error.to_string())
            }
            number => Err(format!(
                "it has {number} recipients; one e-mail has at most {MOST_RECIPIENTS}"
            )),
        }
    }
}

/// `<…@domain>`, the same for the same key. Nobody can tell the key by it.
fn message_id(key: &str, domain: &str) -> String {
    // In ASCII, whatever letters the domain has.
    let domain = match Host::parse(domain) {
        Ok(host) => host.to_string(),
        Err(_) => domain.to_owned(),
    };
    let digest = hex::encode(Sha256::digest(key.as_bytes()));
    format!("<{}@{domain}>", &digest[..32])
}

/// What people read: a text, or what a template made of it that reads like one.
fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        value @ (Value::Bool(_) | Value::Number(_)) => Ok(Some(value.to_string())),
        Value::Array(_) | Value::Object(_) => Err(serde::de::Error::custom(
            "it must be a text; toJson and join make one of objects and lists",
        )),
    }
}

fn own_header(name: &str, value: &Value) -> Result<Option<HeaderValue>, String> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => {
            return Err(format!("headers: the value of {name} must be a text or a number"));
        }
    };
    let lower = name.to_ascii_lowercase();
    if TAKEN.contains(&lower.as_str()) || lower.starts_with("content-") {
        return Err(format!("headers: {name} is written by the e-mail itself"));
    }
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    let header = HeaderName::new_from_ascii(name.to_owned())
        .ok()
        .filter(|_| is_name);
    let header = header.ok_or_else(|| format!("headers: {name:?} is no name of a header"))?;
    check_line(&format!("headers: the value of {name}"), &text)?;
    Ok(Some(HeaderValue::new(header, text)))
}

/// The text of a header that is no address and no subject.
pub(super) fn check_line(name: &str, text: &str) -> Result<(), String> {
    match text.chars().any(char::is_control) {
        true => Err(format!(
            "{name} must not hold line breaks or other control characters"
        )),
        false => Ok(()),
    }
}

/// A text without control characters: each row of them is a space.
fn one_line(text: &str) -> String {
    let words = text.split(char::is_control).filter(|words| !words.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The body: what is written, what belongs to its HTML, and what is attached.
enum Part {
    Single(SinglePart),
    Multi(MultiPart),
}

fn body(text: Option<String>, html: Option<String>, attached: Vec<Attached>) -> Result<Part, String> {
    let files = attached
        .iter()
        .map(Attached::part)
        .collect::<Result<Vec<_>, _>>()?;
    let files = files.into_iter().zip(&attached);
    let (shown, files): (Vec<_>, Vec<_>) = files.partition(|(_, file)| file.content_id.is_some());
    let written = match (text, html) {
        (Some(text), Some(html)) => Part::Multi(MultiPart::alternative_plain_html(text, html)),
        (None, Some(html)) => Part::Single(SinglePart::html(html)),
        (text, None) => Part::Single(SinglePart::plain(text.unwrap_or_default())),
    };
    let related = joined(
        MultiPart::related,
        written,
        shown.into_iter().map(|(part, _)| part),
    );
    Ok(joined(
        MultiPart::mixed,
        related,
        files.into_iter().map(|(part, _)| part),
    ))
}

/// A part and others beside it; itself when there are none.
fn joined(
    kind: fn() -> lettre::message::MultiPartBuilder,
    first: Part,
    others: impl ExactSizeIterator<Item = SinglePart>,
) -> Part {
    if others.len() == 0 {
        return first;
    }
    let parts = match first {
        Part::Single(part) => kind().singlepart(part),
        Part::Multi(parts) => kind().multipart(parts),
    };
    Part::Multi(others.fold(parts, MultiPart::singlepart))
}

#[cfg(test)]
mod tests;
