//! Rehearsals: the tests inside a manifest, run without a network, on the very requests that would be sent.

#[cfg(test)]
mod replay;
mod request;
mod webhook;

use std::time::Duration;

use engine::failure::NodeError;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use self::request::{Proof, Sent};
use super::Call;
use super::output::{self, unreadable};
use crate::connectors::{
    App, Connected, Connection, ConnectionData, DynamicOptions, Grant, Listed, Poll, Step, TemplateError,
    Trial, TrialExchange, TrialResponse, Walk,
};
use crate::outbound::{Request, Response};

const PATIENCE: Duration = Duration::from_secs(1);

/// What keeps an app from doing what its own tests say; empty when all of them pass.
pub fn failures(app: &App) -> Vec<String> {
    let failed = app.tests.iter().filter_map(|trial| {
        let message = run(app, trial).err()?;
        Some(format!("tests[{}]: {message}", trial.name))
    });
    failed.collect()
}

/// Runs one test. Says what is not as expected.
fn run(app: &App, trial: &Trial) -> Result<(), String> {
    let connected = connected(app, trial)?;
    let data = connected.as_ref().map(|(connection, data)| (*connection, data));
    let grant = data.map(|(connection, data)| connection.grant(data)).transpose();
    let stage = Stage {
        app,
        trial,
        connected: data,
        grant: grant.map_err(|error| error.to_string())?,
    };
    let text = |error: TemplateError| error.to_string();
    if let Some(id) = &trial.module {
        let module = app.module(id).ok_or("the module is not there")?;
        for (name, value) in &trial.parameters {
            let known = module.fields.iter().any(|field| field.name == *name);
            let checked = module.check(name, value).map_err(|problem| problem.message);
            checked
                .and(known.then_some(()).ok_or("is no field".to_owned()))
                .map_err(|message| format!("parameters.{name} {message}"))?;
        }
        if let Some(webhook) = &trial.webhook {
            return stage.listen(module, trial, webhook);
        }
        let outcome = match app.begin(module, &trial.parameters, data) {
            Ok(walk) => stage.perform(walk, &trial.exchanges)?,
            Err(error) if trial.exchanges.is_empty() => Err(NodeError::expression(error.to_string())),
            Err(error) => return Err(format!("makes no request: {error}")),
        };
        let outcome = match (&module.poll, outcome) {
            (Some(poll), Ok(Value::Array(items))) => {
                let parameters = module.with_defaults(&trial.parameters);
                Ok(accepted(poll, &parameters, items).map_err(text)?)
            }
            (_, outcome) => outcome,
        };
        let items = trial.items.clone().map(Value::Array);
        return compare(trial, outcome, trial.output.clone().or(items));
    }
    if let Some(id) = &trial.rpc {
        let rpc = app.rpc(id).ok_or("the rpc is not there")?;
        let walk = app.ask(rpc, trial.parameters.clone(), data).map_err(text)?;
        let outcome = stage.perform(walk, &trial.exchanges)?;
        let choices = outcome.and_then(|listed| {
            let choices = rpc.choices(&Listed::of_walk(listed));
            choices.map_err(|error| unreadable(&error))
        });
        if let Some(choices) = choices
            .as_ref()
            .ok()
            .filter(|choices| choices.truncated != trial.truncated)
        {
            return Err(format!("gives truncated: {}", choices.truncated));
        }
        return compare(trial, choices.map(shown), trial.options.clone().map(Value::Array));
    }
    let (connection, data) = data.ok_or("verify needs a connection")?;
    let walk = app.verify(connection, data).map_err(text)?;
    let walk = walk.ok_or("the connection has nothing to verify")?;
    let outcome = stage.perform(walk, &trial.exchanges)?;
    compare(trial, outcome.map(|_| Value::Null), None)
}

/// The items that start runs. The trigger has to tell all from each other, and their order.
fn accepted(poll: &Poll, parameters: &Value, items: Vec<Value>) -> Result<Value, TemplateError> {
    let mut accepted = Vec::with_capacity(items.len());
    for item in items {
        poll.key(&item, parameters)?;
        poll.order(&item, parameters)?;
        if poll.accepts(&item, parameters)? {
            accepted.push(item);
        }
    }
    Ok(Value::Array(accepted))
}

/// Choices as tests write them.
fn shown(choices: DynamicOptions) -> Value {
    let choices = choices.items.into_iter();
    choices
        .map(|choice| json!({ "value": choice.value, "label": choice.label }))
        .collect()
}

fn connected<'a>(app: &'a App, trial: &Trial) -> Result<Option<(&'a Connection, ConnectionData)>, String> {
    let (id, values) = match (&trial.connection, &trial.verify) {
        (Some(used), _) => (&used.id, used.values.clone()),
        (None, Some(id)) => (id, serde_json::Map::new()),
        (None, None) => return Ok(None),
    };
    let connection = app.connection(id).ok_or("the connection is not there")?;
    let data = connection.read_whole(values).map_err(|problems| {
        let problems = problems
            .into_iter()
            .map(|one| format!("{} {}", one.name, one.message));
        format!("connection.values: {}", problems.collect::<Vec<_>>().join("; "))
    })?;
    Ok(Some((connection, data)))
}

