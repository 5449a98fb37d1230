//! Addresses of people as parameters give them: a text with one or several, a list, or objects with name and address.

use lettre::Address;
use lettre::message::{Mailbox, Mailboxes};
use serde::Deserialize;

/// Addresses that have not been read yet.
#[derive(Default, Deserialize)]
#[serde(untagged)]
pub(super) enum Addresses {
    /// `Ada <ada@example.com>, grace@example.com`
    Text(String),
    /// Each by itself.
    List(Vec<Entry>),
    /// One, in two parts.
    Entry(Named),
    /// Nobody.
    #[default]
    None,
}

/// An entry of a list.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Entry {
    /// As a text may be.
    Text(String),
    /// In two parts.
    Named(Named),
}

/// An address and whose it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    #[serde(default)]
    name: Option<String>,
    address: String,
}

impl Addresses {
    /// Those in it.
    ///
    /// # Errors
    /// When something in it is no address, after the parameter's name.
    pub(super) fn read(&self, parameter: &str) -> Result<Vec<Mailbox>, String> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Text(text) => read_text(parameter, text),
            Self::Entry(named) => named.read(parameter).map(|one| vec![one]),
            Self::List(entries) => {
                let read = entries.iter().map(|entry| match entry {
                    Entry::Text(text) => read_text(parameter, text),
                    Entry::Named(named) => named.read(parameter).map(|one| vec![one]),
                });
                Ok(read.collect::<Result<Vec<_>, _>>()?.concat())
            }
        }
    }

    /// The one in it, if any.
    ///
    /// # Errors
    /// As [`Self::read`], and when there are several.
    pub(super) fn single(&self, parameter: &str) -> Result<Option<Mailbox>, String> {
        let mut read = self.read(parameter)?;
        match read.len() {
            0 | 1 => Ok(read.pop()),
            _ => Err(format!("{parameter} must be one address")),
        }
    }
}

impl Named {
    fn read(&self, parameter: &str) -> Result<Mailbox, String> {
        let name = self
            .name
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        check(parameter, name.unwrap_or_default())?;
        let address = self.address.trim();
        let read = address.parse::<Address>().ok().filter(|_| is_plain(address));
        let read = read.ok_or_else(|| refusal(parameter, address))?;
        Ok(Mailbox::new(name.map(str::to_owned), read))
    }
}

fn read_text(parameter: &str, text: &str) -> Result<Vec<Mailbox>, String> {
    let text = text.trim().trim_end_matches(',');
    if text.is_empty() {
        return Ok(Vec::new());
    }
    check(parameter, text)?;
    let read = text.parse::<Mailboxes>().map_err(|_| refusal(parameter, text))?;
    let read: Vec<Mailbox> = read.into_iter().collect();
    match read.iter().all(|one| is_plain(one.email.as_ref())) {
        true => Ok(read),
        false => Err(refusal(parameter, text)),
    }
}

/// Whether an address can stand in a command of SMTP as it is.
fn is_plain(address: &str) -> bool {
    !address.contains(|c: char| c.is_control() || c.is_whitespace() || c == '<' || c == '>')
}

fn check(parameter: &str, text: &str) -> Result<(), String> {
    match text.chars().any(char::is_control) {
        true => Err(format!(
            "{parameter} must not hold line breaks or other control characters"
        )),
        false => Ok(()),
    }
}

fn refusal(parameter: &str, text: &str) -> String {
    format!(
        "{parameter}: {text:?} is no address such as ada@example.com or \"Lovelace, Ada\" <ada@example.com>; several are parted by commas"
    )
}
