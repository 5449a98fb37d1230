//! Custom functions in runs: called from templates and filters, frozen with what runs them.

use serde_json::{Value, json};
use test_support::{Api, graphs, text};

use crate::world::World;

on_both_databases!(
    templates_call_functions,
    many_calls_of_one_template_are_answered,
    filters_call_functions_whatever_ends_the_node,
    what_a_function_does_wrong_fails_the_node,
    a_node_calls_a_function,
    a_version_keeps_the_code_it_was_deployed_with,
    a_webhook_calls_what_was_frozen_whatever_became_of_it,
    a_function_that_is_gone_is_named,
    a_team_has_functions_of_its_own,
    expressions_are_resolved_with_functions,
    a_run_waiting_for_functions_can_be_cancelled,
    a_run_waiting_for_functions_is_kept_to_its_time,
);

/// Makes a function and gives its id. A parameter with a `?` may be left out.
async fn function(api: &Api, name: &str, parameters: &[&str], code: &str) -> String {
    let parameter = |name: &&str| json!({ "name": name.trim_end_matches('?'), "type": "any", "required": !name.ends_with('?') });
    let parameters: Vec<Value> = parameters.iter().map(parameter).collect();
    let body = json!({ "name": name, "code": code, "parameters": parameters });
    text(&api.post("/functions", body).await.data(201)["id"])
}

/// A trigger (1) and computed fields (2).
fn fields(fields: Value) -> Value {
    graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": fields })),
    ])
}

async fn report_of(api: &Api, operations: Value) -> Value {
    let workflow = api.workflow_with("calls", operations).await;
    let run = api.start(&workflow, json!({})).await;
    api.ended(&run).await
}

fn node(report: &Value, id: i64) -> &Value {
    let nodes = report["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["nodeId"] == id);
    found.unwrap_or_else(|| panic!("no node {id}: {report}"))
}

async fn templates_call_functions(world: &World) {
    let api = &world.api;
    let _ = function(api, "twice", &["n"], "return n * 2").await;
    let _ = function(api, "addTo", &["a", "b?"], "(a, b = 100) => a + b").await;
    let _ = function(api, "echo", &["at"], "return at").await;
    let report = report_of(
        api,
        graphs::chain(&[
            ("manual_trigger", json!({})),
            (
                "set",
                json!({ "fields": {
            "one": "{{twice(21)}}",
            "nested": "{{twice(twice(addTo(1; 2)))}}",
            "default": "{{addTo(1)}}",
            "sum": "{{twice(1) + twice(2) + twice(3)}}",
            "text": "<{{twice(1)}}|{{addTo('a'; 'b')}}>",
            "either": "{{if(twice(1) = 2; twice(10); twice('never'))}}",
            "list": [{ "deep": "{{twice(4)}}" }],
            "same": "{{echo($now) = $now}}",
        } }),
            ),
            ("set", json!({ "fields": { "again": "{{twice(2.one)}}" } })),
        ]),
    )
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let expected = json!({ "one": 42, "nested": 12, "default": 101, "sum": 12, "text": "<2|ab>", "either": 20,
        "list": [{ "deep": 8 }], "same": true });
    assert_eq!(node(&report, 2)["output"], expected);
    assert_eq!(node(&report, 3)["output"], json!({ "again": 84 }));
}

async fn many_calls_of_one_template_are_answered(world: &World) {
    let api = &world.api;
    let _ = function(api, "twice", &["n"], "return n * 2").await;
    let numbers: Vec<i64> = (0..150).collect();
    let report = report_of(
        api,
        graphs::chain(&[
            ("manual_trigger", json!({})),
            ("set", json!({ "fields": { "numbers": numbers } })),
            (
                "set",
                json!({ "fields": {
            "doubled": "{{map(2.numbers; n => twice(n))}}",
            "large": "{{filter(2.numbers; n => twice(n) > 290)}}",
        } }),
            ),
            (
                "sort",
                json!({ "items": "{{3.large}}", "by": "{{twice($item)}}", "direction": "desc" }),
            ),
            (
                "filter",
                json!({ "items": "{{4.items}}", "condition": "{{twice($item) > 292}}" }),
            ),
        ]),
    )
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let doubled: Vec<i64> = (0..150).map(|n| n * 2).collect();
    assert_eq!(
        node(&report, 3)["output"],
        json!({ "doubled": doubled, "large": [146, 147, 148, 149] })
    );
    assert_eq!(node(&report, 4)["output"]["items"], json!([149, 148, 147, 146]));
    assert_eq!(node(&report, 5)["output"]["items"], json!([149, 148, 147]));
}

async fn filters_call_functions_whatever_ends_the_node(world: &World) {
    let api = &world.api;
    let _ = function(api, "isLarge", &["n"], "return n > 10").await;
    let report = report_of(api, json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "code", "kind": "js_code", "after": "a", "params": { "code": "return { n: 11 }" } },
        { "op": "add_node", "tempId": "wait", "kind": "wait",
          "params": { "amount": 0.02, "unit": "seconds" } },
        { "op": "add_node", "tempId": "small", "kind": "set", "params": { "fields": {} } },
        { "op": "add_node", "tempId": "large", "kind": "set", "params": { "fields": { "n": "{{2.n}}" } } },
        { "op": "connect", "from": "code", "to": "wait", "filter": "{{isLarge(2.n)}}" },
        { "op": "connect", "from": "code", "to": "small", "filter": "{{not isLarge(2.n)}}" },
        { "op": "connect", "from": "wait", "to": "large",
          "filter": { "any": [{ "all": [{ "left": "{{isLarge(2.n)}}", "operator": "is_true" }] }] } },
    ]))
    .await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(node(&report, 4)["status"], "skipped");
    assert_eq!(node(&report, 5)["output"], json!({ "n": 11 }));
}

