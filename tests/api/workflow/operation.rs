//! Batches of graph operations.

use serde_json::{Value, json};
use test_support::{Answer, graphs, text, together};

use crate::world::World;

on_both_databases!(
    nodes_are_added_and_connected,
    parameters_and_config_are_merged_or_replaced,
    edges_come_and_go,
    nodes_are_removed_and_healed,
    what_the_graph_cannot_follow_is_told_and_the_rest_applies,
    malformed_operations_reject_the_batch,
    a_dry_run_saves_nothing,
    an_atomic_batch_is_all_or_nothing,
    a_batch_says_what_it_was_computed_against,
    of_fifty_edits_at_once_one_wins,
    node_ids_are_never_used_again,
    batches_have_their_limits,
);

/// Sends operations against the draft as it is.
async fn edit(world: &World, workflow: &str, more: Value) -> Answer {
    let draft = draft(world, workflow).await;
    let mut body = json!({ "expectedUpdatedAt": draft["updatedAt"] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    world.api.post(format!("/workflows/{workflow}/ops"), body).await
}

async fn draft(world: &World, workflow: &str) -> Value {
    world.api.get(format!("/workflows/{workflow}")).await.data(200)
}

async fn nodes_are_added_and_connected(world: &World) {
    let workflow = world.api.workflow("x").await;
    let ops = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger", "x": 10, "y": -2.5 },
        { "op": "add_node", "tempId": "work", "kind": "set", "name": " Work ", "after": "start",
          "params": { "fields": { "a": 1 } }, "config": { "retry": { "maxAttempts": 2 } } },
        { "op": "connect", "from": "work", "to": "end", "type": "error", "order": 3 },
        { "op": "add_node", "tempId": "end", "kind": "stop" },
        { "op": "connect", "from": 2, "to": "end", "filter": "{{2.a > 0}}" },
    ]);
    let result = edit(world, &workflow, json!({ "ops": ops })).await.data(200);
    assert_eq!(result["applied"], json!({ "start": 1, "work": 2, "end": 3 }));
    assert_eq!(result["touched"], json!([1, 2, 3]));
    // A node can be named from its own operation on, not before.
    let error = text(&result["errors"][0]);
    assert!(error.starts_with("ops[2] connect: NODE_NOT_FOUND: "), "{error}");
    let draft = draft(world, &workflow).await;
    assert_eq!(draft["updatedAt"], result["updatedAt"]);
    assert_eq!(
        (&draft["nodes"][0]["x"], &draft["nodes"][0]["y"]),
        (&json!(10.0), &json!(-2.5))
    );
    assert_eq!(draft["nodes"][1]["name"], "Work");
    assert_eq!(draft["nodes"][1]["config"]["retry"]["maxAttempts"], 2);
    assert_eq!(draft["edges"][1]["filter"], "{{2.a > 0}}");
    assert_eq!(draft["edges"].as_array().unwrap().len(), 2);
}

async fn parameters_and_config_are_merged_or_replaced(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let result = world.api.edit(&workflow, json!([
        { "op": "update_params", "nodeId": 2, "params": { "fields": { "b": [1] }, "keepInput": true } },
        { "op": "update_config", "nodeId": 2, "config": { "timeoutMs": 500, "notes": "n", "x": 7, "y": 8 } },
        { "op": "rename_node", "nodeId": 1, "name": "Begin" },
    ])).await;
    assert_eq!(result["touched"], json!([2]));
    let node = draft(world, &workflow).await["nodes"][1].clone();
    let merged = json!({ "fields": { "answer": "{{6 * 7}}", "b": [1] }, "keepInput": true });
    assert_eq!(node["params"], merged);
    assert_eq!(node["config"], json!({ "timeoutMs": 500, "notes": "n" }));
    assert_eq!((&node["x"], &node["y"]), (&json!(7.0), &json!(8.0)));
    world.api.edit(&workflow, json!([
        { "op": "update_params", "nodeId": 2, "params": { "fields": { "answer": null } } },
        { "op": "update_config", "nodeId": 2, "mode": "replace", "config": { "onError": "continue" } },
    ])).await;
    let nodes = draft(world, &workflow).await["nodes"].clone();
    assert_eq!(nodes[0]["name"], "Begin");
    assert_eq!(
        nodes[1]["params"],
        json!({ "fields": { "b": [1] }, "keepInput": true })
    );
    assert_eq!(nodes[1]["config"], json!({ "onError": "continue" }));
    let replace =
        json!({ "op": "update_params", "nodeId": 2, "mode": "replace", "params": { "fields": {} } });
    world.api.edit(&workflow, json!([replace])).await;
    assert_eq!(
        draft(world, &workflow).await["nodes"][1]["params"],
        json!({ "fields": {} })
    );
}

