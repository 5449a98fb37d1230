//! A service with accounts, and with tokens that it issues by OAuth 2 or for a key.
//!
//! As strict as the strictest: codes and refresh tokens work once, a refresh token that comes again ends all that came of
//! the same consent, and PKCE is checked.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::{Asked, Target, percent_encoded};

/// The client that everybody may be.
pub const CLIENT_ID: &str = "client-1";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A running service. Ends when it is dropped.
pub struct OAuthServer {
    target: Target,
    state: Arc<Mutex<State>>,
    gate: watch::Sender<bool>,
}

/// What it knows.
struct State {
    client_secret: String,
    key: String,
    /// Codes that were not redeemed yet, and what they were asked with.
    codes: HashMap<String, HashMap<String, String>>,
    /// Refresh tokens that work, by consent.
    renewals: HashMap<String, u64>,
    /// Refresh tokens that were used.
    spent: HashMap<String, u64>,
    /// Access tokens that work, by consent.
    access: HashMap<String, u64>,
    /// Every token and code there ever was.
    issued: Vec<String>,
    /// Seconds that tokens last.
    lasts: Option<u64>,
    /// What token requests are answered with instead of tokens.
    refusal: Option<(u16, String)>,
    /// Whether every access token is refused.
    refuses_all: bool,
    /// Whether it gives refresh tokens.
    renews: bool,
    /// The numbers of token requests by grant type.
    asked: HashMap<String, usize>,
}

impl OAuthServer {
    /// Starts a service that knows this client secret and this key.
    pub async fn start(client_secret: &str, key: &str) -> Self {
        let state = Arc::new(Mutex::new(State {
            client_secret: client_secret.to_owned(),
            key: key.to_owned(),
            codes: HashMap::new(),
            renewals: HashMap::new(),
            spent: HashMap::new(),
            access: HashMap::new(),
            issued: Vec::new(),
            lasts: Some(3_600),
            refusal: None,
            refuses_all: false,
            renews: true,
            asked: HashMap::new(),
        }));
        let (gate, _) = watch::channel(true);
        let (shared, open) = (Arc::clone(&state), gate.clone());
        let target = Target::start_slow(move |asked| {
            let (asked, shared, mut open) = (asked.clone(), Arc::clone(&shared), open.subscribe());
            async move {
                if asked.uri.path() == "/token" {
                    // The sender lives as long as the service.
                    let _open = open.wait_for(|open| *open).await;
                }
                locked(&shared).answer(&asked)
            }
        })
        .await;
        Self { target, state, gate }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        self.target.url(path)
    }

    /// The service itself.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Does what a person does who is sent to this URL and consents: gives where that leads.
    pub fn consent(&self, authorize_url: &str) -> String {
        let query = authorize_url.split_once('?').map_or("", |(_, query)| query);
        locked(&self.state).consent(query)
    }

    /// How often it was asked for a token by a grant of this type.
    pub fn asked_for(&self, grant_type: &str) -> usize {
        locked(&self.state)
            .asked
            .get(grant_type)
            .copied()
            .unwrap_or_default()
    }

    /// Tokens last so many seconds from now on; for ever when absent.
    pub fn let_tokens_last(&self, seconds: Option<u64>) {
        locked(&self.state).lasts = seconds;
    }

    /// Gives no refresh tokens from now on.
    pub fn renew_nothing(&self) {
        locked(&self.state).renews = false;
    }

    /// Answers token requests so from now on; with tokens again when absent.
    pub fn refuse_tokens(&self, refusal: Option<(u16, &str)>) {
        locked(&self.state).refusal = refusal.map(|(status, body)| (status, body.to_owned()));
    }

    /// Refuses every access token from now on, also a new one.
    pub fn refuse_all_access(&self) {
        locked(&self.state).refuses_all = true;
    }

    /// Ends the access tokens there are; what renews them goes on working.
    pub fn end_access(&self) {
        locked(&self.state).access.clear();
    }

    /// Ends all there is of tokens.
    pub fn end_all(&self) {
        let mut state = locked(&self.state);
        state.access.clear();
        let renewals = std::mem::take(&mut state.renewals);
        state.spent.extend(renewals);
    }

