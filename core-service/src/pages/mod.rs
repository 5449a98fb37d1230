//! The pages that people open in a browser, by a link that they were given. Small HTML without scripts.
//!
//! Such a link is a capability: no page is cached, framed, or told to other sites. Requests arrive through
//! `PageService`, which leaves the [`crate::store::Actor`] on them.

pub mod answer;
pub mod connect;
pub mod invitation;
mod token;

pub use token::Token;

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Router};
use url::Url;

use crate::people::People;
use crate::store::Store;

/// Left on the answer to a request that is for no page.
#[derive(Clone, Copy)]
pub struct NoPage;

/// All pages.
pub fn router(store: &Store, connections: connect::Desk, people: &People) -> Router {
    Router::new()
        .merge(invitation::router(store.clone()))
        .merge(connect::router(connections))
        .merge(answer::router(people.clone()))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, Extension(NoPage)))
        .fallback(async || (StatusCode::NOT_FOUND, Extension(NoPage)))
}

const STYLE: &str = "body{font:1.125rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}\
     .text{white-space:pre-wrap}.wrong{color:#b00020;margin:-.75rem 0 1rem}\
     input,select,textarea,button{font:inherit;padding:.5rem;margin:.25rem 0 1rem;width:100%;box-sizing:border-box}";

/// A whole page. `title` is text; `body` is HTML, in which every text is [`escaped`].
fn page(status: StatusCode, title: &str, body: &str) -> Response {
    page_with(status, title, "", body)
}

/// A page that leads to another site by itself, and by a link where browsers are told not to.
///
/// Not a redirect: after a form, browsers follow those only to sites that the form's page names, with all that come after.
fn leading(title: &str, there: &Url) -> Response {
    let there = escaped(there.as_str());
    let head = format!("<meta http-equiv=\"refresh\" content=\"0;url={there}\">\n");
    let body = format!("<p><a href=\"{there}\">{}</a></p>", escaped(title));
    page_with(StatusCode::OK, title, &head, &body)
}

/// A whole page with more in its head, which is HTML too.
fn page_with(status: StatusCode, title: &str, head: &str, body: &str) -> Response {
    let title = escaped(title);
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n{head}<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    );
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ];
    (status, headers, Html(html)).into_response()
}

/// A page of one sentence.
fn message(status: StatusCode, title: &str, text: &str) -> Response {
    page(status, title, &format!("<p>{}</p>", escaped(text)))
}

/// The page of a failure that is no fault of the person's.
fn broken(error: &dyn std::error::Error) -> Response {
    tracing::error!(%error, "a page failed");
    message(
        StatusCode::SERVICE_UNAVAILABLE,
        "This does not work right now",
        "Try again in a moment.",
    )
}

/// Text as it stands in HTML, in attributes too.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_stays_text() {
        let text = "<b title='a' id=\"b\">Ä & co</b>";
        assert_eq!(
            escaped(text),
            "&lt;b title=&#39;a&#39; id=&quot;b&quot;&gt;Ä &amp; co&lt;/b&gt;"
        );
    }
}