async fn edges_come_and_go(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let rules = json!({ "any": [{ "all": [{ "left": "{{2.answer}}", "operator": "eq", "right": 42 }] }] });
    world
        .api
        .edit(
            &workflow,
            json!([
                { "op": "add_node", "tempId": "next", "kind": "set", "params": { "fields": {} } },
                { "op": "connect", "from": 2, "to": "next" },
                { "op": "connect", "from": 2, "to": "next", "type": "error" },
                { "op": "set_edge_filter", "from": 2, "to": "next", "type": "normal", "filter": rules },
            ]),
        )
        .await;
    let edges = draft(world, &workflow).await["edges"].clone();
    assert_eq!(edges[1]["filter"], rules);
    let refused = edit(
        world,
        &workflow,
        json!({ "ops": [{ "op": "disconnect", "from": 2, "to": 3 }] }),
    )
    .await;
    assert!(text(&refused.data(200)["errors"][0]).contains("EDGE_AMBIGUOUS"));
    world
        .api
        .edit(
            &workflow,
            json!([
                { "op": "set_edge_filter", "edgeId": edges[1]["id"], "filter": null },
                { "op": "disconnect", "from": 2, "to": 3, "type": "error" },
                { "op": "disconnect", "edgeId": edges[0]["id"] },
            ]),
        )
        .await;
    let left = draft(world, &workflow).await["edges"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["id"], edges[1]["id"]);
    assert!(left[0].get("filter").is_none_or(Value::is_null));
}

