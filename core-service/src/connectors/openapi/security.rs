//! Security schemes: ways to connect, and which operations need one.

use std::collections::BTreeSet;

use http::HeaderName;
use serde_json::{Value, json};

use super::document::Part;
use super::name::{self, Names};
use super::server::{Server, host};
use super::{LONGEST_TEXT, Warnings};

/// The ways to connect.
pub(super) struct Security<'d> {
    /// As manifests write them.
    pub(super) connections: Vec<Value>,
    /// Where requests may go.
    pub(super) hosts: Vec<String>,
    /// Sets of schemes that one connection stands for.
    usable: Vec<BTreeSet<&'d str>>,
    /// What connections add: the place and the name of parameters that are none then.
    brought: Vec<(&'d str, &'d str)>,
    /// Of the document as a whole; an operation's own takes its place.
    general: Option<&'d Value>,
}

/// What an operation needs.
pub(super) enum Need {
    Required,
    Optional,
    /// It needs what no connection brings.
    Unknown,
}

impl<'d> Security<'d> {
    pub(super) fn of(root: &Part<'d>, server: &Server, warnings: &mut Warnings) -> Self {
        let mut security = Self {
            connections: Vec::new(),
            hosts: vec![server.host()],
            usable: Vec::new(),
            brought: Vec::new(),
            general: root.value.get("security"),
        };
        let Some(components) = root.member("components", warnings) else {
            return security;
        };
        let schemes = components.members("securitySchemes", warnings);
        let asked = asked(root.value);
        let mut ids = Names::default();
        for (called, scheme) in &schemes {
            security.add(called, scheme, server, &asked, &mut ids, warnings);
        }
        security.add_combined(&schemes, &asked, &mut ids);
        security
    }

    /// What an operation needs.
    pub(super) fn need(&self, operation: &Part<'_>) -> Need {
        let said = operation.value.get("security").or(self.general);
        let alternatives = said.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let sets: Vec<BTreeSet<&str>> = alternatives.iter().map(schemes_of).collect();
        match sets.is_empty() || sets.iter().any(BTreeSet::is_empty) {
            true => Need::Optional,
            false
                if sets
                    .iter()
                    .any(|set| self.usable.iter().any(|usable| usable == set)) =>
            {
                Need::Required
            }
            false => Need::Unknown,
        }
    }

    /// Whether a connection brings this parameter.
    pub(super) fn brings(&self, place: &str, name: &str) -> bool {
        self.brought.contains(&(place, name))
    }

    fn add(
        &mut self,
        called: &'d str,
        scheme: &Part<'d>,
        server: &Server,
        asked: &[(BTreeSet<&'d str>, Vec<&'d str>)],
        ids: &mut Names,
        warnings: &mut Warnings,
    ) {
        let kind = scheme.text("type").unwrap_or_default();
        let http = scheme.text("scheme").unwrap_or_default().to_ascii_lowercase();
        let made = match (kind, http.as_str()) {
            ("apiKey", _) => self.api_key(scheme),
            ("http", "basic") => Ok(json!({ "type": "basic" })),
            ("http", "bearer") => Ok(json!({ "type": "bearer" })),
            ("oauth2", _) => {
                let scopes = scopes_of(called, asked);
                return self.add_oauth2(called, scheme, &scopes, server, ids, warnings);
            }
            ("http", other) => Err(format!("the scheme {other} of HTTP cannot be spoken")),
            (other, _) => Err(format!("the type {other} has no way to connect")),
        };
        match made {
            Ok(made) => {
                self.usable.push(BTreeSet::from([called]));
                let id = ids.unique(connection_id(called));
                self.connections.push(connection(id, called, scheme, made));
            }
            Err(why) => warnings.say(&scheme.place, format!("is left out: {why}")),
        }
    }

    fn api_key(&mut self, scheme: &Part<'d>) -> Result<Value, String> {
        let (to, header) = place_of(scheme).ok_or("keys go into a header or the query")?;
        self.brought.push((to, header));
        Ok(json!({
            "type": "api_key",
            "fields": [key_field("key", "Key")],
            "apply": [{ "to": to, "name": name::literal(header), "value": "{{connection.key}}" }],
        }))
    }

    /// A connection for keys that operations ask for together.
    fn add_combined(
        &mut self,
        schemes: &[(&'d str, Part<'d>)],
        asked: &[(BTreeSet<&'d str>, Vec<&'d str>)],
        ids: &mut Names,
    ) {
        for (set, _) in asked.iter().filter(|(set, _)| set.len() > 1) {
            let members: Vec<_> = schemes
                .iter()
                .filter(|(called, _)| set.contains(called))
                .collect();
            let places: Option<Vec<_>> = members.iter().map(|(_, scheme)| place_of(scheme)).collect();
            let Some(places) = places.filter(|places| places.len() == set.len()) else {
                continue;
            };
            if self.usable.contains(set) {
                continue;
            }
            let mut names = Names::default();
            let (mut fields, mut apply, mut called) = (Vec::new(), Vec::new(), Vec::new());
            for ((scheme, _), (to, header)) in members.iter().zip(places) {
                let name = names.unique(name::variable(scheme));
                apply
                    .push(json!({ "to": to, "name": name::literal(header), "value": format!("{{{{connection.{name}}}}}") }));
                fields.push(key_field(&name, &name::label(scheme)));
                called.push(*scheme);
            }
            let called = called.join(" and ");
            self.connections.push(json!({
                "id": ids.unique(connection_id(&called)),
                "label": name::label(&called),
                "type": "api_key",
                "fields": fields,
                "apply": apply,
            }));
            self.usable.push(set.clone());
        }
    }

