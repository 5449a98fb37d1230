//! Fetching tokens: where a person is sent, what is asked of a token's endpoint, and what its answer means.
//!
//! Pure, as all of the interpreter: sending is the caller's, and so is keeping what came.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::connection::{Connection, ConnectionData, ConnectionType};
use super::field::with_defaults;
use super::manifest::App;
use super::refusal::{TokenProblem, refusal};
use super::template::{Reach, Template, TemplateError};
use super::token::{ClientAuthentication, ISSUED, OAuth2, Pkce, TokenResponse};
use crate::secret::{Mask, Secret};

/// A token is renewed so long before it expires, in milliseconds; of a short life, in its last quarter.
const MARGIN_MS: i64 = 60_000;
/// No token is believed to last longer, in seconds: a thousand years.
const LONGEST_LIFE_S: f64 = 3.2e10;

/// By what a token is asked for.
pub enum TokenGrant<'a> {
    /// By the code that a person's consent has brought.
    Code {
        /// The code.
        code: &'a Secret,
        /// Where it was brought.
        redirect_uri: &'a str,
        /// What shows that it was asked for here.
        verifier: &'a Secret,
    },
    /// By what the last answer gave for that.
    Refresh,
    /// By the connection's own fields.
    Own,
}

/// What a person is sent to a service with.
pub struct ConsentQuestion<'a> {
    /// Where the answer is expected.
    pub redirect_uri: &'a str,
    /// What the answer must bring back.
    pub state: &'a Secret,
    /// What the code will be bound to.
    pub verifier: &'a Secret,
}

/// A token that was fetched.
pub struct Issued {
    /// The token, and what is kept besides.
    pub data: ConnectionData,
    /// When it has to be renewed, epoch milliseconds; none for never.
    pub renew_at: Option<i64>,
}

impl ConnectionData {
    /// The value of a name, when it is text.
    fn text(&self, name: &str) -> Option<&str> {
        self.values().get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Whether its token can be used at an instant, epoch milliseconds.
    pub fn has_token_at(&self, now_ms: i64) -> bool {
        let expires_at = self.values().get(ISSUED[2]).and_then(Value::as_i64);
        self.text(ISSUED[0]).is_some() && expires_at.is_none_or(|expires_at| now_ms < expires_at)
    }
}

impl Connection {
    /// Whether a person has to consent before it can be used.
    pub fn needs_consent(&self) -> bool {
        self.connection_type == ConnectionType::OAuth2AuthorizationCode
    }

    /// By what the next token is asked for; nothing when a person has to consent again.
    pub fn next_grant(&self, data: &ConnectionData) -> Option<TokenGrant<'static>> {
        match (self.needs_consent(), data.text(ISSUED[1])) {
            (true, Some(_)) => Some(TokenGrant::Refresh),
            (true, None) => None,
            (false, _) => Some(TokenGrant::Own),
        }
    }

    /// Where a person is sent to consent.
    ///
    /// # Errors
    /// When the manifest makes no URL of the connection's values.
    pub fn consent_url(
        &self,
        data: &ConnectionData,
        question: &ConsentQuestion<'_>,
    ) -> Result<Url, TemplateError> {
        let asked = self
            .oauth2
            .as_ref()
            .and_then(|oauth2| Some((oauth2, oauth2.authorize_url.as_ref()?)));
        let (oauth2, authorize_url) =
            asked.ok_or_else(|| TemplateError::new("the connection asks nobody to consent"))?;
        let values = self.public(data);
        let mut reach = Reach::new();
        reach.connection = Some(&values);
        let text = authorize_url.text(&reach)?;
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let mut url =
            url.ok_or_else(|| TemplateError::new(format!("the page of consent {text:?} is no URL")))?;
        let mut query = oauth2.question(data, question);
        for (name, template) in &oauth2.authorize_parameters {
            query.retain(|(known, _)| known != name);
            match template.text(&reach)? {
                empty if empty.is_empty() => {}
                value => query.push((name.clone(), value)),
            }
        }
        url.query_pairs_mut().extend_pairs(query);
        Ok(url)
    }

