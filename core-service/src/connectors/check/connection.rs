//! Whether ways to connect make sense.

use std::collections::BTreeSet;

use super::place::Place;
use super::{Check, public_names};
use crate::connectors::connection::{Connection, ConnectionType};
use crate::connectors::field::{Field, FieldType};
use crate::connectors::token::ISSUED;

impl<'a> Check<'a> {
    pub(super) fn connection(&mut self, connection: &'a Connection) {
        let path = format!("connections.{}", connection.id);
        self.fields(&format!("{path}.fields"), &connection.fields);
        self.needs_one_of(&path, connection);
        self.bound_by(&path, connection);
        let issued = connection.connection_type.fetches_token().then_some(ISSUED);
        let all = connection.fields.iter().map(|field| field.name.as_str());
        let all: BTreeSet<&str> = all.chain(connection.kept()).collect();
        let applied = all.iter().copied().chain(issued.into_iter().flatten()).collect();
        let place = Place::of_connection(applied);
        if connection.connection_type == ConnectionType::ApiKey && connection.additions().is_empty() {
            self.report(format!("{path}.apply"), "is required: where the key goes");
        }
        if connection.connection_type == ConnectionType::Server && self.app.driver.is_none() {
            self.report(format!("{path}.type"), "server belongs to apps with a driver");
        }
        for addition in connection.additions() {
            self.template(&format!("{path}.apply.to"), Some(&addition.to), &place);
            self.template(&format!("{path}.apply.name"), addition.name.as_ref(), &place);
            self.template(&format!("{path}.apply.value"), Some(&addition.value), &place);
            if let Some(to) = addition.to.literal()
                && !matches!(
                    (to, &addition.name),
                    ("header" | "query", Some(_)) | ("path", None)
                )
            {
                let message = "to must be header or query, with a name, or path, without";
                self.report(format!("{path}.apply"), message);
            }
        }
        if let Some(verify) = &connection.verify {
            let public = Place::of_connection(public_names(connection).collect());
            self.request(&format!("{path}.verify"), verify, &public);
        }
        self.tokens(&path, connection, &Place::of_connection(all));
    }

    fn needs_one_of(&mut self, path: &str, connection: &Connection) {
        let path = format!("{path}.needsOneOf");
        let names = &connection.needs_one_of;
        if names.len() == 1 {
            self.report(&path, "names two fields or more; one alone is a required field");
        }
        for name in names {
            let field = connection.fields.iter().find(|field| field.name == *name);
            let may_be = |field: &Field| field.secret && !field.required && field.default.is_none();
            if !field.is_some_and(may_be) {
                let message = format!("{name} is no secret field that may be left out");
                self.report(&path, message);
            }
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            self.report(&path, "names a field twice");
        }
    }

    fn bound_by(&mut self, path: &str, connection: &Connection) {
        let Some(name) = &connection.bound_by else { return };
        let field = connection.fields.iter().find(|field| field.name == *name);
        let may_be = |field: &Field| field.field_type == FieldType::Text && !field.secret;
        if !field.is_some_and(may_be) {
            let message = format!("{name} is no field of the type text that is not secret");
            self.report(format!("{path}.boundBy"), message);
        }
        if self.app.driver.is_some() {
            let message =
                "does not belong to an app with a driver, which goes to the server that its fields name";
            self.report(format!("{path}.boundBy"), message);
        }
    }

    fn tokens(&mut self, path: &str, connection: &'a Connection, place: &Place<'a>) {
        let connection_type = connection.connection_type;
        if connection.oauth2.is_some() != connection_type.is_oauth2() {
            self.report(
                format!("{path}.oauth2"),
                "belongs to both types of OAuth 2, and to no other",
            );
        }
        if connection.exchange.is_some() != (connection_type == ConnectionType::TokenExchange) {
            self.report(
                format!("{path}.exchange"),
                "belongs to the type token_exchange, and to no other",
            );
        }
        let answered = place.with("response");
        if let Some(oauth2) = &connection.oauth2 {
            let asks = connection_type == ConnectionType::OAuth2AuthorizationCode;
            if oauth2.authorize_url.is_some() != asks {
                let message = "belongs to the type oauth2_authorization_code, and to no other";
                self.report(format!("{path}.oauth2.authorizeUrl"), message);
            }
            for (name, template) in oauth2.templates() {
                self.template(&format!("{path}.oauth2.{name}"), Some(template), place);
            }
            // There a person goes, who must not see what is secret.
            let public = Place::of_connection(public_names(connection).collect());
            for (name, template) in oauth2.templates_of_consent() {
                self.template(&format!("{path}.oauth2.{name}"), Some(template), &public);
            }
            for url in [Some(&oauth2.token_url), oauth2.refresh_url.as_ref()]
                .into_iter()
                .flatten()
            {
                self.url(&format!("{path}.oauth2.tokenUrl"), url);
            }
            for (name, template) in oauth2.response.templates() {
                self.template(
                    &format!("{path}.oauth2.response.{name}"),
                    Some(template),
                    &answered,
                );
            }
        }
        if let Some(exchange) = &connection.exchange {
            self.request(&format!("{path}.exchange.request"), &exchange.request, place);
            for (name, template) in exchange.response.templates() {
                self.template(
                    &format!("{path}.exchange.response.{name}"),
                    Some(template),
                    &answered,
                );
            }
        }
    }
}
