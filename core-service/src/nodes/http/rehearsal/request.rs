//! Whether a request is the one that a test expects.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use serde_json::{Value, json};
use url::Url;

use crate::connectors::{Grant, Trial, TrialRequest};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// A request as it is sent.
pub(super) struct Sent<'a> {
    pub(super) method: &'a Method,
    /// Where to, with what the connection adds.
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// The headers by which a connection proves itself: all that it adds, and those that the test names.
pub(super) struct Proof<'a> {
    added: Vec<&'a HeaderName>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Proof<'a> {
    pub(super) fn of(trial: &'a Trial, grant: Option<&'a Grant>) -> Self {
        let added = grant.into_iter().flat_map(|grant| &grant.secrets.headers);
        let named = trial.connection.iter().flat_map(|used| &used.headers);
        Self {
            added: added.map(|(name, _)| name).collect(),
            named: named
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
        }
    }
}

/// Compares a request with the one that is expected. Says what differs.
pub(super) fn check(sent: &Sent<'_>, expected: &TrialRequest, proof: &Proof<'_>) -> Result<(), String> {
    let mut wrong = Differences::default();
    let (method, path) = (sent.method.as_str(), sent.url.path());
    wrong.unless_equal("the method", method, &expected.method);
    wrong.unless_equal("the path", path, &expected.path);
    if let Some(host) = &expected.host {
        wrong.unless_equal("the host", sent.url.host_str().unwrap_or_default(), host);
    }
    let query = query(sent.url);
    wrong.unless_equal(
        "the query",
        &query.to_string(),
        &json!(expected.query).to_string(),
    );
    check_headers(sent, expected, proof, &mut wrong);
    let (body, wanted) = (body(sent), expected.body.clone().unwrap_or_default());
    if body != wanted {
        wrong.add("the body", &body, &wanted);
    }
    wrong.told()
}

fn check_headers(sent: &Sent<'_>, expected: &TrialRequest, proof: &Proof<'_>, wrong: &mut Differences) {
    let own = expected.headers.iter();
    let mut named = proof.named.clone();
    named.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
    for (name, wanted) in &named {
        let found = header(sent, name).unwrap_or_else(|| "absent".to_owned());
        wrong.unless_equal(&format!("the header {name}"), &found, wanted);
    }
    for name in &proof.added {
        let is_named = named
            .keys()
            .any(|named| named.eq_ignore_ascii_case(name.as_str()));
        let found = header(sent, name.as_str()).filter(|_| !is_named);
        if let Some(found) = found {
            wrong.say(&format!(
                "the header {name} is {found}, and the test does not name it"
            ));
        }
    }
    if !sent.body.is_empty() && !named.contains_key(CONTENT_TYPE.as_str()) {
        wrong.unless_equal("the content type", &content_type(sent), JSON);
    }
}

/// What is not as expected.
#[derive(Default)]
struct Differences(String);

impl Differences {
    fn unless_equal(&mut self, what: &str, found: &str, wanted: &str) {
        if found != wanted {
            self.add(what, &found, &wanted);
        }
    }

    fn add(&mut self, what: &str, found: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display) {
        let _ = write!(self.0, "{what} is {found}\n  and not {wanted}; ");
    }

    fn say(&mut self, text: &str) {
        let _ = write!(self.0, "{text}; ");
    }

    fn told(self) -> Result<(), String> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.0.trim_end_matches("; ").to_owned()),
        }
    }
}

/// The texts by name; a list of those that share one.
fn query(url: &Url) -> Value {
    gathered(
        url.query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned())),
    )
}

pub(super) fn gathered(pairs: impl Iterator<Item = (String, String)>) -> Value {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in pairs {
        found.entry(name).or_default().push(value);
    }
    let shown = found.into_iter().map(|(name, mut values)| {
        let value = match values.len() {
            1 => json!(values.remove(0)),
            _ => json!(values),
        };
        (name, value)
    });
    Value::Object(shown.collect())
}

fn header(sent: &Sent<'_>, name: &str) -> Option<String> {
    let value = sent.headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn content_type(sent: &Sent<'_>) -> String {
    header(sent, CONTENT_TYPE.as_str()).unwrap_or_default()
}

fn body(sent: &Sent<'_>) -> Value {
    if sent.body.is_empty() {
        return Value::Null;
    }
    match content_type(sent).as_str() {
        FORM => gathered(form_urlencoded::parse(sent.body).map(|(name, value)| (name.into(), value.into()))),
        _ => serde_json::from_slice(sent.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(sent.body).into_owned())),
    }
}