    /// What the answer of a token's endpoint means: `status`, `headers` and `body`, as templates see it. What is secret is
    /// masked in what is told of a failure.
    ///
    /// # Errors
    /// When it brings no token.
    pub fn issued(
        &self,
        data: &ConnectionData,
        answer: &Value,
        mask: &Mask,
        now_ms: i64,
    ) -> Result<Issued, TokenProblem> {
        let own = self.oauth2.as_ref().map(|oauth2| &oauth2.response);
        let own = own.or(self.exchange.as_ref().map(|exchange| &exchange.response));
        let shape =
            own.ok_or_else(|| TokenProblem::Unusable("the connection fetches no token".to_owned()))?;
        let public = self.public(data);
        let mut reach = Reach::new();
        reach.connection = Some(&public);
        reach.response = Some(answer);
        let read = Reading { shape, reach };
        let token = match read.part(shape.access_token.as_ref(), "access_token") {
            Ok(Value::String(token)) if !token.is_empty() && is_success(answer) => token,
            _ => return Err(refusal(answer, mask)),
        };
        let mut issued = Map::from_iter([(ISSUED[0].to_owned(), Value::from(token))]);
        let renewal = read.part(shape.refresh_token.as_ref(), "refresh_token")?;
        let renewal = renewal.as_str().filter(|text| !text.is_empty());
        if let Some(renewal) = renewal.or(data.text(ISSUED[1])) {
            issued.insert(ISSUED[1].to_owned(), Value::from(renewal));
        }
        let life_ms = read.life_ms()?;
        if let Some(life_ms) = life_ms {
            issued.insert(ISSUED[2].to_owned(), Value::from(now_ms.saturating_add(life_ms)));
        }
        read.keep(data, &mut issued)?;
        let data = ConnectionData::from_values(issued);
        let margin_ms = |life_ms: i64| match self.next_grant(&data) {
            Some(_) => MARGIN_MS.min(life_ms / 4),
            None => 0,
        };
        let renew_at = life_ms.map(|life_ms| now_ms.saturating_add(life_ms - margin_ms(life_ms)));
        Ok(Issued { data, renew_at })
    }
}

impl App {
    /// The parameters of the call that fetches a token. There are secrets in them.
    ///
    /// # Errors
    /// When the manifest makes no request of the connection's values.
    pub fn token_call(
        &self,
        connection: &Connection,
        data: &ConnectionData,
        grant: &TokenGrant<'_>,
    ) -> Result<Value, TemplateError> {
        let values = with_defaults(&connection.fields, data.values());
        let mut reach = Reach::new();
        reach.connection = Some(&values);
        let mut call = match (&connection.exchange, &connection.oauth2) {
            (Some(exchange), _) => {
                let call = exchange.request.call(&self.home(), &reach)?;
                call.ok_or_else(|| TemplateError::new("the request for a token has no URL"))?
            }
            (None, Some(oauth2)) => oauth2.token_call(data, &reach, grant)?,
            (None, None) => return Err(TemplateError::new("the connection fetches no token")),
        };
        if let Value::Object(call) = &mut call {
            // What is secret in a body would go along.
            call.insert("followRedirects".to_owned(), Value::from(false));
        }
        Ok(call)
    }
}

