//! Ids, names and texts for people, made of what a document calls things.

use std::collections::HashSet;

/// The longest id.
const LONGEST_ID: usize = 60;

/// An id: lower-case letters, digits and underscores. Words that are written together are parted.
pub(super) fn id(text: &str) -> String {
    let mut id = String::new();
    let mut before = ' ';
    for character in text.chars() {
        let begins_word =
            character.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if (begins_word || !character.is_ascii_alphanumeric()) && !id.is_empty() && !id.ends_with('_') {
            id.push('_');
        }
        if character.is_ascii_alphanumeric() {
            id.push(character.to_ascii_lowercase());
        }
        before = character;
    }
    id.truncate(LONGEST_ID);
    id.trim_end_matches('_').to_owned()
}

/// A name that templates can reach for: letters, digits and underscores.
pub(super) fn variable(text: &str) -> String {
    let part = |character: char| match character.is_ascii_alphanumeric() {
        true => character,
        false => '_',
    };
    let name: String = text.chars().take(LONGEST_ID).map(part).collect();
    let name = name.trim_matches('_');
    match name.chars().next() {
        None => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name.to_owned(),
    }
}

/// A name for people: `petId` is `Pet id`.
pub(super) fn label(text: &str) -> String {
    let words = id(text).replace('_', " ");
    let mut characters = words.chars();
    match characters.next() {
        None => short(text, LONGEST_ID),
        Some(first) => first.to_uppercase().chain(characters).collect(),
    }
}

/// A text on one line, of at most so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => {
            let kept: String = line.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

/// A text in the place of a template, without being one.
pub(super) fn literal(text: &str) -> String {
    text.replace("{{", "\\{{")
}

/// Names that are given once.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// This name, or with a number when it is taken.
    pub(super) fn unique(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}
