//! `/connect/{token}`: where a person gives a credential what it lacks, once, and goes to the service to consent where
//! that is how its app is connected.

mod consent;
mod form;

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use self::form::Form;
use super::{Token, broken, message};
use crate::connectors::{ConnectionData, TokenGrant};
use crate::credentials::{Credentials, OpenCredential};
use crate::nodes::app_caller::AppCaller;
use crate::nodes::verification::Verdict;
use crate::store::{Actor, Credential, NewToken, Store};

/// The path below the base URL that tokens follow.
const PATH: &str = "/connect/";
/// The path below the base URL where services send people back to.
const CALLBACK: &str = "/connect/callback";
/// More than the form can hold.
const MOST_BYTES: usize = 256 * 1024;

/// What the page works with.
#[derive(Clone)]
pub struct Desk {
    /// The database.
    pub store: Store,
    /// Opens credentials and seals them.
    pub credentials: Credentials,
    /// Asks services for tokens, and whether they accept what was given.
    pub app_caller: AppCaller,
    /// What links begin with.
    pub base_url: Arc<str>,
}

/// A credential to be finished.
struct Case {
    token: Token,
    credential: Credential,
    opened: OpenCredential,
    /// What was typed before the person was sent to the service.
    typed: ConnectionData,
}

/// What came of finishing it.
enum Finished {
    Connected,
    /// The link is over.
    Over,
    /// The service does not take it. Why, for people.
    Refused(String),
}

/// The link with this token.
pub fn url(base_url: &str, token: &Token) -> String {
    format!("{base_url}{PATH}{}", token.text().expose())
}

/// The page.
pub fn router(desk: Desk) -> Router {
    Router::new()
        .route(CALLBACK, get(consent::answered))
        .route(&format!("{PATH}{{token}}"), get(show).post(connect))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(desk)
}

async fn show(State(desk): State<Desk>, Path(token): Path<String>) -> Response {
    match desk.find(token).await {
        Ok(case) => Form::new(&desk, &case).page(),
        Err(refusal) => refusal,
    }
}

async fn connect(
    State(desk): State<Desk>,
    Path(token): Path<String>,
    Extension(actor): Extension<Actor>,
    body: Bytes,
) -> Response {
    match desk.find(token).await {
        Ok(case) => desk
            .submit(&actor, case, &body)
            .await
            .unwrap_or_else(|refusal| refusal),
        Err(refusal) => refusal,
    }
}

impl Desk {
    /// Where services send people back to, as it is registered with them.
    fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK}", self.base_url)
    }

    /// The credential that can still be finished, or the page that says why there is none.
    async fn find(&self, token: String) -> Result<Case, Response> {
        let token = Token::of_link(token);
        let found = self.store.linked_credential(&token.hash()).await;
        let Some(credential) = found.map_err(|error| broken(&error))? else {
            return Err(message(
                StatusCode::NOT_FOUND,
                "There is no such link",
                "Check that the whole link was copied. A credential that was deleted has none.",
            ));
        };
        if !credential.can_be_connected() {
            return Err(over());
        }
        let opened = self.credentials.open(&credential).await;
        let typed = self.credentials.typed_before(&credential).await;
        Ok(Case {
            token,
            opened: opened.map_err(|error| broken(&error))?,
            typed: typed.map_err(|error| broken(&error))?,
            credential,
        })
    }

    async fn submit(&self, actor: &Actor, case: Case, body: &[u8]) -> Result<Response, Response> {
        let given: HashMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        let form = Form::new(self, &case).with(&given);
        let connection = case.opened.connection();
        let typed = match connection.read_form(&case.opened.data, &given, &case.typed) {
            Ok(typed) => typed,
            Err(problems) => return Ok(form.wrong(&problems)),
        };
        let mut opened = case.opened.clone();
        opened.data = opened.data.extended(typed.clone());
        if let Err(problem) = opened.app.check_hosts(connection, &opened.data) {
            return Ok(form.wrong(&[problem]));
        }
        if connection.needs_consent() {
            return consent::ask(self, &case, &opened, typed).await;
        }
        let fetches = connection.connection_type.fetches_token();
        let grant = fetches.then_some(TokenGrant::Own);
        let link = case.token.hash();
        Ok(
            match self.finish(actor, &case.credential, &link, opened, grant).await? {
                Finished::Connected => connected(&case.credential),
                Finished::Over => over(),
                Finished::Refused(why) => form.refused(&why),
            },
        )
    }

    /// Makes a credential active with what it holds, unless its service refuses that.
    async fn finish(
        &self,
        actor: &Actor,
        credential: &Credential,
        link_hash: &[u8],
        opened: OpenCredential,
        grant: Option<TokenGrant<'_>>,
    ) -> Result<Finished, Response> {
        let (organization_id, id) = (&credential.organization_id, &credential.id);
        let data = self.credentials.seal(organization_id, id, &opened.data).await;
        let data = data.map_err(|error| broken(&error))?;
        let (mut with_token, mut token) = (opened, None);
        with_token.kept = None;
        if let Some(grant) = grant {
            let issued = match self.app_caller.http().fetch_token(&with_token, &grant).await {
                Ok(issued) => issued,
                Err(error) => return Ok(Finished::Refused(error.to_string())),
            };
            let sealed = self
                .credentials
                .seal_token(organization_id, id, &issued.data)
                .await;
            token = Some((sealed.map_err(|error| broken(&error))?, issued.renew_at));
            with_token = with_token.with_issued(issued, None);
        }
        match self.app_caller.test_credential(&with_token).await {
            Verdict::Refused(why) => return Ok(Finished::Refused(why)),
            // Whether it is right turns out when it is used.
            Verdict::Untold(why) => tracing::info!(credential_id = id, why, "a credential was not tested"),
            Verdict::Accepted => {}
        }
        let token = token.as_ref().map(|(data, renew_at)| NewToken {
            data,
            renew_at: *renew_at,
        });
        let connected = self
            .store
            .connect_credential(actor, link_hash, &data, token.as_ref())
            .await;
        match connected.map_err(|error| broken(&error))? {
            true => Ok(Finished::Connected),
            false => Ok(Finished::Over),
        }
    }
}

fn connected(credential: &Credential) -> Response {
    let text = format!("{} is ready for use. You can close this page.", credential.name);
    message(StatusCode::OK, "Connected", &text)
}

fn over() -> Response {
    message(
        StatusCode::GONE,
        "The link is over",
        "It was used already, or has expired. Make the credential anew for another link.",
    )
}