    /// Keeps token requests waiting, or answers them again.
    pub fn hold_tokens(&self, hold: bool) {
        self.gate.send_replace(!hold);
    }

    /// Every token and code there ever was.
    pub fn issued(&self) -> Vec<String> {
        locked(&self.state).issued.clone()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Response<Bytes> {
        let query = asked.uri.query().unwrap_or_default();
        match asked.uri.path() {
            "/authorize" => html(&authorize_page(query)),
            "/consent" => redirect(&self.consent(query)),
            "/decline" => redirect(&decline(query)),
            "/token" => self.token(asked),
            "/exchange" => self.exchange(asked),
            "/echo" => echo(200, asked),
            "/fail" => echo(500, asked),
            _ => match self.knows(asked) {
                true => json_answer(
                    200,
                    &json!({ "path": asked.uri.path(), "query": query, "items": [{ "id": 1, "name": "One" }] }),
                ),
                false => json_answer(401, &json!({ "error": "the token is not known" })),
            },
        }
    }

    /// Redeems what a person was sent here with.
    fn consent(&mut self, query: &str) -> String {
        let parameters = parameters(query);
        assert_eq!(parameters["response_type"], "code");
        assert_eq!(parameters["client_id"], CLIENT_ID);
        let code = self.issue("code");
        let there = format!(
            "{}?code={code}&state={}",
            parameters["redirect_uri"],
            percent_encoded(&parameters["state"])
        );
        self.codes.insert(code, parameters);
        there
    }

    fn knows(&self, asked: &Asked) -> bool {
        let bearer = asked
            .header("authorization")
            .strip_prefix("Bearer ")
            .unwrap_or_default();
        let known = |token: &str| self.access.contains_key(token);
        !self.refuses_all && (known(bearer) || known(asked.header("x-session")))
    }

    fn token(&mut self, asked: &Asked) -> Response<Bytes> {
        let form = parameters(std::str::from_utf8(&asked.body).unwrap_or_default());
        let said = |name: &str| form.get(name).cloned().unwrap_or_default();
        *self.asked.entry(said("grant_type")).or_default() += 1;
        if let Some((status, body)) = self.refusal.clone() {
            return raw(status, "application/json", body);
        }
        if !self.is_client(asked, &form) {
            return refused(401, "invalid_client", &said("client_secret"));
        }
        let consent = match said("grant_type").as_str() {
            "authorization_code" => self.redeem(&form),
            "refresh_token" => self.renew(&said("refresh_token")),
            "client_credentials" => Some(NUMBER.fetch_add(1, Ordering::Relaxed)),
            _ => return refused(400, "unsupported_grant_type", ""),
        };
        let Some(consent) = consent else {
            let presented = format!("{} {}", said("code"), said("refresh_token"));
            return refused(400, "invalid_grant", &presented);
        };
        let access = self.issue("access");
        self.access.insert(access.clone(), consent);
        let mut answer = json!({ "access_token": access, "token_type": "Bearer", "account": "acc-7" });
        if let Some(seconds) = self.lasts {
            answer["expires_in"] = json!(seconds);
        }
        if self.renews && said("grant_type") != "client_credentials" {
            let renewal = self.issue("refresh");
            self.renewals.insert(renewal.clone(), consent);
            answer["refresh_token"] = json!(renewal);
        }
        json_answer(200, &answer)
    }

    fn is_client(&self, asked: &Asked, form: &HashMap<String, String>) -> bool {
        if let Some(proof) = asked.header("authorization").strip_prefix("Basic ") {
            let proof = STANDARD.decode(proof).unwrap_or_default();
            let proof = String::from_utf8_lossy(&proof);
            let pair = proof
                .split_once(':')
                .map(|(id, secret)| (decoded(id), decoded(secret)));
            return pair == Some((CLIENT_ID.to_owned(), self.client_secret.clone()));
        }
        form.get("client_id").is_some_and(|id| id == CLIENT_ID)
            && form.get("client_secret") == Some(&self.client_secret)
    }

    fn redeem(&mut self, form: &HashMap<String, String>) -> Option<u64> {
        let asked = self.codes.remove(form.get("code")?)?;
        let is_here = asked.get("redirect_uri") == form.get("redirect_uri");
        let is_bound = match asked.get("code_challenge_method").map(String::as_str) {
            Some("plain") => asked.get("code_challenge") == form.get("code_verifier"),
            Some("S256") => {
                asked.get("code_challenge")
                    == form
                        .get("code_verifier")
                        .map(|verifier| challenge(verifier))
                        .as_ref()
            }
            _ => !form.contains_key("code_verifier"),
        };
        (is_here && is_bound).then(|| NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    fn renew(&mut self, renewal: &str) -> Option<u64> {
        if let Some(consent) = self.renewals.remove(renewal) {
            self.spent.insert(renewal.to_owned(), consent);
            return Some(consent);
        }
        if let Some(stolen) = self.spent.get(renewal).copied() {
            self.renewals.retain(|_, consent| *consent != stolen);
            self.access.retain(|_, consent| *consent != stolen);
        }
        None
    }

    fn exchange(&mut self, asked: &Asked) -> Response<Bytes> {
        *self.asked.entry("exchange".to_owned()).or_default() += 1;
        if asked.json()["key"] != self.key.as_str() {
            let echoed = json!({ "error": { "message": format!("{} is no key", asked.json()["key"]) } });
            return json_answer(403, &echoed);
        }
        let token = self.issue("session");
        let consent = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.access.insert(token.clone(), consent);
        json_answer(
            200,
            &json!({ "session": { "token": token, "seconds": self.lasts } }),
        )
    }

    fn issue(&mut self, kind: &str) -> String {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let token = format!("{kind}-{}-{number}", random());
        self.issued.push(token.clone());
        token
    }
}

/// Text that nobody can guess, nor find by accident.
#[must_use]
pub fn random() -> String {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("random numbers");
    hex::encode(random)
}

fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// What a form holds, and what stands in the header of a client (RFC 6749, 2.3.1).
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8_lossy()
        .into_owned()
}

fn challenge(verifier: &str) -> String {
    let digest = Sha256::digest(verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

fn authorize_page(query: &str) -> String {
    let query = query.replace('&', "&amp;");
    format!(
        "<!DOCTYPE html><title>Consent</title><h1>May Switchyard use your account?</h1>\
         <a id=\"allow\" href=\"/consent?{query}\">Allow</a> <a id=\"deny\" href=\"/decline?{query}\">Deny</a>"
    )
}

fn decline(query: &str) -> String {
    let parameters = parameters(query);
    format!(
        "{}?error=access_denied&error_description=The+owner+said+%3Cno%3E&state={}",
        parameters["redirect_uri"],
        percent_encoded(&parameters["state"])
    )
}

/// Says in body and headers all that it was asked with.
fn echo(status: u16, asked: &Asked) -> Response<Bytes> {
    let headers: HashSet<String> = asked
        .headers
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let headers: Vec<String> = headers.into_iter().collect();
    let presented = format!("{} {}", asked.header("authorization"), asked.header("x-session"));
    let answer = json!({
        "error": { "message": format!("refused: {presented}") },
        "headers": headers, "uri": asked.uri.to_string(),
        "body": String::from_utf8_lossy(&asked.body),
    });
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("x-presented", presented.trim());
    response.body(Bytes::from(answer.to_string())).expect("an answer")
}

fn refused(status: u16, error: &str, presented: &str) -> Response<Bytes> {
    let description = format!("what was presented is not accepted: {presented}");
    json_answer(
        status,
        &json!({ "error": error, "error_description": description }),
    )
}

fn json_answer(status: u16, value: &Value) -> Response<Bytes> {
    raw(status, "application/json", value.to_string())
}

fn html(page: &str) -> Response<Bytes> {
    raw(200, "text/html; charset=utf-8", page.to_owned())
}

fn redirect(there: &str) -> Response<Bytes> {
    let response = Response::builder()
        .status(StatusCode::FOUND)
        .header("location", there);
    response.body(Bytes::new()).expect("a redirect")
}

fn raw(status: u16, content_type: &str, body: String) -> Response<Bytes> {
    let response = Response::builder()
        .status(status)
        .header("content-type", content_type);
    response.body(Bytes::from(body)).expect("an answer")
}