impl OAuth2 {
    /// The query that a person is sent to the service with, but for what the manifest adds.
    fn question(&self, data: &ConnectionData, question: &ConsentQuestion<'_>) -> Vec<(String, String)> {
        let mut query = vec![
            ("response_type", "code".to_owned()),
            ("client_id", data.text("clientId").unwrap_or_default().to_owned()),
            ("redirect_uri", question.redirect_uri.to_owned()),
            ("state", question.state.expose().to_owned()),
        ];
        if !self.scopes.is_empty() {
            query.push(("scope", self.scopes.join(&self.scope_separator)));
        }
        let verifier = question.verifier.expose();
        match self.pkce {
            Pkce::S256 => {
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                query.push(("code_challenge", challenge));
                query.push(("code_challenge_method", "S256".to_owned()));
            }
            Pkce::Plain => {
                query.push(("code_challenge", verifier.to_owned()));
                query.push(("code_challenge_method", "plain".to_owned()));
            }
            Pkce::None => {}
        }
        query
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn token_call(
        &self,
        data: &ConnectionData,
        reach: &Reach<'_>,
        grant: &TokenGrant<'_>,
    ) -> Result<Value, TemplateError> {
        let url = match grant {
            TokenGrant::Refresh => self.refresh_url.as_ref().unwrap_or(&self.token_url),
            TokenGrant::Code { .. } | TokenGrant::Own => &self.token_url,
        };
        let mut form = self.form(data, grant);
        let mut headers = Map::from_iter([("accept".to_owned(), Value::from("application/json"))]);
        let id = data.text("clientId").unwrap_or_default();
        match (self.client_authentication, data.text("clientSecret")) {
            (ClientAuthentication::Basic, Some(secret)) => {
                let proof = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
                headers.insert("authorization".to_owned(), Value::from(format!("Basic {proof}")));
            }
            (_, secret) => {
                form.insert("client_id".to_owned(), Value::from(id));
                form.extend(secret.map(|secret| ("client_secret".to_owned(), Value::from(secret))));
            }
        }
        for (name, template) in &self.token_parameters {
            match template.evaluate_given(reach)? {
                Value::Null => {}
                value => {
                    form.insert(name.clone(), value);
                }
            }
        }
        Ok(json!({
            "method": "POST",
            "url": url.text(reach)?,
            "headers": headers,
            "bodyType": "form",
            "body": form,
        }))
    }

    /// What is asked for, but for who asks.
    fn form(&self, data: &ConnectionData, grant: &TokenGrant<'_>) -> Map<String, Value> {
        let mut form = Map::new();
        let mut say = |name: &str, value: &str| form.insert(name.to_owned(), Value::from(value));
        match grant {
            TokenGrant::Code {
                code,
                redirect_uri,
                verifier,
            } => {
                say("grant_type", "authorization_code");
                say("code", code.expose());
                say("redirect_uri", redirect_uri);
                if self.pkce != Pkce::None {
                    say("code_verifier", verifier.expose());
                }
            }
            TokenGrant::Refresh => {
                say("grant_type", "refresh_token");
                say("refresh_token", data.text(ISSUED[1]).unwrap_or_default());
            }
            TokenGrant::Own => {
                say("grant_type", "client_credentials");
                if !self.scopes.is_empty() {
                    say("scope", &self.scopes.join(&self.scope_separator));
                }
            }
        }
        form
    }
}

/// An answer that is being read.
struct Reading<'a> {
    shape: &'a TokenResponse,
    reach: Reach<'a>,
}

impl Reading<'_> {
    /// What a template gives, or what stands at OAuth 2's own place.
    fn part(&self, template: Option<&Template>, name: &str) -> Result<Value, TemplateError> {
        match template {
            Some(template) => template.evaluate(&self.reach),
            None => Ok(self
                .reach
                .response
                .map(|answer| answer["body"][name].clone())
                .unwrap_or_default()),
        }
    }

    /// How long the token lasts, in milliseconds; none for ever.
    fn life_ms(&self) -> Result<Option<i64>, TemplateError> {
        let seconds = match self.part(self.shape.expires_in.as_ref(), "expires_in")? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        #[expect(clippy::cast_possible_truncation, reason = "it is far from the bounds")]
        let whole_ms = |seconds: f64| (seconds.clamp(0.0, LONGEST_LIFE_S) * 1_000.0) as i64;
        Ok(seconds.filter(|seconds: &f64| seconds.is_finite()).map(whole_ms))
    }

    /// Keeps what the manifest wants of the answer; what it lacks stays as it was.
    fn keep(&self, known: &ConnectionData, issued: &mut Map<String, Value>) -> Result<(), TemplateError> {
        for (name, template) in &self.shape.keep {
            let value = match template.evaluate(&self.reach)? {
                Value::Null => known.values().get(name).cloned(),
                value => Some(value),
            };
            issued.extend(value.map(|value| (name.clone(), value)));
        }
        Ok(())
    }
}

fn is_success(answer: &Value) -> bool {
    answer["status"]
        .as_u64()
        .is_some_and(|status| (200..300).contains(&status))
}

/// As RFC 6749 wants it before the encoding of basic authentication.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
