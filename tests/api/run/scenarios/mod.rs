//! The suite of scenarios (`tests/engine`), run by the whole product: drawn, started and read over the API.

mod surroundings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use http::header::CONTENT_TYPE;
use scenarios::{Action, Response, Scenario, brought_otherwise, differences};
use serde_json::{Map, Value, json};
use test_support::{Answer, Api, Asked, Target, text, until};
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_local};

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
    let names = surroundings::make(api, scenario).await;
    let outside = outside(scenario).await;
    let operations = scenario.drawing().operations(&names, &outside.url("/"));
    let workflow = api.workflow_with(&scenario.name, operations).await;
    if let Some(timeout_ms) = scenario.start.timeout_ms {
        let limit = json!({ "executionTimeoutMs": timeout_ms });
        let _ = api.patch(format!("/workflows/{workflow}"), limit).await.data(200);
    }
    let Begun { mut run, call } = begin(api, scenario, &names, &workflow).await;
    for action in &scenario.then {
        run = act(api, &workflow, run, action).await;
    }
    let report = api.ended(&run).await;
    let mut seen = seen(&report);
    if let Some(call) = call {
        seen["response"] = call.await.unwrap();
    }
    let mut found = differences(&scenario.expect, &seen);
    found.extend(brought_otherwise(scenario, &seen));
    (!found.is_empty()).then(|| format!("{}: {}\n  {report}", scenario.name, found.join("\n    ")))
}

/// A run, and the answer to the call that began it.
struct Begun {
    run: String,
    call: Option<JoinHandle<Value>>,
}

async fn begin(api: &Api, scenario: &Scenario, names: &BTreeMap<String, String>, workflow: &str) -> Begun {
    let start = &scenario.start;
    if let Some(body) = start.webhook.clone() {
        api.go_live(workflow).await;
        let (webhook, caller) = (api.mint(workflow, 1).await, api.clone());
        // It may be answered when the run has ended, to which somebody may have to contribute.
        let call = spawn_local(async move { told(&caller.call_hook(&webhook, &[], body).await) });
        let run = only_run(api, workflow).await;
        return Begun {
            run,
            call: Some(call),
        };
    }
    if let Some(broken) = &start.failure_of {
        api.go_live(workflow).await;
        let broken = &names[&format!("$workflows.{broken}")];
        let _failing = api.start(broken, json!({})).await;
        let run = only_run(api, workflow).await;
        return Begun { run, call: None };
    }
    let mut body = json!({ "upstreamOutputs": start.outputs });
    if let Some(node) = start.node {
        body["nodeId"] = json!(node.to_string());
    }
    let run = api.start(workflow, body).await;
    Begun { run, call: None }
}

/// The answer to a call, in the form that expectations have.
fn told(answer: &Answer) -> Value {
    let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| match answer.text() {
        text if text.is_empty() => Value::Null,
        text => text.into(),
    });
    json!({ "status": answer.status, "body": body })
}

/// The run of a workflow that began by itself.
async fn only_run(api: &Api, workflow: &str) -> String {
    let path = format!("/runs?workflowId={workflow}");
    let run = until(async || {
        let (rows, _) = api.get(&path).await.page();
        rows.first().map(|run| text(&run["id"]))
    });
    run.await.expect("a run")
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
        let answer = http::Response::builder()
            .status(status)
            .header(CONTENT_TYPE, "application/json");
        answer.body(body.into()).unwrap()
    };
    Target::start(answer).await
}

/// Gives the run that things go on with.
async fn act(api: &Api, workflow: &str, run: String, action: &Action) -> String {
    let (path, body) = match action {
        Action::Set(variables) => {
            let _ = api.ended(&run).await;
            set(api, variables, false).await;
            return run;
        }
        Action::Respond(response) => {
            respond(api, &run, response).await;
            return run;
        }
        Action::StartAt(node) => {
            let _ = api.ended(&run).await;
            let body = json!({ "nodeId": node.to_string(), "seedFromRun": { "runId": run } });
            return api.start(workflow, body).await;
        }
        Action::Cancel => {
            let _ = api.reached(&run, &["waiting"]).await;
            ("cancel", json!({}))
        }
        Action::Retry(node) => {
            let _ = api.ended(&run).await;
            ("retry-node", json!({ "nodeId": node }))
        }
        Action::Rerun => {
            let _ = api.ended(&run).await;
            ("rerun", json!({}))
        }
    };
    let answer = api.post(format!("/runs/{run}/{path}"), body).await;
    assert!(answer.status < 300, "{path}: {}", answer.text());
    run
}

/// Answers once the node waits, or has done so.
async fn respond(api: &Api, run: &str, response: &Response) {
    let is_asked = async || {
        let report = api.get(format!("/runs/{run}")).await.data(200);
        let nodes = report["nodes"].as_array().unwrap().iter();
        let mut meant = nodes.filter(|node| {
            let iteration = node["iteration"].as_str().unwrap_or_default();
            node["nodeId"] == response.node && iteration == response.iteration
        });
        let unasked = ["pending", "running"];
        let is_asked = meant.any(|node| unasked.iter().all(|status| node["status"] != *status));
        is_asked.then_some(())
    };
    assert!(
        until(is_asked).await.is_some(),
        "node {} asks nobody",
        response.node
    );
    let mut body = json!({ "response": response.says });
    if !response.iteration.is_empty() {
        body["iteration"] = json!(response.iteration);
    }
    let path = format!("/runs/{run}/nodes/{}/respond", response.node);
    let answer = api.post(path, body).await;
    match &response.refused {
        Some(code) => assert_eq!(answer.json()["error"]["code"], **code, "{}", answer.text()),
        None => assert_eq!(answer.status, 200, "{}", answer.text()),
    }
}

async fn set(api: &Api, variables: &BTreeMap<String, String>, secret: bool) {
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
