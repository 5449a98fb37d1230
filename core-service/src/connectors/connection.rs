//! Ways to connect: what a credential has to say, and what it adds to requests.

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::field::{Field, FieldProblem, with_defaults};
use super::request::RequestTemplate;
use super::template::{Reach, Template, TemplateError};
use super::token::{ISSUED, OAuth2, TokenExchange};
use crate::outbound::Secrets;
use crate::secret::Secret;

/// One way to connect to an app.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connection {
    /// Its id within the app.
    pub id: String,
    /// Its name.
    pub label: String,
    /// What kind of way it is.
    #[serde(rename = "type")]
    pub connection_type: ConnectionType,
    /// What it needs to know, besides the fields that its type has anyway: `username` and `password` of `basic`, `token` of
    /// `bearer`, `clientId` and `clientSecret` of both kinds of OAuth 2. One of the same name takes their place.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Secret fields of which at least one is needed: a password or a key, say.
    #[serde(default)]
    pub(super) needs_one_of: Vec<String>,
    /// The field by which a credential is bound to fewer hosts than the app's `hosts`: one, or several with commas between,
    /// written as there. Empty is no bound.
    #[serde(default)]
    pub(super) bound_by: Option<String>,
    /// What it adds to requests. By default the header `authorization`, with the user name and password of `basic`, the
    /// `token` of `bearer`, or the `accessToken` of a connection that fetches one.
    #[serde(default)]
    apply: Option<Vec<Addition>>,
    /// A request that the service answers with success when the credential is right. A credential is refused by a status
    /// of 401 or 403, or by a rule of the app's `errors` with the code `CREDENTIAL_INVALID`.
    #[serde(default)]
    pub(super) verify: Option<RequestTemplate>,
    /// How its token is got, for both kinds of OAuth 2.
    #[serde(default)]
    pub oauth2: Option<OAuth2>,
    /// How its token is got, for `token_exchange`.
    #[serde(default)]
    pub exchange: Option<TokenExchange>,
}

/// What kind of way to connect it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionType {
    /// Nothing is needed.
    None,
    /// A key that goes where `apply` says.
    ApiKey,
    /// User name and password.
    Basic,
    /// A token in the header `authorization`.
    Bearer,
    /// A person consents in the browser.
    #[serde(rename = "oauth2_authorization_code")]
    OAuth2AuthorizationCode,
    /// The client consents itself.
    #[serde(rename = "oauth2_client_credentials")]
    OAuth2ClientCredentials,
    /// A request of the app's own making gets a token.
    TokenExchange,
    /// A server that the app's driver speaks to, with the fields that the driver reads.
    Server,
}

/// One thing that a connection adds to requests.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Addition {
    /// `header`, `query`, or `path`: before the path of the request.
    pub(super) to: Template,
    /// The name of the header or parameter; a path has none.
    #[serde(default)]
    pub(super) name: Option<Template>,
    /// What is added.
    pub(super) value: Template,
}

