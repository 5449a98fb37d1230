//! `js_code` in runs: what code sees, how it fails, what it writes.

use serde_json::{Value, json};
use test_support::{Api, graphs, text};

use crate::world::World;

on_both_databases!(
    code_sees_what_is_above_it,
    a_result_that_is_no_object_is_wrapped,
    failures_have_codes_and_places,
    attacks_fail_within_their_limit,
    an_endless_node_holds_up_no_other_organization,
    a_cancel_ends_code_at_once,
    console_output_is_in_the_report,
    console_output_of_code_that_is_killed_is_in_the_report,
    secrets_are_masked_in_console_output,
    code_is_checked_where_it_is_saved,
    an_error_edge_and_a_retry_take_code_as_any_node,
);

/// A trigger (1) and code (2).
fn code(code: &str) -> Value {
    graphs::chain(&[
        ("manual_trigger", json!({})),
        ("js_code", json!({ "code": code })),
    ])
}

fn limited(code: &str, limit_ms: u64) -> Value {
    let params = json!({ "code": code, "timeoutMs": limit_ms });
    graphs::chain(&[("manual_trigger", json!({})), ("js_code", params)])
}

async fn report_of(api: &Api, operations: Value) -> Value {
    let workflow = api.workflow_with("code", operations).await;
    let run = api.start(&workflow, json!({})).await;
    api.ended(&run).await
}

fn node(report: &Value, id: i64) -> &Value {
    let nodes = report["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["nodeId"] == id);
    found.unwrap_or_else(|| panic!("no node {id}: {report}"))
}

/// The code and the message a node failed with.
fn failure(report: &Value, id: i64) -> (String, String) {
    let error = &node(report, id)["error"];
    (text(&error["code"]), text(&error["message"]))
}

async fn code_sees_what_is_above_it(world: &World) {
    let report = report_of(&world.api, graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "n": 2, "list": [1, 2, 3] } })),
        ("js_code", json!({ "code": "return { double: input.n * 2, keys: Object.keys(nodes) }" })),
        ("js_code", json!({ "code": "return { sum: nodes[2].n + nodes['3'].double, run: run.trigger.kind, item, index,
            keys: Object.keys(nodes) }" })),
        ("js_code", json!({ "code": "const all = nodes; return { keys: Object.keys(all) }" })),
    ]))
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 3)["output"]["double"], 4);
    let expected = json!({ "sum": 6, "run": "manual", "item": null, "index": null, "keys": ["1", "2", "3"] });
    assert_eq!(node(&report, 4)["output"], expected);
    assert_eq!(
        node(&report, 5)["output"],
        json!({ "keys": ["1", "2", "3", "4"] })
    );

    let report = report_of(
        &world.api,
        json!([
            { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "each", "kind": "splitter", "after": "a", "scaffold": true,
              "params": { "items": [10, 20] } },
            { "op": "add_node", "tempId": "code", "kind": "js_code",
              "params": { "code": "return { value: item + index, input }" } },
            { "op": "connect", "from": "each", "to": "code" },
            { "op": "connect", "from": "code", "to": 3 },
            { "op": "disconnect", "from": "each", "to": 3 },
        ]),
    )
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let collected = &node(&report, 3)["output"]["items"];
    assert_eq!(
        (&collected[0]["value"], &collected[1]["value"]),
        (&json!(10), &json!(21)),
        "{report}"
    );
    assert_eq!(collected[1]["input"], json!({ "item": 20, "index": 1 }));
}

async fn a_result_that_is_no_object_is_wrapped(world: &World) {
    for (returned, expected) in [
        ("return [1, 2]", json!({ "value": [1, 2] })),
        ("", json!({ "value": null })),
        ("return { a: 1 }", json!({ "a": 1 })),
    ] {
        let report = report_of(&world.api, code(returned)).await;
        assert_eq!(node(&report, 2)["output"], expected, "{report}");
    }
}

