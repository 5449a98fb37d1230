//! The form for what a credential lacks.

use std::collections::HashMap;

use axum::http::StatusCode;
use axum::response::Response;

use super::super::{escaped, page};
use super::{Case, Desk};
use crate::connectors::{Field, FieldProblem, FieldType, Need};

/// A form and what was typed into it last. What is secret is never shown again.
pub(super) struct Form<'a> {
    case: &'a Case,
    redirect_uri: String,
    given: Option<&'a HashMap<String, String>>,
}

impl<'a> Form<'a> {
    pub(super) fn new(desk: &Desk, case: &'a Case) -> Self {
        Self {
            case,
            redirect_uri: desk.redirect_uri(),
            given: None,
        }
    }

    /// With what was typed.
    pub(super) fn with(mut self, given: &'a HashMap<String, String>) -> Self {
        self.given = Some(given);
        self
    }

    /// The form, for the first time.
    pub(super) fn page(&self) -> Response {
        self.show(StatusCode::OK, &[], None)
    }

    /// The form, with what was wrong with the last try.
    pub(super) fn wrong(&self, problems: &[FieldProblem]) -> Response {
        self.show(StatusCode::BAD_REQUEST, problems, None)
    }

    /// The form, with what the service says.
    pub(super) fn refused(&self, why: &str) -> Response {
        self.show(StatusCode::BAD_REQUEST, &[], Some(why))
    }

    fn show(&self, status: StatusCode, problems: &[FieldProblem], refusal: Option<&str>) -> Response {
        let Case {
            opened, credential, ..
        } = self.case;
        let (connection, app) = (opened.connection(), &opened.app);
        let asked = connection.asked(&opened.data);
        let mut body = self.introduction(&asked);
        if let Some(why) = refusal {
            let (app, why) = (escaped(&app.name), escaped(why));
            body.push_str(&format!(
                "<p role=\"alert\">{app} does not accept this. {why}</p>\n"
            ));
        }
        // What was given before may not go together with what was typed.
        let elsewhere = problems
            .iter()
            .filter(|problem| asked.iter().all(|field| field.name != problem.name));
        for FieldProblem { name, message } in elsewhere {
            body.push_str(&format!(
                "<p role=\"alert\">The field {} {}.</p>\n",
                escaped(name),
                escaped(message)
            ));
        }
        body.push_str("<form method=\"post\" autocomplete=\"off\">\n");
        for field in asked {
            let problem = problems.iter().find(|problem| problem.name == field.name);
            body.push_str(&self.labelled(field, problem));
        }
        let button = match connection.needs_consent() {
            true => format!("Continue to {}", escaped(&app.name)),
            false => "Connect".to_owned(),
        };
        body.push_str(&format!("<button type=\"submit\">{button}</button>\n</form>"));
        tracing::debug!(
            credential_id = credential.id,
            status = status.as_u16(),
            "the form of a credential is shown"
        );
        page(status, &format!("Connect {}", app.name), &body)
    }

    fn introduction(&self, asked: &[&Field]) -> String {
        let Case {
            opened, credential, ..
        } = self.case;
        let (connection, app) = (opened.connection(), escaped(&opened.app.name));
        let mut body = format!(
            "<p>The credential <strong>{}</strong> for {app} ({}) needs something that only you {}.</p>\n",
            escaped(&credential.name),
            escaped(&connection.label),
            match asked.is_empty() {
                true => "can give",
                false => "know",
            },
        );
        if connection.needs_consent() {
            body.push_str(&format!(
                "<p>{app} will ask you whether your account may be used.</p>\n"
            ));
        }
        if connection.needs_consent() && !connection.missing(&opened.data).is_empty() {
            body.push_str(&format!(
                "<p>The client is registered with {app}, with this redirect URI:<br><code>{}</code></p>\n",
                escaped(&self.redirect_uri)
            ));
        }
        body
    }

    /// A field with its label.
    fn labelled(&self, field: &Field, problem: Option<&FieldProblem>) -> String {
        let name = escaped(&field.name);
        let opened = &self.case.opened;
        let need = opened.connection().need(field, &opened.data);
        let mut html = format!(
            "<label for=\"{name}\">{}{}</label>\n",
            escaped(&field.label),
            escaped(&in_words(&need))
        );
        if let Some(meaning) = &field.description {
            html.push_str(&format!("<p id=\"{name}-meaning\">{}</p>\n", escaped(meaning)));
        }
        if let Some(problem) = problem {
            html.push_str(&format!(
                "<p role=\"alert\">This {}.</p>\n",
                escaped(&problem.message)
            ));
        }
        let typed = self.typed(field);
        if field.field_type == FieldType::Choice {
            let option = |choice: &String| {
                let selected = if *choice == typed { " selected" } else { "" };
                format!("<option{selected}>{}</option>", escaped(choice))
            };
            let none = if need == Need::Required {
                ""
            } else {
                "<option></option>"
            };
            let options: String = field.choices.iter().map(option).collect();
            html.push_str(&format!(
                "<select id=\"{name}\" name=\"{name}\">{none}{options}</select>\n"
            ));
            return html;
        }
        let kind = if field.secret { "password" } else { "text" };
        let is_kept = field.secret && self.case.typed.has(&field.name);
        let need = match (is_kept, need) {
            (true, _) => " placeholder=\"as you typed it before\"",
            (false, Need::Required) => " required",
            (false, Need::OneOf(_) | Need::Optional) => "",
        };
        let value = match typed.is_empty() {
            true => String::new(),
            false => format!(" value=\"{}\"", escaped(&typed)),
        };
        if field.multiline {
            html.push_str(&format!(
                "<textarea id=\"{name}\" name=\"{name}\" rows=\"8\" autocomplete=\"off\"{need}>{}</textarea>\n",
                escaped(&typed)
            ));
            return html;
        }
        html.push_str(&format!(
            "<input id=\"{name}\" name=\"{name}\" type=\"{kind}\" autocomplete=\"off\"{value}{need}>\n"
        ));
        html
    }

    /// What was typed into a field, to be shown again: nothing of what is secret.
    fn typed(&self, field: &Field) -> String {
        if field.secret {
            return String::new();
        }
        let given = self.given.and_then(|given| given.get(&field.name)).cloned();
        given.unwrap_or_else(|| self.case.typed.shown(&field.name))
    }
}

/// How much a field is needed, after its label.
fn in_words(need: &Need<'_>) -> String {
    match need {
        Need::Required => String::new(),
        Need::OneOf(others) => format!(" (this or {})", others.join(" or ")),
        Need::Optional => " (optional)".to_owned(),
    }
}