fn compare(trial: &Trial, outcome: Result<Value, NodeError>, expected: Option<Value>) -> Result<(), String> {
    match (outcome, &trial.error) {
        (Ok(output), None) => match expected {
            Some(expected) if expected != output => Err(format!("gives {output}\n  and not {expected}")),
            _ => Ok(()),
        },
        (Ok(output), Some(error)) => Err(format!("gives {output} and does not fail with {}", error.code)),
        (Err(failure), None) => Err(format!("fails: {failure}")),
        (Err(failure), Some(error)) => {
            let says = error.message.as_deref().unwrap_or_default();
            match failure.code == error.code && failure.message.contains(says) {
                true => Ok(()),
                false => Err(format!(
                    "fails with {failure}\n  and not with {}: {says}",
                    error.code
                )),
            }
        }
    }
}

/// Where a module performs: what its requests are made with.
struct Stage<'a> {
    app: &'a App,
    trial: &'a Trial,
    connected: Connected<'a>,
    grant: Option<Grant>,
}

impl Stage<'_> {
    /// The outer result says what is not as expected, the inner one what came of the module.
    fn perform(
        &self,
        mut walk: Walk<'_>,
        exchanges: &[TrialExchange],
    ) -> Result<Result<Value, NodeError>, String> {
        let mut exchanges = exchanges.iter();
        loop {
            let call = match Call::read(walk.call().clone()) {
                Ok(call) => call,
                Err(error) => return Ok(Err(error)),
            };
            let number = walk.page();
            let Some(exchange) = exchanges.next() else {
                return Err(format!(
                    "asks for request {number}, which the test does not expect: {}",
                    walk.call()
                ));
            };
            let request = self.request(&call)?;
            let url = self.url(&request);
            let sent = Sent {
                method: &request.method,
                url: &url,
                headers: &request.headers,
                body: &request.body,
            };
            let proof = Proof::of(self.trial, self.grant.as_ref());
            request::check(&sent, &exchange.request, &proof)
                .map_err(|message| format!("request {number}: {message}"))?;
            let ended = self.hear(&mut walk, &call, &exchange.response)?;
            if let Some(outcome) = ended {
                return match exchanges.next() {
                    None => Ok(outcome),
                    Some(_) => Err(format!("makes {number} requests and not more")),
                };
            }
        }
    }

    fn request(&self, call: &Call) -> Result<Request, String> {
        let url = call.url().map_err(|error| error.message)?;
        let permitted = self.app.permits(&url, self.connected);
        permitted.map_err(|refused| refused.to_string())?;
        let mut request = call.request(url, PATIENCE).map_err(|error| error.message)?;
        for (name, value) in self.grant.iter().flat_map(|grant| &grant.secrets.headers) {
            request.headers.insert(name.clone(), value.clone());
        }
        Ok(request)
    }

    fn url(&self, request: &Request) -> Url {
        match &self.grant {
            Some(grant) => grant.secrets.join(request.url.clone()),
            None => request.url.clone(),
        }
    }

    /// What the module makes of an answer; nothing when it asks for more.
    fn hear(
        &self,
        walk: &mut Walk<'_>,
        call: &Call,
        given: &TrialResponse,
    ) -> Result<Option<Result<Value, NodeError>>, String> {
        let response = response(given)?;
        let body = output::body(&response, call.response_type).map_err(|error| error.message)?;
        let answer = output::of(&response, body, Duration::ZERO);
        let by_status = output::failure(call, &response, |_| {});
        match walk.failure(&answer) {
            Ok(None) => {}
            Ok(Some(told)) => return Ok(Some(Err(output::named(by_status, told)))),
            Err(error) => return Ok(Some(Err(unreadable(&error)))),
        }
        if call.fails_on_status() && response.status.as_u16() >= 400 {
            return Ok(Some(Err(by_status)));
        }
        Ok(match walk.take(&answer, &answer) {
            Ok(Step::Done(output)) => Some(Ok(output)),
            Ok(Step::Again) => None,
            Err(error) => Some(Err(unreadable(&error))),
        })
    }
}

