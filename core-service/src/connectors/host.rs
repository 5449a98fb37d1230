//! Where an app's requests may go: hosts that a manifest names, or makes of a connection's fields. A credential may be bound
//! to fewer.

mod pattern;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::{Origin, Url};

use self::pattern::HostPattern;
use super::connection::{Connection, ConnectionData};
use super::field::FieldProblem;
use super::manifest::App;
use super::template::{Reach, Template};
use super::walk::Connected;

/// One entry of a manifest's `hosts`.
pub(super) enum HostRule {
    /// It is the same for everybody.
    Fixed(HostPattern),
    /// Each credential has its own.
    Made(HostTemplate),
}

/// A host that is made of a connection's fields.
pub(super) struct HostTemplate {
    pub(super) template: Template,
    text: String,
}

/// Requests that may not go where they are meant to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRefused {
    /// No entry of `hosts` permits it.
    #[error("the app {app_id} and its credentials do not go to {host}")]
    Elsewhere {
        /// The app.
        app_id: String,
        /// Where they were meant to go.
        host: String,
    },
    /// The host is permitted, by another scheme or port.
    #[error("the app {app_id} and its credentials do not go to {asked}; write {meant} instead")]
    Otherwise {
        /// The app.
        app_id: String,
        /// Where they were meant to go.
        asked: String,
        /// Where they do go at this host.
        meant: String,
    },
    /// The credential itself is bound to other hosts.
    #[error("the credential does not go to {asked}: its field {field} binds it to {bound}")]
    Bound {
        /// Where it was meant to go.
        asked: String,
        /// The field that binds it.
        field: String,
        /// What the field says.
        bound: String,
    },
    /// The credential's fields make no host.
    #[error("the credential makes no host: {0}")]
    NoHost(String),
}