    fn add_oauth2(
        &mut self,
        called: &'d str,
        scheme: &Part<'d>,
        asked: &BTreeSet<&str>,
        server: &Server,
        ids: &mut Names,
        warnings: &mut Warnings,
    ) {
        for (flow, part) in scheme.members("flows", warnings) {
            let connection_type = match flow {
                "authorizationCode" => "oauth2_authorization_code",
                "clientCredentials" => "oauth2_client_credentials",
                other => {
                    warnings.say(
                        &part.place,
                        format!("is left out: the flow {other} is out of use"),
                    );
                    continue;
                }
            };
            let url = |name: &str| part.text(name).and_then(|text| server.join(text));
            let Some(token_url) = url("tokenUrl") else {
                warnings.say(&part.place, "is left out: its tokenUrl is no URL");
                continue;
            };
            let mut oauth2 = json!({ "tokenUrl": token_url.as_str() });
            let mut hosts = vec![host(&token_url)];
            if flow == "authorizationCode" {
                let Some(authorize_url) = url("authorizationUrl") else {
                    warnings.say(&part.place, "is left out: its authorizationUrl is no URL");
                    continue;
                };
                oauth2["authorizeUrl"] = json!(authorize_url.as_str());
            }
            if let Some(refresh_url) = url("refreshUrl") {
                oauth2["refreshUrl"] = json!(refresh_url.as_str());
                hosts.push(host(&refresh_url));
            }
            let known = part.value.get("scopes").and_then(Value::as_object);
            let known = known.into_iter().flatten().map(|(scope, _)| scope.as_str());
            let scopes: Vec<&str> = known
                .filter(|scope| asked.is_empty() || asked.contains(scope))
                .collect();
            oauth2["scopes"] = json!(scopes);
            for host in hosts {
                if !self.hosts.contains(&host) {
                    self.hosts.push(host);
                }
            }
            let made = json!({ "type": connection_type, "oauth2": oauth2 });
            let id = ids.unique(connection_id(called));
            self.connections.push(connection(id, called, scheme, made));
            self.usable.push(BTreeSet::from([called]));
        }
    }
}

fn connection(id: String, called: &str, scheme: &Part<'_>, made: Value) -> Value {
    let described = scheme
        .text("description")
        .map(|text| name::short(text, LONGEST_TEXT));
    let label = match described {
        Some(text) if text.chars().count() <= 60 => text,
        _ => name::label(called),
    };
    let mut connection = json!({ "id": id, "label": label });
    if let (Value::Object(connection), Value::Object(made)) = (&mut connection, made) {
        connection.extend(made);
    }
    connection
}

fn connection_id(called: &str) -> String {
    Some(name::id(called))
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| "connection".to_owned())
}

fn key_field(name: &str, label: &str) -> Value {
    json!({ "name": name, "label": label, "type": "text", "required": true, "secret": true })
}

/// Where a key goes, when that is a header or the query.
fn place_of<'d>(scheme: &Part<'d>) -> Option<(&'d str, &'d str)> {
    let (place, name) = (scheme.text("in")?, scheme.text("name")?);
    let is_place = match place {
        "header" => HeaderName::try_from(name).is_ok(),
        other => other == "query",
    };
    (is_place && scheme.text("type") == Some("apiKey")).then_some((place, name))
}

/// The sets of schemes that the document asks for, each with the scopes of its members.
fn asked(root: &Value) -> Vec<(BTreeSet<&str>, Vec<&str>)> {
    let mut all = vec![root.get("security")];
    let paths = root.get("paths").and_then(Value::as_object);
    for path in paths
        .into_iter()
        .flatten()
        .filter_map(|(_, path)| path.as_object())
    {
        all.extend(path.values().map(|operation| operation.get("security")));
    }
    let alternatives = all.into_iter().flatten().filter_map(Value::as_array).flatten();
    let mut sets: Vec<(BTreeSet<&str>, Vec<&str>)> = Vec::new();
    for alternative in alternatives {
        let set = schemes_of(alternative);
        let scopes = alternative.as_object().into_iter().flatten();
        let scopes = scopes.filter_map(|(_, scopes)| scopes.as_array()).flatten();
        let scopes = scopes.filter_map(Value::as_str);
        match sets.iter_mut().find(|(known, _)| *known == set) {
            Some((_, known)) => {
                for scope in scopes {
                    if !known.contains(&scope) {
                        known.push(scope);
                    }
                }
            }
            None => sets.push((set, scopes.collect())),
        }
    }
    sets
}

/// The scopes that operations ask of a scheme.
fn scopes_of<'d>(scheme: &str, asked: &[(BTreeSet<&'d str>, Vec<&'d str>)]) -> BTreeSet<&'d str> {
    let of_scheme = asked.iter().filter(|(set, _)| set.contains(scheme));
    of_scheme.flat_map(|(_, scopes)| scopes).copied().collect()
}

fn schemes_of(alternative: &Value) -> BTreeSet<&str> {
    let names = alternative.as_object().into_iter().flatten();
    names.map(|(name, _)| name.as_str()).collect()
}