async fn what_a_function_does_wrong_fails_the_node(world: &World) {
    let api = &world.api;
    let _ = function(api, "endless", &[], "for (;;) {}").await;
    let _ = function(api, "greedy", &[], "return 'x'.repeat(100 * 2 ** 20)").await;
    let _ = function(api, "throws", &[], "throw new RangeError('too far')").await;
    for (call, expected, message) in [
        ("endless()", "CODE_TIMEOUT", "1000 ms"),
        ("greedy()", "CODE_MEMORY", "64 MiB"),
        ("throws()", "CODE_ERROR", "throws: RangeError: too far (line 1"),
        ("1 + upper(throws())", "CODE_ERROR", "x: throws: RangeError"),
    ] {
        let report = report_of(api, fields(json!({ "x": format!("{{{{{call}}}}}") }))).await;
        let error = &node(&report, 2)["error"];
        assert_eq!(error["code"], expected, "{call}: {report}");
        assert!(text(&error["message"]).contains(message), "{call}: {report}");
    }
}

async fn a_node_calls_a_function(world: &World) {
    let api = &world.api;
    let id = function(
        api,
        "full",
        &["first", "last?"],
        "console.log(first); return { name: first + (last ?? '') }",
    )
    .await;
    let call = |params: Value| graphs::chain(&[("manual_trigger", json!({})), ("function_call", params)]);
    let report = report_of(
        api,
        call(json!({ "functionId": id, "arguments": { "last": "{{'L'}}", "first": "F" } })),
    )
    .await;
    assert_eq!(node(&report, 2)["output"], json!({ "name": "FL" }), "{report}");
    assert_eq!(
        node(&report, 2)["logs"],
        json!([{ "level": "info", "message": "F" }])
    );

    let stranger = world.stranger().await;
    let foreign = function(&stranger, "theirs", &[], "return 1").await;
    for (params, expected) in [
        (
            json!({ "functionId": "fn_none" }),
            "names the function fn_none, which does not exist",
        ),
        (json!({ "functionId": foreign }), "does not exist"),
        (
            json!({ "functionId": id }),
            "arguments.first: is required by full",
        ),
        (
            json!({ "functionId": id, "arguments": { "first": 1, "x": 2 } }),
            "arguments.x: is no parameter of full",
        ),
    ] {
        let workflow = api.workflow_with("wrong", call(params)).await;
        let result = api
            .post(format!("/workflows/{workflow}/validate"), json!({}))
            .await
            .data(200);
        assert!(result["issues"].to_string().contains(expected), "{result}");
    }
}

