//! `/answer/{token}`: where whoever has the link answers a run, once.

mod form;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use self::form::Typed;
use super::{escaped, message, page};
use crate::form::{Question, Wrong};
use crate::people::{AnswerError, PATH, People, question};
use crate::runtime::RequestError;
use crate::store::{Actor, HumanRequest};

/// What a form may hold at most, JSON in text areas included.
const MOST_BYTES: usize = 1 << 20;

/// The page, over those who answer.
pub fn router(people: People) -> Router {
    Router::new()
        .route(&format!("{PATH}{{token}}"), get(show).post(answer))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(people)
}

async fn show(State(people): State<People>, Path(token): Path<String>) -> Response {
    match find(&people, &token).await {
        Ok((_, question)) => shown(StatusCode::OK, &question, &Typed::default(), &[]),
        Err(refusal) => refusal,
    }
}

async fn answer(
    State(people): State<People>,
    Extension(actor): Extension<Actor>,
    Path(token): Path<String>,
    body: Bytes,
) -> Response {
    let (request, question) = match find(&people, &token).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let typed = Typed::read(&body);
    let (values, unreadable) = typed.values(&question.fields);
    if !unreadable.is_empty() {
        return shown(StatusCode::BAD_REQUEST, &question, &typed, &unreadable);
    }
    // Whoever has the link is nobody in particular: the actor has an address and no name.
    match people.answer(&actor, &request, &values).await {
        Ok(_) => message(
            StatusCode::OK,
            "Thank you",
            "Your answer was recorded. You can close this page.",
        ),
        Err(AnswerError::Wrong(wrong)) => shown(StatusCode::BAD_REQUEST, &question, &typed, &wrong),
        Err(AnswerError::InFlight | AnswerError::RunEnded) => over(),
        Err(AnswerError::PastDue) => message(
            StatusCode::PAYMENT_REQUIRED,
            "This cannot be answered now",
            "The organization that asks has an overdue bill. Try again once it is paid.",
        ),
        Err(AnswerError::Request(RequestError::NotFound)) => over(),
        Err(error) => broken(&error),
    }
}

/// The request that can still be answered and what it asks, or the page that says why there is none.
async fn find(people: &People, token: &str) -> Result<(HumanRequest, Question), Response> {
    match people.find(token).await.map_err(|error| broken(&error))? {
        Some(Some(request)) => {
            let question = question(&request).map_err(|error| broken(&error))?;
            Ok((request, question))
        }
        Some(None) => Err(over()),
        None => Err(message(
            StatusCode::NOT_FOUND,
            "There is no such question",
            "Check that the whole link was copied.",
        )),
    }
}

/// The form with what was typed, and what is wrong with it.
fn shown(status: StatusCode, question: &Question, typed: &Typed, wrong: &[Wrong]) -> Response {
    let mut body = String::new();
    if !question.message.is_empty() {
        body.push_str(&format!("<p class=\"text\">{}</p>\n", escaped(&question.message)));
    }
    if !wrong.is_empty() {
        body.push_str("<p class=\"wrong\" role=\"alert\">Nothing was recorded yet: see below.</p>\n");
    }
    body.push_str("<form method=\"post\">\n");
    for (place, field) in question.fields.iter().enumerate() {
        let wrong = wrong.iter().find(|one| one.name == field.name);
        body.push_str(&form::control(place, field, typed.text(&field.name), wrong));
    }
    body.push_str("<button type=\"submit\">Send the answer</button>\n</form>");
    page(status, &question.title, &body)
}

fn over() -> Response {
    message(
        StatusCode::GONE,
        "This question is over",
        "It was answered, its time has run out, or the run that asked has ended. There is nothing left to do.",
    )
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Response {
    tracing::error!(error, "a page for answers failed");
    message(
        StatusCode::SERVICE_UNAVAILABLE,
        "This does not work right now",
        "Nothing was recorded. Try again in a moment.",
    )
}
