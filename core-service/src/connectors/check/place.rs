//! What templates reach at the places of a manifest.

use std::collections::BTreeSet;

use super::Check;
use crate::connectors::template::Template;

/// What templates reach at a place.
#[derive(Clone, Default)]
pub(super) struct Place<'a> {
    /// The names.
    pub(super) names: Vec<&'static str>,
    /// What `parameters` has.
    parameters: BTreeSet<&'a str>,
    /// What `connection` has.
    pub(super) connection: BTreeSet<&'a str>,
}

impl<'a> Place<'a> {
    pub(super) fn with(&self, name: &'static str) -> Self {
        let mut place = self.clone();
        place.names.push(name);
        place
    }

    pub(super) fn of_parameters(
        parameters: impl Iterator<Item = &'a str>,
        connection: BTreeSet<&'a str>,
    ) -> Self {
        Self {
            names: vec!["parameters", "connection"],
            parameters: parameters.collect(),
            connection,
        }
    }

    pub(super) fn of_connection(connection: BTreeSet<&'a str>) -> Self {
        Self {
            names: vec!["connection"],
            parameters: BTreeSet::new(),
            connection,
        }
    }

    /// What `name` has, when that is known.
    fn fields_of(&self, name: &str) -> Option<&BTreeSet<&'a str>> {
        match name {
            "parameters" => Some(&self.parameters),
            "connection" => Some(&self.connection),
            _ => None,
        }
    }
}

impl<'a> Check<'a> {
    pub(super) fn template(&mut self, path: &str, template: Option<&'a Template>, place: &Place<'a>) {
        let Some(template) = template else { return };
        if let Some(name) = template.names().find(|name| !place.names.contains(name)) {
            let known = match place.names.is_empty() {
                true => "$item only".to_owned(),
                false => place.names.join(", "),
            };
            self.report(path, format!("{name} is not known here; there are {known}"));
            return;
        }
        for (name, field) in template.fields() {
            let Some(known) = place.fields_of(name).filter(|known| !known.contains(field)) else {
                continue;
            };
            let known: Vec<&str> = known.iter().copied().collect();
            let message = match known.is_empty() {
                true => format!("{name}.{field} is no field: there are none"),
                false => format!("{name}.{field} is no field; there are {}", known.join(", ")),
            };
            self.report(path, message);
        }
    }
}