async fn failures_have_codes_and_places(world: &World) {
    for (thrown, expected) in [
        ("const a = 1;\nthrow new Error('no')", "Error: no (line 2"),
        ("return 1n", "the result is a bigint"),
        (
            "await new Promise(() => {})",
            "the code waits for a promise that nothing settles",
        ),
        ("return require('fs')", "ReferenceError: require is not defined"),
    ] {
        let report = report_of(&world.api, code(thrown)).await;
        let (code, message) = failure(&report, 2);
        assert_eq!(code, "CODE_ERROR", "{thrown}");
        assert!(
            message.starts_with(expected) || message.contains(expected),
            "{thrown}: {message}"
        );
        assert_eq!(report["error"], json!(format!("CODE_ERROR: {message}")));
    }
}

async fn attacks_fail_within_their_limit(world: &World) {
    for (attack, expected) in [
        ("for (;;) {}", "CODE_TIMEOUT"),
        ("for (;;) await null", "CODE_TIMEOUT"),
        (
            "let x = 3n; for (;;) x = x * x % (2n ** 65536n - 1n)",
            "CODE_TIMEOUT",
        ),
        ("return /^(a+)+$/.test('a'.repeat(60) + 'b')", "CODE_TIMEOUT"),
    ] {
        let report = report_of(&world.api, limited(attack, 300)).await;
        assert_eq!(failure(&report, 2).0, expected, "{attack}: {report}");
    }
    for (attack, expected) in [
        ("const a = []; for (;;) a.push({})", "CODE_MEMORY"),
        ("return 'x'.repeat(100 * 2 ** 20)", "CODE_MEMORY"),
        ("const f = () => f() + 1; return f()", "CODE_ERROR"),
    ] {
        let report = report_of(&world.api, limited(attack, 30_000)).await;
        assert_eq!(failure(&report, 2).0, expected, "{attack}: {report}");
    }
    let after = report_of(&world.api, code("return { ok: true }")).await;
    assert_eq!(node(&after, 2)["output"], json!({ "ok": true }));
}

async fn an_endless_node_holds_up_no_other_organization(world: &World) {
    let endless = world
        .api
        .workflow_with("endless", limited("for (;;) {}", 60_000))
        .await;
    let mut flood = Vec::new();
    for _ in 0..4 {
        flood.push(world.api.start(&endless, json!({})).await);
    }
    let stranger = world.stranger().await;
    let report = report_of(&stranger, code("return { ok: true }")).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    for run in &flood {
        let under_way = world.api.get(format!("/runs/{run}")).await.data(200);
        assert_eq!(under_way["status"], "running", "{under_way}");
        let _ = world
            .api
            .post(format!("/runs/{run}/cancel"), json!({}))
            .await
            .data(200);
    }
}

