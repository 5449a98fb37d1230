//! Connections whose access is a token that has to be fetched: what fetching, renewing and using it takes.
//!
//! Absent on purpose: doing it, which is the credentials'. What was fetched is kept with the connection's values under the
//! names of [`ISSUED`], so that `apply` reaches it as it reaches what a person typed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::request::RequestTemplate;
use super::template::Template;

/// What a connection that fetches a token knows besides its fields, all of it secret: the token, what renews it, and when
/// it expires, in epoch milliseconds.
pub const ISSUED: [&str; 3] = ["accessToken", "refreshToken", "expiresAt"];

/// How a token is got by OAuth 2. The client is the organization's own: `clientId` and `clientSecret` are fields of each
/// such connection.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuth2 {
    /// Where a person is sent to consent (`oauth2_authorization_code`).
    #[serde(default)]
    pub authorize_url: Option<Template>,
    /// Where codes and client credentials become tokens.
    pub token_url: Template,
    /// Where tokens are renewed; `tokenUrl` by default.
    #[serde(default)]
    pub refresh_url: Option<Template>,
    /// What is asked for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// What stands between scopes; a space by default.
    #[serde(default = "space")]
    pub scope_separator: String,
    /// How the code is bound to who asked for it (RFC 7636); `s256` by default.
    #[serde(default)]
    pub pkce: Pkce,
    /// How the client proves who it is to `tokenUrl`; `body` by default.
    #[serde(default)]
    pub client_authentication: ClientAuthentication,
    /// Query parameters of `authorizeUrl` besides those of OAuth 2.
    #[serde(default)]
    pub authorize_parameters: BTreeMap<String, Template>,
    /// Form fields of requests to `tokenUrl` besides those of OAuth 2.
    #[serde(default)]
    pub token_parameters: BTreeMap<String, Template>,
    /// How the answer is read.
    #[serde(default)]
    pub response: TokenResponse,
}

/// How a token is got by a request of the app's own making. Alone among requests it reaches the secret fields of the
/// connection.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenExchange {
    /// What is asked.
    pub request: RequestTemplate,
    /// How the answer is read.
    #[serde(default)]
    pub response: TokenResponse,
}

/// How the answer of a token's endpoint is read.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenResponse {
    /// The token; `response.body.access_token` by default.
    #[serde(default)]
    pub access_token: Option<Template>,
    /// What renews it; `response.body.refresh_token` by default. An answer without keeps the last one.
    #[serde(default)]
    pub refresh_token: Option<Template>,
    /// Seconds until it expires; `response.body.expires_in` by default.
    #[serde(default)]
    pub expires_in: Option<Template>,
    /// What else is kept, not secret, by name: `connection.NAME` from then on.
    #[serde(default)]
    pub keep: BTreeMap<String, Template>,
}

/// How a code is bound to who asked for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pkce {
    /// By the hash of a secret.
    #[default]
    S256,
    /// By the secret itself.
    Plain,
    /// Not at all: the service knows nothing of it.
    None,
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthentication {
    /// By `client_id` and `client_secret` in the form.
    #[default]
    Body,
    /// By the header of HTTP's basic authentication.
    Basic,
}

fn space() -> String {
    " ".to_owned()
}

impl OAuth2 {
    /// The templates of requests for tokens, after the place each stands at.
    pub(super) fn templates(&self) -> Vec<(&str, &Template)> {
        let urls = [
            ("tokenUrl", Some(&self.token_url)),
            ("refreshUrl", self.refresh_url.as_ref()),
        ];
        let urls = urls
            .into_iter()
            .filter_map(|(name, template)| Some((name, template?)));
        let parameters = self.token_parameters.iter();
        urls.chain(parameters.map(|(name, template)| (name.as_str(), template)))
            .collect()
    }

    /// The templates that make where a person is sent, after the place each stands at.
    pub(super) fn templates_of_consent(&self) -> Vec<(&str, &Template)> {
        let url = self
            .authorize_url
            .iter()
            .map(|template| ("authorizeUrl", template));
        let parameters = self.authorize_parameters.iter();
        url.chain(parameters.map(|(name, template)| (name.as_str(), template)))
            .collect()
    }
}

impl TokenResponse {
    /// Every template in it, after the place it stands at.
    pub(super) fn templates(&self) -> Vec<(&str, &Template)> {
        let own = [
            ("accessToken", &self.access_token),
            ("refreshToken", &self.refresh_token),
            ("expiresIn", &self.expires_in),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, template)| Some((name, template.as_ref()?)));
        own.chain(self.keep.iter().map(|(name, template)| (name.as_str(), template)))
            .collect()
    }
}