fn response(given: &TrialResponse) -> Result<Response, String> {
    let mut headers = HeaderMap::new();
    let mut body = Vec::new();
    match &given.body {
        None => {}
        Some(Value::String(text)) => body = text.clone().into_bytes(),
        Some(value) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body = value.to_string().into_bytes();
        }
    }
    for (name, value) in &given.headers {
        let name = HeaderName::try_from(name).map_err(|_| format!("{name} is no header"))?;
        let value = HeaderValue::try_from(value).map_err(|_| format!("{value:?} is no header's value"))?;
        headers.insert(name, value);
    }
    Ok(Response {
        status: StatusCode::from_u16(given.status).map_err(|_| format!("{} is no status", given.status))?,
        headers,
        body: body.into(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::connectors::{Apps, Order};

    #[test]
    fn every_built_in_app_passes_its_own_tests() {
        let apps = Apps::built_in().map_err(|error| error.to_string());
        let apps = apps.unwrap_or_else(|error| panic!("{error}"));
        let failed = apps.iter().flat_map(|app| {
            let failed = failures(app).into_iter();
            failed.map(move |message| format!("{}: {message}", app.id))
        });
        let failed: Vec<String> = failed.collect();
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    }

    /// The manifest that the documentation shows.
    fn documented() -> &'static str {
        let text = include_str!("../../../../docs/connectors.md");
        let blocks = text.split("```yaml\n").skip(1);
        let mut blocks = blocks.filter_map(|block| block.split("```").next());
        blocks.find(|block| block.starts_with("manifest:")).unwrap()
    }

    #[test]
    fn the_documented_app_passes_its_own_tests() {
        let app = App::read(documented()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(failures(&app), [""; 0]);
        assert!(app.tests.len() >= app.modules.len());
    }

    /// What an app says of the order of its items is true of those in its tests, which are the service's own.
    #[test]
    fn items_come_in_the_order_that_their_apps_say() {
        let apps = Apps::built_in().unwrap();
        for app in apps.iter() {
            for trial in &app.tests {
                let module = trial.module.as_ref().and_then(|id| app.module(id));
                let Some((module, poll)) = module.and_then(|module| Some((module, module.poll.as_ref()?)))
                else {
                    continue;
                };
                let parameters = module.with_defaults(&trial.parameters);
                let order = |item| poll.order(item, &parameters).unwrap();
                let orders: Vec<_> = trial.items.iter().flatten().map(order).collect();
                let place = format!("{}, {}: {orders:?}", app.id, trial.name);
                assert!(
                    !poll.is_ordered() || orders.iter().all(Option::is_some),
                    "{place}"
                );
                let mut pairs = orders.windows(2);
                assert!(pairs.all(|pair| !is_below(&pair[0], &pair[1])), "{place}");
            }
        }
    }

    fn is_below(one: &Option<Order>, other: &Option<Order>) -> bool {
        matches!((one, other), (Some(one), Some(other)) if one.is_below(other))
    }

    /// What the documented app's tests say after one of them was changed.
    fn changed(right: &str, wrong: &str) -> Vec<String> {
        let text = documented().replacen(right, wrong, 1);
        assert_ne!(text, documented(), "{right}");
        failures(&App::read(&text).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_test_names_what_proves_the_connection() {
        let failed = changed(", headers: { x-api-key: k-1 }", "");
        assert!(
            failed[0].contains("the header x-api-key is k-1, and the test does not name it"),
            "{failed:?}"
        );
        let failed = changed("headers: { x-api-key: k-1 }", "headers: { x-api-key: k-2 }");
        assert!(
            failed[0].contains("the header x-api-key is k-1\n  and not k-2"),
            "{failed:?}"
        );
    }

    #[test]
    fn a_body_is_of_its_content_type() {
        let request = "      path: /customers\n      body: {";
        let failed = changed(request, &request.replace("body", "bodyType: form\n      body"));
        let says = "the content type is application/x-www-form-urlencoded\n  and not application/json";
        assert!(failed.len() == 1 && failed[0].contains(says), "{failed:?}");
    }

    #[test]
    fn a_test_that_expects_something_else_fails() {
        for (right, wrong, says) in [
            (
                "path: /v2/customers, body",
                "path: /v3/customers, body",
                "the path is /v2/customers",
            ),
            ("method: POST, path", "method: PUT, path", "the method is POST"),
            (
                "body: { name: Ada } }",
                "body: { name: Eva } }",
                "the body is {\"name\":\"Ada\"}",
            ),
            (
                "x-api-key: k-1, accept",
                "x-api-key: k-2, accept",
                "the header x-api-key is k-1",
            ),
            ("after: p2 }", "after: p3 }", "request 2: the query is"),
            (
                "output: { id: c8 }",
                "output: { id: c9 }",
                "gives {\"id\":\"c8\"}",
            ),
            ("next: null", "next: p3", "asks for request 3"),
            (
                "parameters: { name: Ada }",
                "parameters: { nam: Ada }",
                "parameters.nam is no field",
            ),
            (
                "key: \"{{$item.id}}\", order",
                "key: \"{{$item.number}}\", order",
                "an item has no key",
            ),
            (
                "order: \"{{$item.id}}\", every",
                "order: \"{{$item}}\", every",
                "an item's order is neither",
            ),
            (
                "message: unknown key }",
                "message: other }",
                "fails with CREDENTIAL_INVALID",
            ),
        ] {
            let failed = changed(right, wrong);
            assert!(
                failed.len() == 1 && failed[0].contains(says),
                "{failed:?} has not {says}"
            );
        }
    }
}