impl App {
    /// Whether its requests, and its credentials with them, may go to this URL's host, for this connection: by https to its
    /// port, unless the entry of `hosts` or the base URL says otherwise.
    ///
    /// # Errors
    /// When they may not, or when the connection's fields make no host that they might go to.
    pub fn permits(&self, url: &Url, connected: Connected<'_>) -> Result<(), HostRefused> {
        let values = connected.map(|(connection, data)| connection.public(data));
        let (patterns, wrong) = self.patterns(connected, values.as_ref());
        let named: Vec<&HostPattern> = patterns.iter().filter(|pattern| pattern.names(url)).collect();
        let is_permitted = named.iter().any(|pattern| pattern.permits(url))
            || named.iter().any(|pattern| pattern.may_be_at(url))
                && self.base_origin(values.as_ref()) == Some(url.origin());
        match (named.first(), wrong) {
            (Some(_), _) if is_permitted => match connected {
                Some((connection, data)) => connection.permits(url, data),
                None => Ok(()),
            },
            (Some(pattern), _) => Err(HostRefused::Otherwise {
                app_id: self.id.clone(),
                asked: url.origin().ascii_serialization(),
                meant: pattern.origin_at(url),
            }),
            (None, Some(message)) => Err(HostRefused::NoHost(message)),
            (None, None) => Err(HostRefused::Elsewhere {
                app_id: self.id.clone(),
                host: url.host_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// The entries of `hosts` for a connection, and what is wrong with one that makes none.
    fn patterns(
        &self,
        connected: Connected<'_>,
        values: Option<&Value>,
    ) -> (Vec<HostPattern>, Option<String>) {
        let fixed = self.hosts.iter().filter_map(HostRule::fixed).cloned();
        let (mut patterns, mut wrong) = (fixed.collect::<Vec<_>>(), None);
        if let (Some((connection, _)), Some(values)) = (connected, values) {
            for made in self.made_hosts(connection) {
                match made.evaluate(values) {
                    Ok(pattern) => patterns.push(pattern),
                    Err(message) => wrong = Some(message),
                }
            }
        }
        (patterns, wrong)
    }

    /// Where its base URL leads: scheme, host and port.
    fn base_origin(&self, values: Option<&Value>) -> Option<Origin> {
        let mut reach = Reach::new();
        reach.connection = values;
        let text = self.base_url.as_ref()?.text(&reach).ok()?;
        Some(Url::parse(&text).ok()?.origin())
    }

    /// Checks that the fields of a connection make hosts, as far as they have values yet.
    ///
    /// # Errors
    /// With the field that makes none.
    pub fn check_hosts(&self, connection: &Connection, data: &ConnectionData) -> Result<(), FieldProblem> {
        connection.bounds(data)?;
        let values = connection.public(data);
        for made in self.made_hosts(connection) {
            let is_known = |name: &str| values.get(name).is_some_and(|value| !value.is_null());
            if !made.fields().all(is_known) {
                continue;
            }
            made.evaluate(&values).map_err(|message| FieldProblem {
                name: made.fields().next().unwrap_or_default().to_owned(),
                message: format!("makes no host: {message}"),
            })?;
        }
        Ok(())
    }

    /// The entries of `hosts`, for people: `<shop>` is what is made of the value `shop`.
    pub(super) fn shown_hosts(&self) -> impl Iterator<Item = String> {
        self.hosts.iter().map(HostRule::to_string)
    }

    /// Whether some hosts are made of a connection's fields.
    pub(super) fn has_made_hosts(&self) -> bool {
        self.hosts.iter().any(|rule| rule.made().is_some())
    }

    /// The hosts that this connection makes: an entry that names a field of others only is not for it.
    fn made_hosts(&self, connection: &Connection) -> impl Iterator<Item = &HostTemplate> {
        let made = self.hosts.iter().filter_map(HostRule::made);
        made.filter(|made| made.fields().all(|name| connection.has_public(name)))
    }
}

impl Connection {
    /// The hosts that a credential is bound to; empty for no bound.
    fn bounds(&self, data: &ConnectionData) -> Result<Vec<HostPattern>, FieldProblem> {
        let Some(field) = &self.bound_by else {
            return Ok(Vec::new());
        };
        let text = data.shown(field);
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let patterns = entries.map(|entry| {
            HostPattern::typed(entry).ok_or_else(|| FieldProblem {
                name: field.clone(),
                message: format!(
                    "holds {entry:?}, which is no host; write names such as api.example.com or *.example.com, with commas \
                     between, perhaps with :port, and with http:// before one without encryption"
                ),
            })
        });
        patterns.collect()
    }

    /// Whether a credential is bound to this URL's host, or to none.
    fn permits(&self, url: &Url, data: &ConnectionData) -> Result<(), HostRefused> {
        let bounds = self.bounds(data);
        let bounds = bounds.map_err(|problem| HostRefused::NoHost(problem.message))?;
        if bounds.is_empty() || bounds.iter().any(|pattern| pattern.permits(url)) {
            return Ok(());
        }
        let field = self.bound_by.clone().unwrap_or_default();
        Err(HostRefused::Bound {
            asked: url.origin().ascii_serialization(),
            bound: data.shown(&field),
            field,
        })
    }
}

impl HostRule {
    /// The host of a URL, by its scheme and port.
    pub(super) fn of_url(url: &Url) -> Option<Self> {
        HostPattern::of_url(url).map(Self::Fixed)
    }

    pub(super) fn made(&self) -> Option<&HostTemplate> {
        match self {
            Self::Made(made) => Some(made),
            Self::Fixed(_) => None,
        }
    }

    fn fixed(&self) -> Option<&HostPattern> {
        match self {
            Self::Fixed(pattern) => Some(pattern),
            Self::Made(_) => None,
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(pattern) => pattern.fmt(formatter),
            Self::Made(made) => formatter.write_str(&made.shown()),
        }
    }
}

impl HostTemplate {
    fn compile(text: String) -> Result<Self, String> {
        let made = Self {
            template: Template::compile(Value::from(text.as_str()))?,
            text,
        };
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:".contains(&byte);
        let (before, after) = made.edges();
        if !before.bytes().chain(after.bytes()).all(allowed) {
            return Err(
                "around its templates, a host has lower-case letters, digits, . and - only".to_owned(),
            );
        }
        // Without the dot, a value could make another domain that ends alike.
        if !after.is_empty() && !after.starts_with(['.', ':']) {
            return Err(format!(
                "{after:?} must begin with a dot, so that the domain is fixed"
            ));
        }
        Ok(made)
    }

    /// The fields of connections that it names.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        let fields = self.template.fields();
        fields.filter_map(|(name, field)| (name == "connection").then_some(field))
    }

    fn shown(&self) -> String {
        let (before, after) = self.edges();
        let fields: Vec<&str> = self.fields().collect();
        format!("{before}<{}>{after}", fields.join(" "))
    }

    /// What stands before its first template and after its last one.
    fn edges(&self) -> (&str, &str) {
        let before = self.text.split("{{").next().unwrap_or_default();
        let after = self.text.rsplit("}}").next().unwrap_or_default();
        (before, after)
    }

    /// The host that these values make.
    fn evaluate(&self, values: &Value) -> Result<HostPattern, String> {
        let mut reach = Reach::new();
        reach.connection = Some(values);
        let text = self.template.text(&reach).map_err(|error| error.to_string())?;
        let host = HostPattern::plain(&text).ok_or_else(|| {
            format!("{text:?} is none; a host is a name such as shop.example.com, perhaps with :port, and nothing else")
        })?;
        let (before, after) = self.edges();
        let made = host.to_string();
        match made.starts_with(before) && made.ends_with(after) {
            true => Ok(host),
            false => Err(format!("{text:?} is not of the form {}", self.text)),
        }
    }
}

impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.contains("{{") {
            let made = HostTemplate::compile(text).map(Self::Made);
            return made.map_err(serde::de::Error::custom);
        }
        HostPattern::read(&text).map(Self::Fixed).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text} is no host; write a name in lower case, *.example.com, *, or one with templates of connection; http:// stands only before a name"
            ))
        })
    }
}