/// The values of a connection's fields. Neither shown nor logged.
#[derive(Clone, Default)]
pub struct ConnectionData(pub(super) Map<String, Value>);

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
    #[error("the credential would go to neither a header, the query nor the path")]
    Place,
    /// Its token has not been fetched.
    #[error("the credential has no token yet")]
    NoToken,
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

    /// What was fetched, by name.
    pub(super) fn from_values(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// The values by name, secret ones included.
    pub(super) fn values(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Whether there is a value of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The text of a value that is not secret; empty for none.
    pub fn shown(&self, name: &str) -> String {
        let value = self.0.get(name);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        value.map(text).unwrap_or_default()
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

    /// Checks values given by name as [`Connection::read`] does, with those that are fetched besides: what a test in a
    /// manifest makes up.
    ///
    /// # Errors
    /// With everything that is wrong.
    pub fn read_whole(&self, mut given: Map<String, Value>) -> Result<ConnectionData, Vec<FieldProblem>> {
        let fetched: Vec<&str> = match self.connection_type.fetches_token() {
            true => ISSUED.into_iter().chain(self.kept()).collect(),
            false => Vec::new(),
        };
        let fetched = fetched
            .into_iter()
            .filter_map(|name| given.shift_remove_entry(name));
        let fetched = ConnectionData(fetched.collect());
        self.read(given).map(|data| data.extended(fetched))
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
        if self.connection_type.fetches_token() && !data.0.contains_key(ISSUED[0]) {
            return Err(GrantError::NoToken);
        }
        for addition in self.additions() {
            let name = addition.name.as_ref().map(|name| name.text(&reach)).transpose()?;
            let value = addition.value.text(&reach)?;
            match (addition.to.text(&reach)?.as_str(), name) {
                ("header", Some(name)) => {
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
                ("query", Some(name)) => secrets.query.push((name, Secret::from(value.clone()))),
                ("path", None) => secrets.path = Some(Secret::from(value.clone())),
                _ => return Err(GrantError::Place),
            }
            hidden.push(Secret::from(value));
        }
        Ok(Grant { secrets, hidden })
    }

    /// All values by name, secret ones and defaults included: for drivers, which need them as they are.
    pub fn whole(&self, data: &ConnectionData) -> Map<String, Value> {
        match with_defaults(&self.fields, &data.0) {
            Value::Object(values) => values,
            _ => Map::new(),
        }
    }

    /// The values that are not secret.
    pub(super) fn public(&self, data: &ConnectionData) -> Value {
        let mut values = with_defaults(&self.fields, &data.0);
        if let Value::Object(values) = &mut values {
            values.retain(|name, _| self.has_public(name));
        }
        values
    }

    /// Whether it has a value of this name that is not secret.
    pub(super) fn has_public(&self, name: &str) -> bool {
        let mut fields = self.fields.iter().filter(|field| !field.secret);
        fields.any(|field| field.name == name) || self.kept().any(|kept| kept == name)
    }

    /// What is kept of the answer that brought the token, besides the token.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        let oauth2 = self.oauth2.iter().map(|oauth2| &oauth2.response);
        let exchange = self.exchange.iter().map(|exchange| &exchange.response);
        let responses = oauth2.chain(exchange);
        responses.flat_map(|response| response.keep.keys().map(String::as_str))
    }

    /// What it adds to requests.
    pub(super) fn additions(&self) -> &[Addition] {
        self.apply.as_deref().unwrap_or_default()
    }

    /// Adds what its type says anyway.
    pub(super) fn complete(&mut self) -> Result<(), String> {
        for field in self.connection_type.fields() {
            let field: Field = serde_json::from_value(field).map_err(|error| error.to_string())?;
            if !self.fields.iter().any(|own| own.name == field.name) {
                self.fields.push(field);
            }
        }
        if let (None, Some(value)) = (&self.apply, self.connection_type.authorization()) {
            self.apply = Some(vec![Addition {
                to: Template::compile(Value::from("header"))?,
                name: Some(Template::compile(Value::from("authorization"))?),
                value: Template::compile(Value::from(value))?,
            }]);
        }
        Ok(())
    }

    /// The texts to be masked wherever they turn up, fetched ones included.
    pub fn secret_texts(&self, data: &ConnectionData) -> Vec<Secret> {
        let secret = self.fields.iter().filter(|field| field.secret);
        let names = secret.map(|field| field.name.as_str());
        let issued = self.connection_type.fetches_token().then_some(&ISSUED[..2]);
        let names = names.chain(issued.into_iter().flatten().copied());
        let values = names.filter_map(|name| data.0.get(name));
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

impl ConnectionType {
    /// The word of the contract for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ApiKey => "api_key",
            Self::Basic => "basic",
            Self::Bearer => "bearer",
            Self::OAuth2AuthorizationCode => "oauth2_authorization_code",
            Self::OAuth2ClientCredentials => "oauth2_client_credentials",
            Self::TokenExchange => "token_exchange",
            Self::Server => "server",
        }
    }

    /// Whether its token is fetched, rather than typed by a person.
    pub fn fetches_token(self) -> bool {
        self.is_oauth2() || self == Self::TokenExchange
    }

    /// Whether its token is fetched by OAuth 2.
    pub fn is_oauth2(self) -> bool {
        matches!(
            self,
            Self::OAuth2AuthorizationCode | Self::OAuth2ClientCredentials
        )
    }

    fn fields(self) -> Vec<Value> {
        let field = |name: &str, label: &str, secret: bool| json!({ "name": name, "label": label, "type": "text", "required": true, "secret": secret });
        match self {
            Self::Basic => vec![
                field("username", "User name", false),
                field("password", "Password", true),
            ],
            Self::Bearer => vec![field("token", "Token", true)],
            Self::OAuth2AuthorizationCode | Self::OAuth2ClientCredentials => vec![
                field("clientId", "Client id", false),
                field("clientSecret", "Client secret", true),
            ],
            Self::None | Self::ApiKey | Self::TokenExchange | Self::Server => Vec::new(),
        }
    }

    /// The header `authorization` that it adds by default.
    fn authorization(self) -> Option<&'static str> {
        match self {
            Self::Basic => Some("Basic {{base64(connection.username + ':' + connection.password)}}"),
            Self::Bearer => Some("Bearer {{connection.token}}"),
            Self::OAuth2AuthorizationCode | Self::OAuth2ClientCredentials | Self::TokenExchange => {
                Some("Bearer {{connection.accessToken}}")
            }
            Self::None | Self::ApiKey | Self::Server => None,
        }
    }
}
