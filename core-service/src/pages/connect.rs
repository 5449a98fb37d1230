//! `/connect/{token}`: where a person gives a credential what it lacks, once.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use super::{Token, broken, escaped, message, page};
use crate::connectors::{Field, FieldProblem, FieldType};
use crate::credentials::{Credentials, OpenCredential};
use crate::store::{Actor, Credential, Store};

/// The path below the base URL that tokens follow.
const PATH: &str = "/connect/";
/// More than the form can hold.
const MOST_BYTES: usize = 256 * 1024;

/// What the page works with.
#[derive(Clone)]
struct Desk {
    store: Store,
    credentials: Credentials,
}

/// A credential to be finished.
struct Case {
    token: Token,
    credential: Credential,
    opened: OpenCredential,
}

/// The link with this token.
pub fn url(base_url: &str, token: &Token) -> String {
    format!("{base_url}{PATH}{}", token.text().expose())
}

/// The page, over a store.
pub fn router(store: Store, credentials: Credentials) -> Router {
    Router::new()
        .route(&format!("{PATH}{{token}}"), get(show).post(connect))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(Desk { store, credentials })
}

async fn show(State(desk): State<Desk>, Path(token): Path<String>) -> Response {
    match desk.find(token).await {
        Ok(case) => case.form(&[]),
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
            .finish(&actor, case, &body)
            .await
            .unwrap_or_else(|refusal| refusal),
        Err(refusal) => refusal,
    }
}

impl Desk {
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
        Ok(Case {
            token,
            opened: opened.map_err(|error| broken(&error))?,
            credential,
        })
    }

    async fn finish(&self, actor: &Actor, case: Case, body: &[u8]) -> Result<Response, Response> {
        let form: HashMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        let connection = case.opened.connection();
        let typed = match connection.read_form(&connection.missing(&case.opened.data), &form) {
            Ok(typed) => typed,
            Err(problems) => return Ok(case.form(&problems)),
        };
        let data = case.opened.data.clone().extended(typed);
        if let Err(problem) = case.opened.app.check_hosts(connection, &data) {
            return Ok(case.form(&[problem]));
        }
        let credential = &case.credential;
        let sealed = self
            .credentials
            .seal(&credential.organization_id, &credential.id, &data)
            .await
            .map_err(|error| broken(&error))?;
        let connected = self
            .store
            .connect_credential(actor, &case.token.hash(), &sealed)
            .await;
        match connected.map_err(|error| broken(&error))? {
            true => Ok(message(
                StatusCode::OK,
                "Connected",
                &format!("{} is ready for use. You can close this page.", credential.name),
            )),
            false => Ok(over()),
        }
    }
}

impl Case {
    /// The form for what is missing, with what was wrong with the last try.
    fn form(&self, problems: &[FieldProblem]) -> Response {
        let (connection, app) = (self.opened.connection(), &self.opened.app);
        let missing = connection.missing(&self.opened.data);
        let mut body = format!(
            "<p>The credential <strong>{}</strong> for {} ({}) needs something that only you know.</p>\n",
            escaped(&self.credential.name),
            escaped(&app.name),
            escaped(&connection.label),
        );
        // What was given before may not go together with what was typed.
        let elsewhere = problems
            .iter()
            .filter(|problem| missing.iter().all(|field| field.name != problem.name));
        for FieldProblem { name, message } in elsewhere {
            body.push_str(&format!(
                "<p role=\"alert\">The field {} {}.</p>\n",
                escaped(name),
                escaped(message)
            ));
        }
        body.push_str("<form method=\"post\" autocomplete=\"off\">\n");
        for field in missing {
            let problem = problems.iter().find(|problem| problem.name == field.name);
            body.push_str(&labelled(field, problem));
        }
        body.push_str("<button type=\"submit\">Connect</button>\n</form>");
        let status = match problems.is_empty() {
            true => StatusCode::OK,
            false => StatusCode::BAD_REQUEST,
        };
        page(status, &format!("Connect {}", app.name), &body)
    }
}

/// A field with its label. What was typed is not shown again: it may be secret.
fn labelled(field: &Field, problem: Option<&FieldProblem>) -> String {
    let (name, label) = (escaped(&field.name), escaped(&field.label));
    let mut html = format!("<label for=\"{name}\">{label}</label>\n");
    if let Some(problem) = problem {
        html.push_str(&format!(
            "<p role=\"alert\">This {}.</p>\n",
            escaped(&problem.message)
        ));
    }
    if field.field_type == FieldType::Choice {
        let options: String = field
            .choices
            .iter()
            .map(|choice| format!("<option>{}</option>", escaped(choice)))
            .collect();
        html.push_str(&format!(
            "<select id=\"{name}\" name=\"{name}\">{options}</select>\n"
        ));
    } else {
        let kind = if field.secret { "password" } else { "text" };
        html.push_str(&format!(
            "<input id=\"{name}\" name=\"{name}\" type=\"{kind}\" autocomplete=\"off\" required>\n"
        ));
    }
    html
}

fn over() -> Response {
    message(
        StatusCode::GONE,
        "The link is over",
        "It was used already, or has expired. Make the credential anew for another link.",
    )
}