async fn a_cancel_ends_code_at_once(world: &World) {
    let workflow = world
        .api
        .workflow_with("endless", limited("for (;;) {}", 60_000))
        .await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.reached(&run, &["running"]).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    let report = world.api.ended(&run).await;
    assert_eq!(
        (&report["status"], &node(&report, 2)["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

async fn console_output_is_in_the_report(world: &World) {
    let report = report_of(
        &world.api,
        code("console.log('a', { b: 1 }); console.error('c'); return {}"),
    )
    .await;
    let expected = json!([
        { "level": "info", "message": "a {\"b\":1}" },
        { "level": "error", "message": "c" },
    ]);
    assert_eq!(node(&report, 2)["logs"], expected);
    assert_eq!(node(&report, 1)["logs"], json!([]));
    let failed = report_of(&world.api, code("console.warn('before'); throw 1")).await;
    assert_eq!(
        node(&failed, 2)["logs"],
        json!([{ "level": "warn", "message": "before" }])
    );
}

async fn console_output_of_code_that_is_killed_is_in_the_report(world: &World) {
    let before = json!([{ "level": "info", "message": "before" }]);
    for (code, limit_ms, expected) in [
        ("for (;;) {}", 1_000, "CODE_TIMEOUT"),
        // Where the interpreter does not look up and the process is killed.
        ("new Array(2 ** 32 - 2).indexOf(1)", 1_000, "CODE_TIMEOUT"),
        ("const a = []; for (;;) a.push({})", 30_000, "CODE_MEMORY"),
    ] {
        let code = format!("console.log('before'); {code}");
        let report = report_of(&world.api, limited(&code, limit_ms)).await;
        assert_eq!(failure(&report, 2).0, expected, "{code}: {report}");
        assert_eq!(node(&report, 2)["logs"], before, "{code}: {report}");
    }

    // The node's time is over before the code's is.
    let endless = json!({ "code": "console.log('before'); for (;;) {}", "timeoutMs": 60_000 });
    let report = report_of(
        &world.api,
        json!([
            { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "b", "kind": "js_code", "after": "a",
              "params": endless, "config": { "timeoutMs": 3_000 } },
        ]),
    )
    .await;
    assert_eq!(failure(&report, 2).0, "NODE_TIMEOUT", "{report}");
    assert_eq!(node(&report, 2)["logs"], before, "{report}");

    // The run's time is over.
    let workflow = world
        .api
        .workflow_with("limited", limited("console.log('before'); for (;;) {}", 60_000))
        .await;
    let limit = json!({ "executionTimeoutMs": 3_000 });
    let _ = world
        .api
        .patch(format!("/workflows/{workflow}"), limit)
        .await
        .data(200);
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert!(text(&report["error"]).starts_with("RUN_TIMEOUT"), "{report}");
    assert_eq!(node(&report, 2)["logs"], before, "{report}");
}

async fn secrets_are_masked_in_console_output(world: &World) {
    let secret = json!({ "value": "s3cr3t-value", "isSecret": true });
    let _ = world.api.put("/variables/TOKEN", secret).await;
    let report = report_of(
        &world.api,
        graphs::chain(&[
            ("manual_trigger", json!({})),
            (
                "set",
                json!({ "fields": { "parts": ["s3cr3t", "{{length($vars.TOKEN)}}"] } }),
            ),
            (
                "js_code",
                json!({ "code": "console.log(input.parts[0] + '-value'); throw input.parts[0] + '-value'" }),
            ),
        ]),
    )
    .await;
    assert_eq!(node(&report, 3)["logs"][0]["message"], "***", "{report}");
    assert_eq!(failure(&report, 3).1, "the code threw ***");
}

async fn code_is_checked_where_it_is_saved(world: &World) {
    let workflow = world.api.workflow("checked").await;
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let ops = json!([
        { "op": "add_node", "tempId": "a", "kind": "js_code", "params": { "code": "return {\n  a: ,\n}" } },
        { "op": "add_node", "tempId": "b", "kind": "js_code", "params": { "code": "return 1", "timeoutMs": 0 } },
        { "op": "add_node", "tempId": "c", "kind": "js_code", "params": { "code": "return '{{1.x}}'" } },
    ]);
    let body = json!({ "ops": ops, "expectedUpdatedAt": draft["updatedAt"] });
    let result = world
        .api
        .post(format!("/workflows/{workflow}/ops"), body)
        .await
        .data(200);
    let errors = result["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{result}");
    assert!(text(&errors[0]).contains("at line 2"), "{result}");
    assert!(text(&errors[1]).contains("timeoutMs"), "{result}");
}

async fn an_error_edge_and_a_retry_take_code_as_any_node(world: &World) {
    let report = report_of(&world.api, json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "js_code", "after": "a",
          "params": { "code": "console.log('tried'); throw new Error('always')" },
          "config": { "retry": { "maxAttempts": 2, "delayMs": 10 } } },
        { "op": "add_node", "tempId": "c", "kind": "set", "params": { "fields": { "code": "{{error.code}}" } } },
        { "op": "connect", "from": "b", "to": "c", "type": "error" },
    ]))
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 2)["attempt"], 2);
    assert_eq!(
        node(&report, 2)["logs"].as_array().unwrap().len(),
        1,
        "those of the last attempt"
    );
    assert_eq!(node(&report, 3)["output"], json!({ "code": "CODE_ERROR" }));
}