impl JsonSchema for HostRule {
    fn schema_name() -> Cow<'static, str> {
        "HostRule".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^(\*|(http://)?(\*\.)?[a-z0-9.-]+(:[0-9]+)?|[a-z0-9.-]*\{\{.+\}\}([.:][a-z0-9.:-]+)?)$",
            "description": "A host's name, *. and a domain, or *, which is everything. Requests go by https to port 443, \
                unless the entry begins with http:// or has a port, or baseUrl leads elsewhere at the host. {{ expressions }} over connection make a host of a credential's own: a plain name, perhaps with a port. An entry that names a field \
                that a connection has not does not count for that connection."
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn made(template: &str, site: &str) -> Result<String, String> {
        let made = HostTemplate::compile(template.to_owned()).unwrap();
        made.evaluate(&json!({ "site": site }))
            .map(|host| host.to_string())
    }

    #[test]
    fn what_is_made_is_a_plain_host() {
        let under = |site: &str| made("{{connection.site}}.vendor.test", site);
        assert_eq!(under("shop").unwrap(), "shop.vendor.test");
        assert_eq!(under("eu.Shop").unwrap(), "eu.shop.vendor.test");
        assert_eq!(under("käse").unwrap(), "xn--kse-qla.vendor.test");
        let long = "x".repeat(64);
        for site in [
            "",
            ".",
            "a.",
            "..",
            "*",
            "a/b",
            "evil.test/",
            "evil.test#",
            "evil.test?",
            "evil.test:443",
            "evil.test:443/",
            "u@evil.test",
            "u:p@evil.test",
            "evil.test\\",
            "evil.test%2f",
            "a b",
            "a\n",
            "[::1]",
            "https://a",
            "℀",
            long.as_str(),
        ] {
            assert!(under(site).is_err(), "{site:?} made {:?}", under(site));
        }
    }

    #[test]
    fn a_whole_host_may_have_a_port() {
        let whole = |site: &str| made("{{connection.site}}", site);
        for (site, host) in [
            ("git.example.com", "git.example.com"),
            ("git.example.com:8443", "git.example.com:8443"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:11434", "[::1]:11434"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(whole(site).unwrap(), host);
        }
        for site in [
            "",
            "*",
            "*.example.com",
            "a:",
            "a:x",
            "a:+1",
            "a:65536",
            "a:1:2",
            "::1",
            "[::1",
            "[x]",
            "a/",
            "a@b",
        ] {
            assert!(whole(site).is_err(), "{site:?}");
        }
        assert!(made("{{connection.site}}:8443", "a:1").is_err());
        assert_eq!(made("{{connection.site}}:8443", "a").unwrap(), "a:8443");
    }

    #[test]
    fn what_surrounds_a_template_fixes_the_domain() {
        for template in [
            "{{connection.site}}vendor.test",
            "*.{{connection.site}}",
            "{{connection.site}}.test/x",
            "https://{{connection.site}}",
        ] {
            assert!(HostTemplate::compile(template.to_owned()).is_err(), "{template}");
        }
    }
}