async fn a_version_keeps_the_code_it_was_deployed_with(world: &World) {
    let api = &world.api;
    let id = function(api, "answer", &[], "return 'first'").await;
    let flow = json!([
        { "op": "add_node", "tempId": "a", "kind": "webhook_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "set", "after": "a", "params": { "fields": { "x": "{{answer()}}" } } },
    ]);
    let workflow = api.workflow_with("frozen", flow).await;
    let version = api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200);
    let code = json!({ "code": "return 'second'" });
    let _ = api.patch(format!("/functions/{id}"), code).await.data(200);
    let draft_run = api.start(&workflow, json!({})).await;
    let draft = api.ended(&draft_run).await;
    assert_eq!(
        node(&draft, 2)["output"],
        json!({ "x": "second" }),
        "a draft runs what is there now"
    );

    let deployed = api
        .get(format!("/workflows/{workflow}?view=deployed"))
        .await
        .data(200);
    assert_eq!(deployed["nodes"].as_array().unwrap().len(), 2);
    let store = world.store().await;
    let frozen = store
        .graph(&world.organization, &text(&version["contentHash"]))
        .await
        .unwrap();
    let frozen: Value = serde_json::from_slice(&frozen).unwrap();
    assert_eq!(frozen["functions"][0]["code"], "return 'first'");
    let again = api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200);
    assert_ne!(
        again["versionNo"], version["versionNo"],
        "other code is another version"
    );
    let same = api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200);
    assert_eq!(same["versionNo"], again["versionNo"]);
}

async fn a_webhook_calls_what_was_frozen_whatever_became_of_it(world: &World) {
    let api = &world.api;
    let changed = function(api, "changed", &["n"], "return n * 2").await;
    let renamed = function(api, "renamed", &[], "return 'still here'").await;
    let flow = graphs::chain(&[
        ("webhook_trigger", json!({})),
        (
            "set",
            json!({ "fields": { "a": "{{changed(1.body.n)}}", "b": "{{renamed()}}" } }),
        ),
        (
            "function_call",
            json!({ "functionId": changed, "arguments": { "n": "{{2.a}}" } }),
        ),
    ]);
    let workflow = api.workflow_with("Frozen", flow).await;
    api.go_live(&workflow).await;
    let webhook = api.mint(&workflow, 1).await;
    let outputs = async || {
        let accepted = api.call_hook(&webhook, &[], json!({ "n": 3 })).await.data(202);
        let report = api.ended(&text(&accepted["runId"])).await;
        assert_eq!(report["status"], "succeeded", "{report}");
        (
            node(&report, 2)["output"].clone(),
            node(&report, 3)["output"].clone(),
        )
    };
    let frozen = (json!({ "a": 6, "b": "still here" }), json!({ "value": 12 }));
    assert_eq!(outputs().await, frozen);
    let other = json!({ "code": "return 'other'", "parameters": [] });
    let _ = api.patch(format!("/functions/{changed}"), other).await.data(200);
    let other = json!({ "name": "other" });
    let _ = api.patch(format!("/functions/{renamed}"), other).await.data(200);
    assert_eq!(outputs().await, frozen);
    // A draft has to do with what is there.
    let refused = api.post(format!("/workflows/{workflow}/deploy"), json!({})).await;
    refused.error(400, "TOPOLOGY_INVALID");
    assert_eq!(outputs().await, frozen, "what is deployed stays");
}

