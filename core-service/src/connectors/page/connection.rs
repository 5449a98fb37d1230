//! A way to connect: its fields, and what is asked for.

use super::markdown::{Table, code, codes, text};
use super::module::{meaning, typed, yes};
use crate::connectors::connection::{Connection, ConnectionType};
use crate::connectors::template::Template;

/// What the page says of it.
pub(super) fn described(connection: &Connection) -> Vec<String> {
    let connection_type = connection.connection_type;
    let mut blocks = vec![
        format!("### {}", text(&connection.label)),
        format!(
            "Connection {}, of the type {}: {}",
            code(&connection.id),
            code(connection_type.as_str()),
            explained(connection_type)
        ),
    ];
    if !connection.fields.is_empty() {
        blocks.push(fields(connection));
    }
    if !connection.needs_one_of.is_empty() {
        let names = codes(connection.needs_one_of.iter().map(String::as_str));
        blocks.push(format!("At least one of these is needed: {names}."));
    }
    blocks.extend(asked_for(connection));
    if connection.verify.is_some() {
        blocks.push("The service can be asked whether the credential is right.".to_owned());
    }
    blocks
}

fn explained(connection_type: ConnectionType) -> &'static str {
    match connection_type {
        ConnectionType::None => "no secret is needed.",
        ConnectionType::ApiKey => "a key goes with each request.",
        ConnectionType::Basic => "a user name and a password go with each request.",
        ConnectionType::Bearer => "a token goes with each request.",
        ConnectionType::OAuth2AuthorizationCode => {
            "a person consents in the browser, to a client of your organization's own."
        }
        ConnectionType::OAuth2ClientCredentials => "a client of your organization's own gets a token.",
        ConnectionType::TokenExchange => "the fields are exchanged for a token.",
        ConnectionType::Server => "the fields say which server it is, and who is asking.",
    }
}

fn fields(connection: &Connection) -> String {
    let mut table = Table::new(&["Field", "Type", "Required", "Secret", "Meaning"]);
    for field in &connection.fields {
        table.row([
            code(&field.name),
            typed(field),
            yes(field.required && field.default.is_none()),
            yes(field.secret),
            meaning(field, &[]),
        ]);
    }
    table.to_string()
}

/// What is asked for by OAuth 2, and where.
fn asked_for(connection: &Connection) -> Vec<String> {
    let Some(oauth2) = &connection.oauth2 else {
        return Vec::new();
    };
    let mut said = Vec::new();
    if !oauth2.scopes.is_empty() {
        let scopes = codes(oauth2.scopes.iter().map(String::as_str));
        said.push(format!("Scopes that are asked for: {scopes}."));
    }
    if let Some(url) = oauth2.authorize_url.as_ref().and_then(Template::written_text) {
        said.push(format!("Consent is given at {}.", code(url)));
    }
    if let Some(url) = oauth2.token_url.written_text() {
        said.push(format!("Tokens come from {}.", code(url)));
    }
    vec![said.join(" ")]
}
