//! `/invite/{token}`: where an invitee joins an organization, once.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use super::{Token, broken, escaped, message, page};
use crate::secret::Secret;
use crate::store::{Accept, Actor, Invitation, InvitationStatus, Store, StoreError};

/// The path below the base URL that tokens follow.
const PATH: &str = "/invite/";
/// More than the form can hold.
const MOST_BYTES: usize = 16 * 1024;
/// The most characters of a name.
const LONGEST_NAME: usize = 200;

/// The link with this token.
pub fn url(base_url: &str, token: &Secret) -> String {
    format!("{base_url}{PATH}{}", token.expose())
}

/// The page, over a store.
pub fn router(store: Store) -> Router {
    Router::new()
        .route(&format!("{PATH}{{token}}"), get(show).post(accept))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(store)
}

async fn show(State(store): State<Store>, Path(token): Path<String>) -> Response {
    match find(&store, token).await {
        Ok((_, invitation)) => form(&store, &invitation)
            .await
            .unwrap_or_else(|error| broken(&error)),
        Err(refusal) => refusal,
    }
}

async fn accept(
    State(store): State<Store>,
    Path(token): Path<String>,
    Extension(actor): Extension<Actor>,
    body: Bytes,
) -> Response {
    let (token, invitation) = match find(&store, token).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let fields = form_urlencoded::parse(&body).find(|(name, _)| name == "name");
    let name = fields
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default();
    if name.chars().count() > LONGEST_NAME {
        let text = format!("A name has at most {LONGEST_NAME} characters. Go back and shorten it.");
        return message(StatusCode::BAD_REQUEST, "The name is too long", &text);
    }
    let name = Some(name.as_str()).filter(|name| !name.is_empty());
    match store.accept_invitation(&actor, &token.hash(), name).await {
        Ok(Accept::Joined(_)) => {
            let text = format!(
                "You have joined as {}. Whoever runs this service can make you an API key.",
                invitation.email
            );
            message(StatusCode::OK, "Welcome", &text)
        }
        Ok(Accept::NotPending) => over(),
        Ok(Accept::Member) | Err(StoreError::Duplicate(_)) => message(
            StatusCode::CONFLICT,
            "You are a member already",
            "The organization has a member with this email. There is nothing left to do.",
        ),
        Err(StoreError::NulInText) => message(
            StatusCode::BAD_REQUEST,
            "The name cannot be stored",
            "It has a character that no name has. Go back and type it again.",
        ),
        Err(error) => broken(&error),
    }
}

/// The invitation that can still be accepted, or the page that says why there is none.
async fn find(store: &Store, token: String) -> Result<(Token, Invitation), Response> {
    let token = Token::of_link(token);
    let found = store.find_invitation(&token.hash()).await;
    match found.map_err(|error| broken(&error))? {
        Some(invitation) if invitation.status == InvitationStatus::Pending => Ok((token, invitation)),
        Some(_) => Err(over()),
        None => Err(message(
            StatusCode::NOT_FOUND,
            "There is no such invitation",
            "Check that the whole link was copied.",
        )),
    }
}

async fn form(store: &Store, invitation: &Invitation) -> Result<Response, StoreError> {
    let organization = store.organization(&invitation.organization_id).await?;
    let body = format!(
        "<p>You are invited as <strong>{}</strong> with the role <strong>{}</strong>.</p>\n\
         <form method=\"post\">\n\
         <label for=\"name\">Your name (optional)</label>\n\
         <input id=\"name\" name=\"name\" autocomplete=\"name\" maxlength=\"{LONGEST_NAME}\">\n\
         <button type=\"submit\">Accept the invitation</button>\n\
         </form>",
        escaped(&invitation.email),
        invitation.role.as_word(),
    );
    let title = format!("Join {}", organization.name);
    Ok(page(StatusCode::OK, &title, &body))
}

fn over() -> Response {
    message(
        StatusCode::GONE,
        "The invitation is over",
        "It was accepted, taken back, or has expired. Ask for a new one.",
    )
}
