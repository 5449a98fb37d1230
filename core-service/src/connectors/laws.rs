//! What holds for all manifests that come with the service.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use super::*;

/// The apps that the service promises, by id.
const PROMISED: [&str; 30] = [
    "airtable",
    "anthropic",
    "asana",
    "discord",
    "gemini",
    "github",
    "gitlab",
    "gmail",
    "google_calendar",
    "google_drive",
    "google_sheets",
    "hubspot",
    "jira",
    "linear",
    "microsoft_outlook",
    "microsoft_teams",
    "notion",
    "ollama",
    "openai",
    "openrouter",
    "pipedrive",
    "salesforce",
    "shopify",
    "slack",
    "stripe",
    "supabase",
    "telegram",
    "trello",
    "twilio",
    "whatsapp",
];
/// The fewest modules that an app is worth having with.
const FEWEST_MODULES: usize = 3;

/// What is wrong with the apps that come with the service, by this judgement of each.
fn complaints(judge: impl Fn(&App) -> Vec<String>) -> Vec<String> {
    let apps = Apps::built_in().unwrap();
    let wrong = apps.iter().flat_map(|app| {
        let wrong = judge(app).into_iter();
        wrong.map(|what| format!("{}: {what}", app.id))
    });
    wrong.collect()
}

/// The connections that hold something.
fn proving(app: &App) -> impl Iterator<Item = &Connection> {
    let connections = app.connections.iter();
    connections.filter(|connection| connection.connection_type != ConnectionType::None)
}

#[test]
fn every_promised_app_is_there_and_can_do_something() {
    let apps = Apps::built_in().unwrap();
    for id in PROMISED {
        let app = apps.find(id).unwrap_or_else(|| panic!("{id} is not there"));
        assert!(
            app.modules.len() >= FEWEST_MODULES,
            "{id} has {} modules",
            app.modules.len()
        );
    }
}

#[test]
fn every_connection_can_be_verified() {
    let wrong = complaints(|app| {
        // A driver opens a session to verify one.
        let connections = proving(app).filter(|_| app.driver.is_none());
        let silent = connections.filter(|connection| connection.verify.is_none());
        silent
            .map(|connection| format!("{} has no verify", connection.id))
            .collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_trigger_that_polls_stops_at_its_first_page() {
    let wrong = complaints(|app| {
        let reads_on = |module: &Module, poll: &Poll| match &app.driver {
            Some(driver) => poll.limit.is_some() || !has_limit(driver, module),
            None => module.pagination.is_some() || poll.whole,
        };
        let modules = app.modules.iter();
        let polls = modules.filter_map(|module| Some((module, module.poll.as_ref()?)));
        // The service of an app without a baseUrl is one that nobody knows, and so is how its lists go on.
        let polls = polls.filter(|_| app.base_url.is_some() || app.driver.is_some());
        let short = polls.filter(|(module, poll)| !reads_on(module, poll));
        short
            .map(|(module, _)| format!("{} misses what is on its second page", module.id))
            .collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether the list of a module's operation may be cut.
fn has_limit(driver: &str, module: &Module) -> bool {
    let driver = crate::native::driver(driver).unwrap();
    let operation = module
        .operation
        .as_deref()
        .and_then(|name| driver.operation(name));
    operation.unwrap().parameters().any(|name| name == "limit")
}

#[test]
fn every_request_of_every_app_is_rehearsed() {
    let wrong = complaints(|app| {
        if app.driver.is_some() {
            return Vec::new();
        }
        let rehearsed = |subject: fn(&Trial) -> Option<&String>| -> BTreeSet<&str> {
            app.tests.iter().filter_map(subject).map(String::as_str).collect()
        };
        let modules = rehearsed(|trial| trial.module.as_ref());
        let rpcs = rehearsed(|trial| trial.rpc.as_ref());
        let verified = rehearsed(|trial| trial.verify.as_ref());
        let modules = app
            .modules
            .iter()
            .filter(|module| !modules.contains(module.id.as_str()));
        let rpcs = app.rpcs.iter().filter(|rpc| !rpcs.contains(rpc.id.as_str()));
        let connections = proving(app).filter(|connection| !verified.contains(connection.id.as_str()));
        let modules = modules.map(|module| format!("no test of the module {}", module.id));
        let rpcs = rpcs.map(|rpc| format!("no test of the rpc {}", rpc.id));
        let connections = connections.map(|connection| format!("no test of verify of {}", connection.id));
        modules.chain(rpcs).chain(connections).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
