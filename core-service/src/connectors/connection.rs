//! Ways to connect: what a credential has to say, and what it adds to requests.

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::field::{Field, FieldProblem};
use super::manifest::with_defaults;
use super::template::{Reach, Template, TemplateError};
use crate::outbound::Secrets;
use crate::secret::Secret;

/// One way to connect to an app.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connection {
    /// Its id within the app.
    pub id: String,
    /// Its name.
    pub label: String,
    /// What kind of way it is, such as `api_key`; `none` needs nothing.
    #[serde(rename = "type")]
    pub connection_type: String,
    /// What it needs to know.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// What it adds to requests.
    #[serde(default)]
    apply: Vec<Addition>,
    /// How a credential is tested.
    #[serde(default)]
    verify: Option<Verify>,
}

/// One thing that a connection adds to requests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Addition {
    /// `header` or `query`.
    to: Template,
    name: Template,
    value: Template,
}

/// A request that tells whether a credential is right.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Verify {
    /// Where it goes; empty for nowhere.
    url: Template,
}

/// The values of a connection's fields. Neither shown nor logged.
#[derive(Clone, Default)]
pub struct ConnectionData(Map<String, Value>);

/// What a credential adds to one request, and what must not be seen in the answer.
pub struct Grant {
    /// What is added.
    pub secrets: Secrets,
    /// Texts to be masked wherever they turn up.
    pub hidden: Vec<Secret>,
}

/// Data that cannot be put into a request.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// A template of the manifest.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// It gives no header or parameter.
    #[error("the credential gives no valid header")]
    Header,
    /// It goes to a place that does not exist.
    #[error("the credential would go to neither a header nor the query")]
    Place,
}

impl ConnectionData {
    /// Reads what [`ConnectionData::to_secret`] gave.
    pub fn from_secret(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok().map(Self)
    }

    /// The form that is sealed and stored.
    pub fn to_secret(&self) -> Secret {
        Secret::from(Value::Object(self.0.clone()).to_string())
    }

    /// With these values, which win.
    #[must_use]
    pub fn extended(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl Connection {
    /// Checks values given by name. A null is a value that is not given.
    ///
    /// # Errors
    /// With everything that is wrong.
    pub fn read(&self, given: Map<String, Value>) -> Result<ConnectionData, Vec<FieldProblem>> {
        let (mut data, mut problems) = (Map::new(), Vec::new());
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let field = self.fields.iter().find(|field| field.name == name);
            match field.map(|field| field.check(&value)) {
                Some(Ok(())) => {
                    data.insert(name, value);
                }
                Some(Err(problem)) => problems.push(problem),
                None => problems.push(FieldProblem {
                    message: self.unknown_field(),
                    name,
                }),
            }
        }
        match problems.is_empty() {
            true => Ok(ConnectionData(data)),
            false => Err(problems),
        }
    }

    /// Reads what a person typed into a form for these fields; what is blank is not given.
    ///
    /// # Errors
    /// With everything that is wrong or missing.
    pub fn read_form(
        &self,
        fields: &[&Field],
        form: &HashMap<String, String>,
    ) -> Result<ConnectionData, Vec<FieldProblem>> {
        let (mut data, mut problems) = (Map::new(), Vec::new());
        for field in fields {
            match field.typed(form.get(&field.name).map_or("", String::as_str)) {
                Ok(Some(value)) => {
                    data.insert(field.name.clone(), value);
                }
                Ok(None) => problems.push(field.problem("is required")),
                Err(problem) => problems.push(problem),
            }
        }
        match problems.is_empty() {
            true => Ok(ConnectionData(data)),
            false => Err(problems),
        }
    }

    /// The required fields that have no value.
    pub fn missing(&self, data: &ConnectionData) -> Vec<&Field> {
        let is_missing =
            |field: &&Field| field.required && field.default.is_none() && !data.0.contains_key(&field.name);
        self.fields.iter().filter(is_missing).collect()
    }

    /// What a credential adds to requests.
    ///
    /// # Errors
    /// When that is nothing a request can hold.
    pub fn grant(&self, data: &ConnectionData) -> Result<Grant, GrantError> {
        let values = with_defaults(&self.fields, &data.0);
        let mut reach = Reach::new();
        reach.connection = Some(&values);
        let mut secrets = Secrets::default();
        let mut hidden = self.secret_texts(data);
        for addition in &self.apply {
            let (name, value) = (addition.name.text(&reach)?, addition.value.text(&reach)?);
            match addition.to.text(&reach)?.as_str() {
                "header" => {
                    let header = HeaderName::try_from(&name).map_err(|_| GrantError::Header)?;
                    let mut content =
                        HeaderValue::from_bytes(value.as_bytes()).map_err(|_| GrantError::Header)?;
                    content.set_sensitive(true);
                    secrets.headers.push((header, content));
                    // Of `Basic dXNlcg==`, the second word tells all.
                    hidden.extend(
                        value
                            .rsplit_once(' ')
                            .map(|(_, word)| Secret::from(word.to_owned())),
                    );
                }
                "query" => secrets.query.push((name, Secret::from(value.clone()))),
                _ => return Err(GrantError::Place),
            }
            hidden.push(Secret::from(value));
        }
        Ok(Grant { secrets, hidden })
    }

    /// The URL whose answer tells whether a credential is right, if it has one.
    ///
    /// # Errors
    /// When the manifest's template gives no URL.
    pub fn verify_url(&self, data: &ConnectionData) -> Result<Option<Url>, TemplateError> {
        let Some(verify) = &self.verify else {
            return Ok(None);
        };
        let values = self.public(data);
        let mut reach = Reach::new();
        reach.connection = Some(&values);
        match verify.url.text(&reach)?.as_str() {
            "" => Ok(None),
            text => {
                let url = Url::parse(text);
                url.map(Some)
                    .map_err(|_| TemplateError::new("the URL for verifying is not one"))
            }
        }
    }

    /// The values that are not secret.
    pub(super) fn public(&self, data: &ConnectionData) -> Value {
        let mut values = with_defaults(&self.fields, &data.0);
        if let Value::Object(values) = &mut values {
            values.retain(|name, _| {
                self.fields
                    .iter()
                    .any(|field| field.name == *name && !field.secret)
            });
        }
        values
    }

    fn secret_texts(&self, data: &ConnectionData) -> Vec<Secret> {
        let secret = self.fields.iter().filter(|field| field.secret);
        let values = secret.filter_map(|field| data.0.get(&field.name));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        values.map(text).map(Secret::from).collect()
    }

    fn unknown_field(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        match names.is_empty() {
            true => format!("is not known; the connection {} takes nothing", self.id),
            false => format!(
                "is not known; the connection {} takes {}",
                self.id,
                names.join(", ")
            ),
        }
    }
}
