//! The suite of scenarios (`tests/engine`), run by the whole product: drawn, started and read over the API.

use std::collections::HashMap;
use std::sync::Mutex;

use http::Response;
use http::header::CONTENT_TYPE;
use scenarios::{Action, Scenario, differences};
use serde_json::{Map, Value, json};
use test_support::{Api, Asked, Target, text};
use tokio::task::{JoinSet, LocalSet};

use crate::world::World;

on_both_databases!(every_scenario_happens_as_it_is_told);

/// How many happen at the same time.
const TOGETHER: usize = 8;

async fn every_scenario_happens_as_it_is_told(world: &World) {
    // On this thread: the compiler cannot tell that what borrows across a wait may move to another.
    LocalSet::new().run_until(all(world)).await;
}

async fn all(world: &World) {
    let mut scenarios = scenarios::all();
    scenarios.retain(Scenario::is_for_the_product);
    assert!(
        scenarios.len() >= 80,
        "only {} scenarios are left",
        scenarios.len()
    );
    let mut left = scenarios.into_iter();
    let mut happening = JoinSet::new();
    let mut failed = Vec::new();
    loop {
        while happening.len() < TOGETHER
            && let Some(scenario) = left.next()
        {
            // An organization of its own: variables have names.
            let made = world.admin.organization(&scenario.name, None).await;
            let api = world.server.api(Some(&made.api_key));
            happening.spawn_local(async move { happen(&api, &scenario).await });
        }
        match happening.join_next().await {
            Some(Ok(found)) => failed.extend(found),
            Some(Err(panicked)) => failed.push(panicked.to_string()),
            None => break,
        }
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

/// Lets a scenario happen; gives what was otherwise than it tells.
async fn happen(api: &Api, scenario: &Scenario) -> Option<String> {
    set(api, &scenario.variables, false).await;
    set(api, &scenario.secrets, true).await;
    let outside = outside(scenario).await;
    let operations = scenario.operations(&outside.url("/"));
    let workflow = api.workflow_with(&scenario.name, operations).await;
    if let Some(timeout_ms) = scenario.start.timeout_ms {
        let limit = json!({ "executionTimeoutMs": timeout_ms });
        let _ = api.patch(format!("/workflows/{workflow}"), limit).await.data(200);
    }
    let mut body = json!({ "upstreamOutputs": scenario.start.outputs });
    if let Some(node) = scenario.start.node {
        body["nodeId"] = json!(node.to_string());
    }
    let run = api.start(&workflow, body).await;
    for action in &scenario.then {
        act(api, &run, action).await;
    }
    let report = api.ended(&run).await;
    let found = differences(&scenario.expect, &seen(&report));
    (!found.is_empty()).then(|| format!("{}: {}\n  {report}", scenario.name, found.join("\n    ")))
}

/// The service that requests go to. Which attempt at which place one is, its `Idempotency-Key` tells.
async fn outside(scenario: &Scenario) -> Target {
    let scenario = scenario.clone();
    let attempts: Mutex<HashMap<String, u32>> = Mutex::default();
    let answer = move |asked: &Asked| {
        let key = asked.header("idempotency-key");
        let mut parts = key.splitn(4, '-').skip(2);
        let node = parts.next().and_then(|node| node.parse().ok()).unwrap();
        let iteration = parts.next().unwrap_or_default();
        let mut attempts = attempts.lock().unwrap();
        let attempt = attempts.entry(key.to_owned()).or_default();
        *attempt += 1;
        let outside = scenario.outside(node, iteration, *attempt);
        let (status, body) = match &outside.output {
            Some(body) => (200, body.to_string()),
            None => (500, String::new()),
        };
        let answer = Response::builder()
            .status(status)
            .header(CONTENT_TYPE, "application/json");
        answer.body(body.into()).unwrap()
    };
    Target::start(answer).await
}

async fn act(api: &Api, run: &str, action: &Action) {
    let (path, body) = match action {
        Action::Set(variables) => {
            let _ = api.ended(run).await;
            return set(api, variables, false).await;
        }
        Action::Cancel => {
            let _ = api.reached(run, &["waiting"]).await;
            ("cancel", json!({}))
        }
        Action::Retry(node) => {
            let _ = api.ended(run).await;
            ("retry-node", json!({ "nodeId": node }))
        }
        Action::Rerun => {
            let _ = api.ended(run).await;
            ("rerun", json!({}))
        }
    };
    let answer = api.post(format!("/runs/{run}/{path}"), body).await;
    assert!(answer.status < 300, "{path}: {}", answer.text());
}

async fn set(api: &Api, variables: &std::collections::BTreeMap<String, String>, secret: bool) {
    for (name, value) in variables {
        let body = json!({ "value": value, "isSecret": secret });
        let answer = api.put(format!("/variables/{name}"), body).await;
        assert!(answer.status < 300, "{name}: {}", answer.text());
    }
}

/// A report in the form that expectations have.
fn seen(report: &Value) -> Value {
    let mut nodes = Map::new();
    let mut order = Vec::new();
    for node in report["nodes"].as_array().unwrap() {
        let mut place = node["nodeId"].to_string();
        if let Some(iteration) = node["iteration"].as_str() {
            place = format!("{place}/{iteration}");
        }
        let output = node.get("output").filter(|output| !output.is_null());
        let seen = json!({
            "status": node["status"],
            "output": output,
            "body": output.and_then(|output| output.get("body")),
            "size": output.map(|output| output.to_string().len()),
            "error": node["error"],
            "attempt": node["attempt"],
            "credits": node["creditsUsed"],
        });
        order.push(Value::from(place.as_str()));
        nodes.insert(place, seen);
    }
    json!({
        "status": text(&report["status"]),
        "error": report["error"],
        "credits": report["creditsUsed"],
        "attempt": report["attemptNumber"],
        "order": order,
        "nodes": nodes,
    })
}