async fn nodes_are_removed_and_healed(world: &World) {
    let set = || ("set", json!({ "fields": {} }));
    let chain = graphs::chain(&[("manual_trigger", json!({})), set(), set(), set()]);
    let workflow = world.api.workflow_with("x", chain).await;
    world
        .api
        .edit(
            &workflow,
            json!([{ "op": "remove_node", "nodeId": 2, "heal": true }]),
        )
        .await;
    let healed = draft(world, &workflow).await;
    let ends: Vec<_> = healed["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| (&edge["from"], &edge["to"]))
        .collect();
    assert!(ends.contains(&(&json!(1), &json!(3))), "{ends:?}");
    world
        .api
        .edit(&workflow, json!([{ "op": "remove_node", "nodeId": 3 }]))
        .await;
    let cut = draft(world, &workflow).await;
    assert_eq!(cut["edges"], json!([]));
    assert_eq!(cut["nodes"].as_array().unwrap().len(), 2);
}

async fn what_the_graph_cannot_follow_is_told_and_the_rest_applies(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let cases = [
        (
            json!({ "op": "add_node", "tempId": "a", "kind": "teleport" }),
            "UNKNOWN_KIND",
        ),
        (
            json!({ "op": "add_node", "tempId": "a", "appId": "nowhere", "moduleSlug": "m" }),
            "UNKNOWN_KIND",
        ),
        (json!({ "op": "add_node", "tempId": "kept", "kind": "stop" }), ""),
        (
            json!({ "op": "add_node", "tempId": "kept", "kind": "stop" }),
            "DUPLICATE_TEMP_ID",
        ),
        (
            json!({ "op": "add_node", "tempId": "b", "kind": "stop", "after": 99 }),
            "NODE_NOT_FOUND",
        ),
        (
            json!({ "op": "update_params", "nodeId": 2, "params": { "fields": { "a": "{{1 +}}" } } }),
            "INVALID_",
        ),
        (
            json!({ "op": "update_params", "nodeId": "nobody", "params": {} }),
            "NODE_NOT_FOUND",
        ),
        (
            json!({ "op": "update_config", "nodeId": 2, "config": { "retries": 1 } }),
            "INVALID_CONFIG",
        ),
        (json!({ "op": "connect", "from": 1, "to": 2 }), "EDGE_EXISTS"),
        (json!({ "op": "connect", "from": 2, "to": 77 }), "NODE_NOT_FOUND"),
        (
            json!({ "op": "connect", "from": 2, "to": "kept", "filter": "{{(}}" }),
            "INVALID_FILTER",
        ),
        (
            json!({ "op": "disconnect", "from": 2, "to": 1 }),
            "EDGE_NOT_FOUND",
        ),
        (
            json!({ "op": "disconnect", "edgeId": "nothing" }),
            "EDGE_NOT_FOUND",
        ),
        (json!({ "op": "remove_node", "nodeId": 50 }), "NODE_NOT_FOUND"),
        (
            json!({ "op": "rename_node", "nodeId": 50, "name": "x" }),
            "NODE_NOT_FOUND",
        ),
        (
            json!({ "op": "set_credential", "nodeId": 2, "credentialId": "cred_unknown" }),
            "CREDENTIAL",
        ),
        (
            json!({ "op": "set_edge_filter", "edgeId": "nothing", "filter": null }),
            "EDGE_NOT_FOUND",
        ),
        (json!({ "op": "rename_node", "nodeId": 2, "name": "Renamed" }), ""),
    ];
    let ops: Vec<Value> = cases.iter().map(|(op, _)| op.clone()).collect();
    let result = edit(world, &workflow, json!({ "ops": ops })).await.data(200);
    let wanted: Vec<(usize, &str, &str)> = cases
        .iter()
        .enumerate()
        .filter(|(_, (_, code))| !code.is_empty())
        .map(|(at, (op, code))| (at, op["op"].as_str().unwrap(), *code))
        .collect();
    let told: Vec<String> = result["errors"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for ((at, op, code), told) in wanted.into_iter().zip(told) {
        assert!(told.starts_with(&format!("ops[{at}] {op}: ")), "{told}");
        assert!(told.contains(code), "{code} in {told}");
    }
    assert_eq!(result["applied"], json!({ "kept": 3 }));
    assert_eq!(draft(world, &workflow).await["nodes"][1]["name"], "Renamed");
}

async fn malformed_operations_reject_the_batch(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let before = draft(world, &workflow).await;
    let good = json!({ "op": "rename_node", "nodeId": 2, "name": "y" });
    for (op, path) in [
        (json!({ "op": "explode" }), "ops[1].op"),
        (json!({ "nodeId": 2 }), "ops[1].op"),
        (
            json!({ "op": "rename_node", "nodeId": 2, "name": "y", "colour": 1 }),
            "ops[1].colour",
        ),
        (
            json!({ "op": "rename_node", "nodeId": true, "name": "y" }),
            "ops[1].nodeId",
        ),
        (json!({ "op": "rename_node", "nodeId": 2 }), "ops[1].name"),
        (
            json!({ "op": "rename_node", "nodeId": 2, "name": 5 }),
            "ops[1].name",
        ),
        (
            json!({ "op": "update_params", "nodeId": 2, "params": [] }),
            "ops[1].params",
        ),
        (
            json!({ "op": "update_params", "nodeId": 2, "params": {}, "mode": "mix" }),
            "ops[1].mode",
        ),
        (json!({ "op": "add_node", "kind": "set" }), "ops[1].tempId"),
        (json!({ "op": "add_node", "tempId": "a" }), "ops[1].kind"),
        (json!({ "op": "connect", "from": 1 }), "ops[1].to"),
        (
            json!({ "op": "connect", "from": 1, "to": 2, "type": "maybe" }),
            "ops[1].type",
        ),
        (json!({ "op": "disconnect" }), "ops[1].edgeId"),
    ] {
        let answer = edit(world, &workflow, json!({ "ops": [good, op] })).await;
        answer.invalid(path);
    }
    for ops in [json!([]), Value::Null, json!({})] {
        edit(world, &workflow, json!({ "ops": ops })).await.invalid("ops");
    }
    assert_eq!(draft(world, &workflow).await, before);
}

async fn a_dry_run_saves_nothing(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let before = draft(world, &workflow).await;
    let ops = json!([{ "op": "add_node", "tempId": "a", "kind": "stop", "after": 2 }]);
    let result = edit(world, &workflow, json!({ "ops": ops, "dryRun": true }))
        .await
        .data(200);
    assert_eq!(result["applied"], json!({ "a": 3 }));
    assert_eq!(result["updatedAt"], before["updatedAt"]);
    assert_eq!(draft(world, &workflow).await, before);
}

async fn an_atomic_batch_is_all_or_nothing(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let before = draft(world, &workflow).await;
    let ops = json!([
        { "op": "rename_node", "nodeId": 2, "name": "y" },
        { "op": "remove_node", "nodeId": 9 },
    ]);
    edit(world, &workflow, json!({ "ops": ops, "atomic": true }))
        .await
        .invalid("ops[1]");
    assert_eq!(draft(world, &workflow).await, before);
    let ops = json!([{ "op": "rename_node", "nodeId": 2, "name": "y" }]);
    let _ = edit(world, &workflow, json!({ "ops": ops, "atomic": true }))
        .await
        .data(200);
    assert_eq!(draft(world, &workflow).await["nodes"][1]["name"], "y");
}

async fn a_batch_says_what_it_was_computed_against(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/ops");
    let ops = json!([{ "op": "rename_node", "nodeId": 2, "name": "y" }]);
    world
        .api
        .post(&path, json!({ "ops": ops }))
        .await
        .invalid("expectedUpdatedAt");
    let null = json!({ "ops": ops, "expectedUpdatedAt": null });
    world.api.post(&path, null).await.invalid("expectedUpdatedAt");
    let now = draft(world, &workflow).await["updatedAt"].as_i64().unwrap();
    for other in [now - 1, now + 1, 0] {
        let body = json!({ "ops": ops, "expectedUpdatedAt": other });
        world.api.post(&path, body).await.error(409, "workflow_modified");
    }
    let body = json!({ "ops": ops, "expectedUpdatedAt": now });
    let next = world.api.post(&path, body.clone()).await.data(200)["updatedAt"]
        .as_i64()
        .unwrap();
    assert!(next > now);
    world.api.post(&path, body).await.error(409, "workflow_modified");
    let missing = world
        .api
        .post(
            "/workflows/wf_unknown/ops",
            json!({ "ops": ops, "expectedUpdatedAt": 1 }),
        )
        .await;
    missing.error(404, "NOT_FOUND");
}

async fn of_fifty_edits_at_once_one_wins(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let now = draft(world, &workflow).await["updatedAt"].clone();
    let edits = (0..50).map(|number| {
        let (api, path) = (world.api.clone(), format!("/workflows/{workflow}/ops"));
        let ops = json!([{ "op": "rename_node", "nodeId": 2, "name": format!("writer {number}") }]);
        let body = json!({ "ops": ops, "expectedUpdatedAt": now });
        async move { (number, api.post(path, body).await) }
    });
    let mut winners = Vec::new();
    for (number, answer) in together(edits).await {
        match answer.status {
            200 => winners.push(number),
            _ => _ = answer.error(409, "workflow_modified"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    let name = draft(world, &workflow).await["nodes"][1]["name"].clone();
    assert_eq!(name, format!("writer {}", winners[0]));
}

async fn node_ids_are_never_used_again(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    world
        .api
        .edit(&workflow, json!([{ "op": "remove_node", "nodeId": 2 }]))
        .await;
    let add = json!([{ "op": "add_node", "tempId": "a", "kind": "stop" }]);
    assert_eq!(world.api.edit(&workflow, add.clone()).await["applied"]["a"], 3);
    world
        .api
        .edit(&workflow, json!([{ "op": "remove_node", "nodeId": 3 }]))
        .await;
    assert_eq!(world.api.edit(&workflow, add).await["applied"]["a"], 4);
}

async fn batches_have_their_limits(world: &World) {
    let workflow = world.api.workflow("x").await;
    let stop = |number: usize| json!({ "op": "add_node", "tempId": format!("t{number}"), "kind": "stop" });
    let ops = |count| (0..count).map(stop).collect::<Vec<_>>();
    edit(world, &workflow, json!({ "ops": ops(201) }))
        .await
        .invalid("ops");
    for _ in 0..2 {
        world.api.edit(&workflow, json!(ops(200))).await;
    }
    let result = edit(world, &workflow, json!({ "ops": ops(101) })).await.data(200);
    assert_eq!(result["applied"].as_object().unwrap().len(), 100);
    assert!(
        text(&result["errors"][0]).contains("TOO_MANY_NODES"),
        "{}",
        result["errors"]
    );
    assert_eq!(
        draft(world, &workflow).await["nodes"].as_array().unwrap().len(),
        500
    );
}