async fn a_function_that_is_gone_is_named(world: &World) {
    let api = &world.api;
    let id = function(api, "early", &["a"], "return a").await;
    let workflow = api
        .workflow_with("gone", fields(json!({ "x": "{{early(1)}}" })))
        .await;
    let valid = api
        .post(format!("/workflows/{workflow}/validate"), json!({}))
        .await
        .data(200);
    assert_eq!(valid["valid"], true, "{valid}");
    let _ = api
        .patch(format!("/functions/{id}"), json!({ "name": "late" }))
        .await
        .data(200);
    let result = api
        .post(format!("/workflows/{workflow}/validate"), json!({}))
        .await
        .data(200);
    assert!(
        result["issues"]
            .to_string()
            .contains("there is no function `early`"),
        "{result}"
    );
    let _ = api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .error(400, "TOPOLOGY_INVALID");
    let draft = api.get(format!("/workflows/{workflow}")).await.data(200);
    let ops = json!([{ "op": "update_params", "nodeId": 2, "params": { "fields": { "x": "{{late()}}" } } }]);
    let body = json!({ "ops": ops, "expectedUpdatedAt": draft["updatedAt"] });
    let refused = api
        .post(format!("/workflows/{workflow}/ops"), body)
        .await
        .data(200);
    assert!(
        text(&refused["errors"][0]).contains("late"),
        "the number of arguments is checked: {refused}"
    );
}

async fn a_team_has_functions_of_its_own(world: &World) {
    let api = &world.api;
    for name in ["whose", "shared"] {
        let _ = function(api, name, &[], "return 'organization'").await;
    }
    let own = json!({ "name": "whose", "code": "return 'team'", "parameters": [], "teamId": world.team });
    let _ = api.post("/functions", own).await.data(201);
    let body = json!({ "name": "teamed", "teamId": world.team });
    let workflow = text(&api.post("/workflows", body).await.data(201)["id"]);
    let _ = api
        .edit(
            &workflow,
            fields(json!({ "x": "{{whose()}}", "y": "{{shared()}}" })),
        )
        .await;
    let run = api.start(&workflow, json!({})).await;
    let report = api.ended(&run).await;
    assert_eq!(
        node(&report, 2)["output"],
        json!({ "x": "team", "y": "organization" })
    );
}

async fn expressions_are_resolved_with_functions(world: &World) {
    let api = &world.api;
    let _ = function(api, "twice", &["n"], "return n * 2").await;
    let _ = function(api, "throws", &[], "throw new Error('no')").await;
    let workflow = api.workflow_with("resolve", fields(json!({ "n": 4 }))).await;
    let run = api.start(&workflow, json!({})).await;
    let _ = api.ended(&run).await;
    let resolve = async |expression: &str| {
        let path = format!("/workflows/{workflow}/resolve-expression");
        api.post(path, json!({ "expression": expression }))
            .await
            .data(200)
    };
    assert_eq!(resolve("{{twice(twice(2.n))}}").await["resolved"], 16);
    assert_eq!(
        resolve("{{map([1, 2]; n => twice(n))}}").await["resolved"],
        json!([2, 4])
    );
    assert_eq!(
        text(&resolve("{{throws()}}").await["error"]),
        "throws: Error: no (line 1, column 11)"
    );
    assert!(text(&resolve("{{nowhere()}}").await["error"]).contains("there is no function"));
}

/// A workflow whose functions have to do for minutes.
async fn slow(api: &Api) -> String {
    let code = "const until = Date.now() + 800; while (Date.now() < until) {} return n";
    let _ = function(api, "slow", &["n"], code).await;
    let numbers: Vec<i64> = (0..200).collect();
    let call = format!("{{{{map({}; n => slow(n))}}}}", json!(numbers));
    api.workflow_with("slow", fields(json!({ "x": call }))).await
}

async fn a_run_waiting_for_functions_is_kept_to_its_time(world: &World) {
    let api = &world.api;
    let workflow = slow(api).await;
    let limit = json!({ "executionTimeoutMs": 500 });
    let _ = api.patch(format!("/workflows/{workflow}"), limit).await.data(200);
    let run = api.start(&workflow, json!({})).await;
    let report = api.ended(&run).await;
    assert!(text(&report["error"]).starts_with("RUN_TIMEOUT: "), "{report}");
}

async fn a_run_waiting_for_functions_can_be_cancelled(world: &World) {
    let api = &world.api;
    let workflow = slow(api).await;
    let run = api.start(&workflow, json!({})).await;
    let _ = api.reached(&run, &["running"]).await;
    let _ = api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200);
    assert_eq!(api.ended(&run).await["status"], "cancelled");
}
