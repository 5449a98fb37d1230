//! Whether a manifest that has the form makes sense: what it refers to is there, and what it names can be reached.

mod connection;
mod driver;
mod module;
mod place;

use std::collections::{BTreeSet, HashSet};

use url::Url;

use super::connection::Connection;
use super::field::Field;
use super::host::{HostRefused, HostRule};
use super::manifest::{App, ManifestProblem, VERSION};
use super::template::Template;
use super::trial::Trial;
use place::Place;

/// The most characters of an id and of the app's name.
const LONGEST_ID: usize = 100;
const LONGEST_NAME: usize = 200;

/// Everything that makes no sense.
pub(super) fn problems(app: &App) -> Vec<ManifestProblem> {
    let mut check = Check {
        app,
        public: app.connections.iter().flat_map(public_names).collect(),
        problems: Vec::new(),
    };
    check.app();
    check.problems
}

/// The values of a connection that requests reach.
fn public_names(connection: &Connection) -> impl Iterator<Item = &str> {
    let fields = connection.fields.iter().filter(|field| !field.secret);
    fields.map(|field| field.name.as_str()).chain(connection.kept())
}

struct Check<'a> {
    app: &'a App,
    /// The values of all connections that requests reach.
    public: BTreeSet<&'a str>,
    problems: Vec<ManifestProblem>,
}

impl<'a> Check<'a> {
    fn report(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ManifestProblem {
            path: path.into(),
            message: message.into(),
        });
    }

    fn app(&mut self) {
        let app = self.app;
        if app.version != VERSION {
            let message = format!("version {} is not known, only {VERSION}", app.version);
            self.report("manifest", message);
        }
        self.id("id", &app.id);
        if app.name.is_empty()
            || app.name.chars().count() > LONGEST_NAME
            || app.name.chars().any(char::is_control)
        {
            let message =
                format!("must have from 1 to {LONGEST_NAME} characters, none of them a control character");
            self.report("name", message);
        }
        match &app.driver {
            Some(driver) => self.driver(driver),
            None => self.base_url(),
        }
        self.limits();
        let connection = Place::of_connection(self.public.clone());
        self.template("baseUrl", app.base_url.as_ref(), &connection);
        self.hosts(&connection);
        self.template("headers", app.headers.as_ref(), &connection);
        self.rules("errors", &app.errors, &connection.with("response"));
        self.ids("connections", app.connections.iter().map(|one| one.id.as_str()));
        self.ids("modules", app.modules.iter().map(|one| one.id.as_str()));
        self.ids("rpcs", app.rpcs.iter().map(|one| one.id.as_str()));
        for connection in &app.connections {
            self.connection(connection);
        }
        for module in &app.modules {
            self.module(module);
        }
        for rpc in &app.rpcs {
            self.rpc(rpc);
        }
        for trial in &app.tests {
            self.trial(trial);
        }
    }

    fn id(&mut self, path: &str, id: &str) {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if id.is_empty() || !id.bytes().all(allowed) {
            let message = format!("{id:?} must be of lower-case letters, digits and underscores");
            self.report(path, message);
        } else if id.len() > LONGEST_ID {
            self.report(path, format!("must have at most {LONGEST_ID} characters"));
        }
    }

    fn ids(&mut self, path: &str, ids: impl Iterator<Item = &'a str>) {
        let mut seen = HashSet::new();
        for id in ids {
            self.id(path, id);
            if !seen.insert(id) {
                self.report(path, format!("the id {id} stands twice"));
            }
        }
    }

    fn base_url(&mut self) {
        if self.app.hosts.is_empty() {
            let message = "is required: the hosts that requests may go to, because baseUrl does not name one";
            self.report("hosts", message);
        }
        if let Some(base_url) = self.app.base_url.as_ref() {
            self.url("baseUrl", base_url);
        }
    }

    fn hosts(&mut self, place: &Place<'a>) {
        let app = self.app;
        for made in app.hosts.iter().filter_map(HostRule::made) {
            self.template("hosts", Some(&made.template), place);
            let names: Vec<&str> = made.fields().collect();
            let is_for = |connection: &Connection| names.iter().all(|name| connection.has_public(name));
            if names.is_empty() {
                self.report("hosts", "a host with templates names a field of connection");
            } else if !app.connections.iter().any(is_for) {
                self.report("hosts", format!("no connection has all of {}", names.join(", ")));
            }
        }
    }

    /// A URL, as far as it is known already.
    fn url(&mut self, path: &str, template: &Template) {
        let Some(text) = template.literal() else { return };
        let Some(url) = Url::parse(text).ok().filter(Url::has_host) else {
            return self.report(path, format!("{text:?} is no URL; it begins with https://"));
        };
        match self.app.permits(&url, None) {
            Ok(()) => {}
            Err(HostRefused::Otherwise { asked, meant, .. }) => {
                let message = format!(
                    "leads to {asked}, and hosts permits {meant}; an entry with http:// or with a port says otherwise"
                );
                self.report(path, message);
            }
            Err(HostRefused::Elsewhere { .. } | HostRefused::NoHost(_) | HostRefused::Bound { .. }) => {
                let host = url.host_str().unwrap_or_default();
                self.report(path, format!("leads to {host}, which hosts does not permit"));
            }
        }
    }

    fn limits(&mut self) {
        if self
            .app
            .rate_limit
            .is_some_and(|limit| limit.requests == 0 || limit.seconds == 0)
        {
            self.report("rateLimit", "requests and seconds must be 1 or more");
        }
        if self
            .app
            .retry
            .is_some_and(|retry| !(2..=10).contains(&retry.max_attempts))
        {
            self.report("retry.maxAttempts", "must be from 2 to 10");
        }
    }

    fn fields(&mut self, path: &str, fields: &'a [Field]) {
        let mut seen = HashSet::new();
        for field in fields {
            let path = format!("{path}.{}", field.name);
            if !seen.insert(field.name.as_str()) {
                self.report(&path, "stands twice");
            }
            if let Some(Err(problem)) = field.default.as_ref().map(|default| field.check(default)) {
                self.report(format!("{path}.default"), problem.message);
            }
        }
    }

    fn trial(&mut self, trial: &'a Trial) {
        let path = format!("tests[{}]", trial.name);
        let subjects = [
            trial
                .module
                .as_ref()
                .map(|id| ("module", self.app.module(id).is_some())),
            trial.rpc.as_ref().map(|id| ("rpc", self.app.rpc(id).is_some())),
            trial
                .verify
                .as_ref()
                .map(|id| ("verify", self.app.connection(id).is_some())),
        ];
        let mut named = 0;
        for (name, is_known) in subjects.into_iter().flatten() {
            named += 1;
            if !is_known {
                self.report(format!("{path}.{name}"), "names nothing that the app has");
            }
        }
        if named != 1 {
            self.report(&path, "must name one of module, rpc and verify");
        }
        let named = trial.module.as_ref().and_then(|id| self.app.module(id));
        let is_called = named.is_some_and(|module| module.webhook.is_some());
        if is_called != trial.webhook.is_some() {
            self.report(
                format!("{path}.webhook"),
                "belongs to tests of triggers with a webhook, and to each of them",
            );
        }
        if (trial.detach || trial.delivery.is_some()) && trial.webhook.is_none() {
            self.report(&path, "detach and delivery need webhook");
        }
        let used = trial.connection.as_ref();
        if used.is_some_and(|used| self.app.connection(&used.id).is_none()) {
            self.report(format!("{path}.connection.id"), "names no connection of the app");
        }
    }
}
