//! What a credential still lacks, and what a person types to finish it.
//!
//! Absent on purpose: the page that asks (`pages::connect`).

use std::collections::HashMap;

use serde_json::Map;

use super::connection::{Connection, ConnectionData};
use super::field::{Field, FieldProblem};

/// How much a field is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need<'a> {
    /// Nothing works without it.
    Required,
    /// One of several; these are the labels of the others.
    OneOf(Vec<&'a str>),
    /// It may stay empty.
    Optional,
}

impl Connection {
    /// The required fields that have no value.
    pub fn missing(&self, data: &ConnectionData) -> Vec<&Field> {
        let is_missing = |field: &&Field| is_required(field) && !data.has(&field.name);
        self.fields.iter().filter(is_missing).collect()
    }

    /// Whether nothing is missing that it needs.
    pub fn is_complete(&self, data: &ConnectionData) -> bool {
        self.missing(data).is_empty() && self.has_one(data)
    }

    /// What a person is asked for: what is missing, and every secret that is not known yet.
    pub fn asked(&self, data: &ConnectionData) -> Vec<&Field> {
        let is_asked = |field: &&Field| (field.secret || is_required(field)) && !data.has(&field.name);
        self.fields.iter().filter(is_asked).collect()
    }

    /// How much one of the fields that are asked for is needed.
    pub fn need(&self, field: &Field, data: &ConnectionData) -> Need<'_> {
        let is_of_these = |name: &String| *name == field.name;
        if is_required(field) {
            return Need::Required;
        }
        match !self.has_one(data) && self.needs_one_of.iter().any(is_of_these) {
            true => Need::OneOf(self.alternatives(&field.name)),
            false => Need::Optional,
        }
    }

    /// Reads what a person typed into a form for what is asked; what is blank is as it was typed before.
    ///
    /// # Errors
    /// With everything that is wrong or missing.
    pub fn read_form(
        &self,
        stored: &ConnectionData,
        form: &HashMap<String, String>,
        before: &ConnectionData,
    ) -> Result<ConnectionData, Vec<FieldProblem>> {
        let (mut data, mut problems) = (Map::new(), Vec::new());
        for field in self.asked(stored) {
            match field.typed(form.get(&field.name).map_or("", String::as_str)) {
                Ok(Some(value)) => drop(data.insert(field.name.clone(), value)),
                Ok(None) => match before.0.get(&field.name) {
                    Some(value) => drop(data.insert(field.name.clone(), value.clone())),
                    None if is_required(field) => problems.push(field.problem("is required")),
                    None => {}
                },
                Err(problem) => problems.push(problem),
            }
        }
        let data = ConnectionData(data);
        if problems.is_empty() && !self.has_one(stored) && !self.has_one(&data) {
            problems.extend(self.needed());
        }
        match problems.is_empty() {
            true => Ok(data),
            false => Err(problems),
        }
    }

    /// Whether one of the fields is there of which one is needed.
    fn has_one(&self, data: &ConnectionData) -> bool {
        self.needs_one_of.is_empty() || self.needs_one_of.iter().any(|name| data.has(name))
    }

    /// The problem of a form that has none of the fields of which one is needed.
    fn needed(&self) -> Option<FieldProblem> {
        let name = self.needs_one_of.first()?;
        let others = self.alternatives(name).join(" or ");
        Some(FieldProblem {
            name: name.clone(),
            message: format!("or {others} is required"),
        })
    }

    /// The labels of the fields that may take a field's place.
    pub(super) fn alternatives(&self, name: &str) -> Vec<&str> {
        let is_other = |field: &&Field| field.name != name && self.needs_one_of.contains(&field.name);
        let others = self.fields.iter().filter(is_other);
        others.map(|field| field.label.as_str()).collect()
    }
}

fn is_required(field: &Field) -> bool {
    field.required && field.default.is_none()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};

    use super::*;
    use crate::connectors::App;

    /// An app with a connection that needs one of two secrets, or what is wrong with it.
    fn with_two_secrets(needs_one_of: &str) -> Result<App, String> {
        let app = App::read(&format!(
            "manifest: 1
id: door
name: Door
driver: sftp
connections:
  - id: server
    label: Server
    type: server
    needsOneOf: {needs_one_of}
    fields:
      - {{ name: host, label: Host, type: text, required: true }}
      - {{ name: password, label: Password, type: text, secret: true }}
      - {{ name: privateKey, label: Private key, type: text, secret: true }}
      - {{ name: passphrase, label: Passphrase, type: text, secret: true }}
"
        ));
        app.map_err(|error| error.to_string())
    }

    #[test]
    fn one_of_several_secrets_is_needed() {
        let app = with_two_secrets("[password, privateKey]").unwrap();
        let door = app.connection("server").unwrap();
        let data = |given: Value| door.read(given.as_object().unwrap().clone()).ok().unwrap();
        let known = data(json!({ "host": "a.test" }));
        assert!(!door.is_complete(&known));
        assert!(!door.is_complete(&data(json!({ "host": "a.test", "passphrase": "x" }))));
        assert!(door.is_complete(&data(json!({ "host": "a.test", "privateKey": "x" }))));
        let asked = door.asked(&known);
        let needs: Vec<_> = asked
            .iter()
            .map(|field| (field.name.as_str(), door.need(field, &known)))
            .collect();
        assert_eq!(
            needs,
            [
                ("password", Need::OneOf(vec!["Private key"])),
                ("privateKey", Need::OneOf(vec!["Password"])),
                ("passphrase", Need::Optional),
            ]
        );
        let typed = |form: &[(&str, &str)], before: &ConnectionData| {
            let form = form
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            door.read_form(&known, &form.collect(), before)
                .map(|typed| door.is_complete(&known.clone().extended(typed)))
                .map_err(|problems| problems[0].name.clone())
        };
        let nothing = ConnectionData::default();
        assert_eq!(
            typed(&[("passphrase", "x")], &nothing),
            Err("password".to_owned())
        );
        assert_eq!(typed(&[("privateKey", "x")], &nothing), Ok(true));
        assert_eq!(typed(&[], &data(json!({ "password": "typed before" }))), Ok(true));
    }

    #[test]
    fn what_one_is_needed_of_are_secrets_that_may_be_left_out() {
        for (names, says) in [
            ("[password]", "two fields or more"),
            ("[password, host]", "host is no secret field"),
            ("[password, other]", "other is no secret field"),
            ("[password, password]", "twice"),
        ] {
            let wrong = with_two_secrets(names).err().unwrap();
            assert!(wrong.contains("needsOneOf") && wrong.contains(says), "{wrong}");
        }
    }
}
