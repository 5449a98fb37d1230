//! One node of an app with a driver: its credential, its execution, what came of it.

use serde_json::{Value, json};
use test_support::{text, until};

use crate::world::World;

/// A credential for an app, active at once.
pub(super) async fn credential(world: &World, app: &str, data: Value) -> String {
    let body = json!({ "appId": app, "connectionId": "server", "name": "Mine", "data": data });
    let made = world.api.post("/credentials", body).await.data(200);
    assert_eq!(made["status"], "active", "{made}");
    text(&made["credentialId"])
}

/// What testing a credential answers.
pub(super) async fn verify(world: &World, credential: &str) -> Value {
    world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await
        .data(200)
}

/// That a credential is refused, or cannot be tested, with a sentence that holds this.
pub(super) async fn refused(world: &World, credential: &str, says: &str) {
    let verdict = verify(world, credential).await;
    assert_eq!(verdict["status"], "invalid", "{verdict}");
    assert!(text(&verdict["error"]).contains(says), "{verdict} has not {says}");
}

/// Executes a module with a credential, in a run of its own, and gives the node of the report.
pub(super) async fn node(
    world: &World,
    (app, module): (&str, &str),
    credential: &str,
    params: Value,
    config: Value,
) -> Value {
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "call", "appId": app, "moduleSlug": module, "after": "start",
          "credentialId": credential, "params": params, "config": config },
    ]);
    let workflow = world.api.workflow_with(module, operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    report["nodes"][1].clone()
}

/// The output of a module that succeeds.
pub(super) async fn output(world: &World, called: (&str, &str), credential: &str, params: Value) -> Value {
    let node = node(world, called, credential, params, json!({})).await;
    assert_eq!(node["status"], "completed", "{node}");
    node["output"].clone()
}

/// That a module fails with this code and a sentence that holds this: with one attempt, because that is no failure that
/// passes, or with so many as it is told to make.
pub(super) async fn fails(
    world: &World,
    called: (&str, &str),
    credential: &str,
    params: Value,
    (code, says, attempts): (&str, &str, i64),
) {
    // What its app says of retries holds for failures that pass, and is slower than a test needs.
    let config = match attempts {
        1 => json!({}),
        _ => json!({ "retry": { "maxAttempts": attempts, "delayMs": 1 } }),
    };
    let node = node(world, called, credential, params, config).await;
    let error = &node["error"];
    assert_eq!(
        (&error["code"], &node["attempt"]),
        (&json!(code), &json!(attempts)),
        "{node}"
    );
    assert!(text(&error["message"]).contains(says), "{error} has not {says}");
}

/// That a trigger starts runs of what is made while it is live, and of nothing that was there before: each run begins with
/// what the check accepts.
pub(super) async fn starts_runs(
    world: &World,
    credential: &str,
    (app, module, mut params): (&str, &str, Value),
    make: impl AsyncFn(u32),
    check: impl Fn(&Value),
) {
    params["everySeconds"] = json!(1);
    let operations = json!([
        { "op": "add_node", "tempId": "new", "appId": app, "moduleSlug": module, "credentialId": credential,
          "params": params },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "new", "params": { "fields": { "seen": true } } },
    ]);
    let workflow = world.api.workflow_with(module, operations).await;
    world.api.go_live(&workflow).await;
    let runs = format!("/runs?workflowId={workflow}");
    // When it has asked for the first time nobody can tell, so things are made until one is new.
    let mut made = 0;
    let started = until(async || {
        made += 1;
        make(made).await;
        let (rows, _) = world.api.get(&runs).await.page();
        (!rows.is_empty()).then_some(rows)
    });
    let started = started.await.expect("a run of something new");
    for run in started {
        let report = world.api.ended(&text(&run["id"])).await;
        assert_eq!(report["trigger"]["kind"], "poll", "{report}");
        assert_eq!(report["status"], "succeeded", "{report}");
        check(&report["nodes"][0]["output"]);
    }
}
