//! Rehearsals: the tests inside a manifest, run without a network, on the very requests that would be sent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use engine::failure::NodeError;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::{Call, output, unreadable};
use crate::connectors::{
    App, Connected, Connection, ConnectionData, Grant, Step, Trial, TrialExchange, TrialRequest,
    TrialResponse, Walk,
};
use crate::outbound::{Request, Response};
use crate::secret::Mask;

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
        connected: data,
        grant: grant.map_err(|error| error.to_string())?,
    };
    let text = |error: crate::connectors::TemplateError| error.to_string();
    if let Some(id) = &trial.module {
        let module = app.module(id).ok_or("the module is not there")?;
        for (name, value) in &trial.parameters {
            let known = module.fields.iter().any(|field| field.name == *name);
            let checked = module.check(name, value).map_err(|problem| problem.message);
            checked
                .and(known.then_some(()).ok_or("is no field".to_owned()))
                .map_err(|message| format!("parameters.{name} {message}"))?;
        }
        let walk = app.begin(module, &trial.parameters, data).map_err(text)?;
        let outcome = stage.perform(walk, &trial.exchanges)?;
        let items = trial.items.clone().map(Value::Array);
        return compare(trial, outcome, trial.output.clone().or(items));
    }
    if let Some(id) = &trial.rpc {
        let rpc = app.rpc(id).ok_or("the rpc is not there")?;
        let walk = app.ask(rpc, trial.parameters.clone(), data).map_err(text)?;
        let outcome = stage.perform(walk, &trial.exchanges)?;
        let outcome = outcome.and_then(|items| {
            let choices = rpc.choices(items.as_array().map_or(&[], Vec::as_slice));
            let choices = choices.map_err(|error| unreadable(&error))?.items.into_iter();
            let shown = choices.map(|choice| json!({ "value": choice.value, "label": choice.label }));
            Ok(Value::Array(shown.collect()))
        });
        return compare(trial, outcome, trial.options.clone().map(Value::Array));
    }
    let (connection, data) = data.ok_or("verify needs a connection")?;
    let walk = app.verify(connection, data).map_err(text)?;
    let walk = walk.ok_or("the connection has nothing to verify")?;
    let outcome = stage.perform(walk, &trial.exchanges)?;
    compare(trial, outcome.map(|_| Value::Null), None)
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
            check(&request, &self.url(&request), &exchange.request)
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
        let by_status = output::failure(call, &response, &Mask::default());
        match walk.failure(&answer) {
            Ok(None) => {}
            Ok(Some(told)) => return Ok(Some(Err(output::named(by_status, told)))),
            Err(error) => return Ok(Some(Err(unreadable(&error)))),
        }
        if call.fails_on_status() && response.status.as_u16() >= 400 {
            return Ok(Some(Err(by_status)));
        }
        Ok(match walk.take(&answer) {
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

/// Compares a request that would be sent with the one that is expected.
fn check(request: &Request, url: &Url, expected: &TrialRequest) -> Result<(), String> {
    let mut wrong = String::new();
    let mut differs = |what: &str, found: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display| {
        let _ = write!(wrong, "{what} is {found}\n  and not {wanted}; ");
    };
    if Method::try_from(expected.method.as_str()).ok().as_ref() != Some(&request.method) {
        differs("the method", &request.method, &expected.method);
    }
    if url.path() != expected.path {
        differs("the path", &url.path(), &expected.path);
    }
    if let Some(host) = &expected.host
        && url.host_str() != Some(host)
    {
        differs("the host", &url.host_str().unwrap_or_default(), host);
    }
    let (query, wanted) = (query(url), json!(expected.query));
    if query != wanted {
        differs("the query", &query, &wanted);
    }
    for (name, wanted) in &expected.headers {
        let found = request
            .headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        if found.as_deref() != Some(wanted) {
            differs(
                &format!("the header {name}"),
                &found.unwrap_or("absent".into()),
                wanted,
            );
        }
    }
    let (body, wanted) = (body(request), expected.body.clone().unwrap_or_default());
    if body != wanted {
        differs("the body", &body, &wanted);
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.trim_end_matches("; ").to_owned()),
    }
}

/// The texts by name; a list of those that share one.
fn query(url: &Url) -> Value {
    gathered(
        url.query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned())),
    )
}

fn gathered(pairs: impl Iterator<Item = (String, String)>) -> Value {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in pairs {
        found.entry(name).or_default().push(value);
    }
    let shown = found.into_iter().map(|(name, mut values)| {
        let value = match values.len() {
            1 => json!(values.remove(0)),
            _ => json!(values),
        };
        (name, value)
    });
    Value::Object(shown.collect())
}

fn body(request: &Request) -> Value {
    if request.body.is_empty() {
        return Value::Null;
    }
    let content_type = request
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    match content_type.unwrap_or_default() {
        "application/x-www-form-urlencoded" => {
            gathered(form_urlencoded::parse(&request.body).map(|(name, value)| (name.into(), value.into())))
        }
        _ => serde_json::from_slice(&request.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&request.body).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::connectors::Apps;

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
                "message: unknown key }",
                "message: other }",
                "fails with CREDENTIAL_INVALID",
            ),
        ] {
            let text = documented().replacen(right, wrong, 1);
            assert_ne!(text, documented(), "{right}");
            let app = App::read(&text).unwrap_or_else(|error| panic!("{error}"));
            let failed = failures(&app);
            assert!(
                failed.len() == 1 && failed[0].contains(says),
                "{failed:?} has not {says}"
            );
        }
    }
}
