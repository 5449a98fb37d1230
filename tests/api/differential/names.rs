//! What a world calls its things, and the names that all worlds share for them.
//!
//! Ids, cursors and hashes are numbered in the order in which a world shows them: `wf#0` is its first workflow. Worlds
//! that behave alike agree on these names, so operations are written with them, and answers are compared in them.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// Ids, hashes, the tokens of invitations, and a clock's milliseconds, wherever they stand in a text.
static ACTUAL: LazyLock<Regex> = LazyLock::new(|| {
    let id = r"\b(?<kind>[a-z]+)_[0-9a-z]{26}\b";
    let hash = r"\b(?<hash>[0-9a-f]{64})\b";
    let token = r"(?<token>/invite/[\w-]+)";
    let time = r"\b(?<time>[12]\d{12})\b";
    Regex::new(&format!("{id}|{hash}|{token}|{time}")).unwrap()
});
/// `wf#2`: the third workflow; counted round when there are fewer.
static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b([a-z]+)#(\d+)").unwrap());
/// `wf#2@1`: the last but one `updatedAt` that was seen of the third workflow.
static STAMP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^([a-z]+#\d+)@(\d+)$").unwrap());
/// A clock's times are of this century; operations name those of others.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^20\d\d-\d\d-\d\dT[\d:.]+Z$").unwrap());
const CLOCK_MS: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;

/// The names of one world.
pub(crate) struct Names {
    base_url: String,
    by_actual: HashMap<String, String>,
    /// What there is of each kind, in the order of first appearance.
    by_kind: HashMap<String, Vec<String>>,
    /// The values of `updatedAt` that were seen of each workflow.
    stamps: HashMap<String, Vec<i64>>,
}

impl Names {
    pub(crate) fn new(base_url: String) -> Self {
        Self {
            base_url,
            by_actual: HashMap::new(),
            by_kind: HashMap::new(),
            stamps: HashMap::new(),
        }
    }

    /// The names of all things of a kind.
    pub(crate) fn all(&self, kind: &str) -> Vec<String> {
        let count = self.by_kind.get(kind).map_or(0, Vec::len);
        (0..count).map(|number| format!("{kind}#{number}")).collect()
    }

    /// What this world calls the things that a text names; what there is none of stays as it is, and is unknown.
    pub(crate) fn actual_text(&self, text: &str) -> String {
        let replaced = NAME.replace_all(text, |found: &Captures<'_>| {
            self.find(&found[1], &found[2])
                .cloned()
                .unwrap_or_else(|| found[0].to_owned())
        });
        replaced.into_owned()
    }

    fn find(&self, kind: &str, number: &str) -> Option<&String> {
        let known = self.by_kind.get(kind).filter(|known| !known.is_empty())?;
        known.get(number.parse::<usize>().ok()? % known.len())
    }

    /// As [`Names::actual_text`] for a body.
    pub(crate) fn actual(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match STAMP.captures(text) {
                Some(found) => self.stamp(&self.actual_text(&found[1]), &found[2]).into(),
                None => self.actual_text(text).into(),
            },
            Value::Array(items) => items.iter().map(|item| self.actual(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| (key.clone(), self.actual(value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// A time of a thing, counted from the latest back; one that never was when there is none.
    fn stamp(&self, id: &str, back: &str) -> i64 {
        let stamps = self.stamps.get(id).map_or(&[][..], Vec::as_slice);
        let back: usize = back.parse().unwrap();
        let place = stamps.len().checked_sub(1 + back);
        place.map_or(1, |place| stamps[place])
    }

    /// An answer in the names that all worlds share. `subject` is what the call was about.
    pub(crate) fn shared(&mut self, value: &Value, subject: &str) -> Value {
        match value {
            Value::String(text) => self.shared_text(text).into(),
            Value::Number(number) if is_clock(number) => "a time".into(),
            Value::Array(items) => items.iter().map(|item| self.shared(item, subject)).collect(),
            Value::Object(members) => {
                let id = members.get("id").and_then(Value::as_str);
                let subject = id.unwrap_or(subject);
                let mut members: Vec<_> = members.iter().collect();
                // Free-form objects have no order of their own.
                members.sort_by_key(|(key, _)| *key);
                let shared = members.into_iter().map(|(key, value)| {
                    let shared = self.shared_member(key, value, subject);
                    (self.shared_text(key), shared)
                });
                shared.collect()
            }
            other => other.clone(),
        }
    }

    fn shared_member(&mut self, key: &str, value: &Value, subject: &str) -> Value {
        match (key, value) {
            (_, Value::Null) => Value::Null,
            ("durationMs" | "requestId", _) => format!("a {key}").into(),
            ("next_cursor", Value::String(cursor)) => self.name("cursor", cursor).into(),
            ("updatedAt", Value::Number(time)) if subject.starts_with("wf_") => {
                self.shared_stamp(subject, time.as_i64().unwrap()).into()
            }
            _ => self.shared(value, subject),
        }
    }

    fn shared_stamp(&mut self, workflow: &str, time: i64) -> String {
        let name = self.name("wf", workflow);
        let seen = self.stamps.entry(workflow.to_owned()).or_default();
        let place = seen.iter().position(|stamp| *stamp == time).unwrap_or_else(|| {
            seen.push(time);
            seen.len() - 1
        });
        format!("time {place} of {name}")
    }

    fn shared_text(&mut self, text: &str) -> String {
        if CLOCK.is_match(text) {
            return "a time".to_owned();
        }
        let text = text.replace(&self.base_url, "base-url:");
        let replaced = ACTUAL.replace_all(&text, |found: &Captures<'_>| {
            if found.name("time").is_some() {
                return "a time".to_owned();
            }
            let kind = found.name("kind").map(|kind| kind.as_str());
            let kind = kind.or_else(|| found.name("hash").map(|_| "hash"));
            self.name(kind.unwrap_or("token"), &found[0])
        });
        replaced.into_owned()
    }

    fn name(&mut self, kind: &str, actual: &str) -> String {
        if let Some(name) = self.by_actual.get(actual) {
            return name.clone();
        }
        let known = self.by_kind.entry(kind.to_owned()).or_default();
        let name = format!("{kind}#{}", known.len());
        known.push(actual.to_owned());
        self.by_actual.insert(actual.to_owned(), name.clone());
        name
    }
}

fn is_clock(number: &serde_json::Number) -> bool {
    number.as_i64().is_some_and(|number| CLOCK_MS.contains(&number))
}
