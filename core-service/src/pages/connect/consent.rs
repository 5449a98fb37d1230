//! From the page to the service that asks for consent, and back.
//!
//! The answer is taken once, for the credential that was asked for, in the browser that was sent: whoever gets somebody
//! else to consent for them has not got that cookie into the other's browser.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::super::{Token, broken, escaped, leading, message, page};
use super::{Case, Desk, Finished, connected, url};
use crate::connectors::{ConnectionData, ConsentQuestion, TokenGrant};
use crate::credentials::{AskedConsent, Consent, OpenCredential};
use crate::secret::Secret;
use crate::store::Actor;

/// What the name of the cookie begins with that a browser proves itself by.
const COOKIE_NAME: &str = "switchyard_consent_";
/// How long a browser keeps it, in seconds: as long as the link is good.
const COOKIE_LASTS_S: u32 = 3_600;
/// The most characters of what a service says that are shown.
const LONGEST_SENTENCE: usize = 300;

/// What a service sends a person back with.
#[derive(Default)]
struct Answer {
    state: Option<Secret>,
    code: Option<Secret>,
    error: Option<String>,
}

impl Answer {
    fn read(query: &str) -> Self {
        let mut answer = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match &*name {
                "state" => answer.state = Some(Secret::from(value)),
                "code" if !value.is_empty() => answer.code = Some(Secret::from(value)),
                "error" | "error_description" if !value.is_empty() => {
                    let said = answer.error.take();
                    answer.error = Some(said.map_or(value.clone(), |said| format!("{said}: {value}")));
                }
                _ => {}
            }
        }
        answer
    }
}

fn tokens() -> Result<[Token; 4], getrandom::Error> {
    let token = Token::generate;
    Ok([token()?, token()?, token()?, token()?])
}

/// Sends a person to the service.
pub(super) async fn ask(
    desk: &Desk,
    case: &Case,
    opened: &OpenCredential,
    typed: ConnectionData,
) -> Result<Response, Response> {
    let tokens = tokens().map_err(|error| broken(&error))?;
    let [state, first, second, browser] = tokens.each_ref().map(|token| token.text().clone());
    let consent = Consent {
        verifier: Secret::from(format!("{}{}", first.expose(), second.expose())),
        link: case.token.text().clone(),
        browser,
        typed,
    };
    let redirect_uri = desk.redirect_uri();
    let question = ConsentQuestion {
        redirect_uri: &redirect_uri,
        state: &state,
        verifier: &consent.verifier,
    };
    let there = opened.connection().consent_url(&opened.data, &question);
    let there = there.map_err(|error| broken(&error))?;
    let kept = desk
        .credentials
        .ask_consent(&case.credential, &state, &consent)
        .await;
    kept.map_err(|error| broken(&error))?;
    let mut response = leading(&format!("Continue to {}", opened.app.name), &there);
    if let Some(cookie) = cookie(&redirect_uri, &state, &consent.browser) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Takes the answer that a person is sent back with.
pub(super) async fn answered(
    State(desk): State<Desk>,
    Extension(actor): Extension<Actor>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let answer = Answer::read(query.as_deref().unwrap_or_default());
    take(&desk, &actor, &headers, answer)
        .await
        .unwrap_or_else(|refusal| refusal)
}

async fn take(desk: &Desk, actor: &Actor, headers: &HeaderMap, answer: Answer) -> Result<Response, Response> {
    let state = answer.state.ok_or_else(unasked)?;
    let asked = desk.credentials.asked_consent(&state).await;
    let asked = asked.map_err(|error| broken(&error))?.ok_or_else(unasked)?;
    if !is_of_browser(headers, &state, &asked.consent.browser) {
        return Err(message(
            StatusCode::FORBIDDEN,
            "Another browser began this",
            "Open the link again in the browser that you consent in.",
        ));
    }
    let taken = asked.is_open && {
        let taken = desk.credentials.take_consent(&state).await;
        taken.map_err(|error| broken(&error))?
    };
    if !taken {
        let text = "The answer was taken before, or comes too late.";
        return Ok(again(desk, &asked, StatusCode::GONE, text));
    }
    let Some(code) = answer.code else {
        let said = answer.error.unwrap_or_else(|| "no code came back".to_owned());
        let said: String = said.chars().take(LONGEST_SENTENCE).collect();
        let text = format!("Nobody consented: {said}.");
        return Ok(again(desk, &asked, StatusCode::BAD_REQUEST, &text));
    };
    let opened = desk.credentials.open(&asked.credential).await;
    let mut opened = opened.map_err(|error| broken(&error))?;
    opened.data = opened.data.extended(asked.consent.typed.clone());
    let redirect_uri = desk.redirect_uri();
    let grant = TokenGrant::Code {
        code: &code,
        redirect_uri: &redirect_uri,
        verifier: &asked.consent.verifier,
    };
    let link = Token::of_link(asked.consent.link.expose().to_owned()).hash();
    let finished = desk.finish(actor, &asked.credential, &link, opened, Some(grant));
    Ok(match finished.await? {
        Finished::Connected => connected(&asked.credential),
        Finished::Over => super::over(),
        Finished::Refused(why) => again(desk, &asked, StatusCode::BAD_GATEWAY, &why),
    })
}

/// Says what happened, and leads back to the link while that is good.
fn again(desk: &Desk, asked: &AskedConsent, status: StatusCode, text: &str) -> Response {
    let mut body = format!("<p role=\"alert\">{}</p>", escaped(text));
    if asked.credential.can_be_connected() {
        let link = url(
            &desk.base_url,
            &Token::of_link(asked.consent.link.expose().to_owned()),
        );
        body.push_str(&format!(
            "\n<p>Nothing is lost: <a href=\"{}\">try again</a>.</p>",
            escaped(&link)
        ));
    }
    page(status, "Not connected", &body)
}

fn unasked() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "Nobody asked for this",
        "This is where services send people back to who have opened a link of a credential. Open such a link first.",
    )
}

/// The cookie that goes back to where the service sends the person, and nowhere else.
fn cookie(redirect_uri: &str, state: &Secret, browser: &Secret) -> Option<HeaderValue> {
    let url = Url::parse(redirect_uri).ok()?;
    let secure = match url.scheme() {
        "https" => "; Secure",
        _ => "",
    };
    let (name, path) = (cookie_name(state), url.path());
    let text = format!(
        "{name}={}; Path={path}; Max-Age={COOKIE_LASTS_S}; HttpOnly; SameSite=Lax{secure}",
        browser.expose()
    );
    HeaderValue::try_from(text).ok()
}

fn is_of_browser(headers: &HeaderMap, state: &Secret, browser: &Secret) -> bool {
    let name = cookie_name(state);
    let texts = headers.get_all(COOKIE).iter();
    let mut cookies = texts
        .filter_map(|text| text.to_str().ok())
        .flat_map(|text| text.split(';'));
    cookies.any(|cookie| {
        let pair = cookie.trim().split_once('=');
        pair.is_some_and(|(known, value)| known == name && browser.matches(value))
    })
}

/// One for each question, so that several may be open in a browser.
fn cookie_name(state: &Secret) -> String {
    let hash = Sha256::digest(state.expose());
    format!("{COOKIE_NAME}{}", hex::encode(&hash[..8]))
}
