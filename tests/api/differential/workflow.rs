//! Workflows, what is deployed of them, their runs and webhooks.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::values::{
    Steps, call, cursor, description_or_null, flag, id, limit, mostly, name, nothing, object, one_of,
    reference, reference_or_null, text,
};

pub(super) fn workflows() -> Steps {
    // None of them fires while the worlds are compared.
    let recurrence = mostly(
        &[
            json!({ "kind": "daily", "at": ["09:00"], "timezone": "Europe/Berlin", "startAt": "2199-01-01T00:00:00Z" }),
            json!({ "kind": "interval", "every": 90, "unit": "minutes", "startAt": 7_258_118_400_000_i64 }),
            json!({ "kind": "cron", "expression": "0 0 29 2 *", "endAt": "2199-01-01T00:00:00Z" }),
            Value::Null,
        ],
        &[
            json!({ "kind": "cron", "expression": "61 * * * *" }),
            json!({ "kind": "weekly", "days": [8], "at": ["25:00"] }),
            json!({ "kind": "once", "at": 7_258_118_400_000_i64, "timezone": "Mars/Olympus" }),
        ],
    );
    let made = object([
        ("name*", name()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
        ("description", description_or_null()),
    ]);
    let changed = object([
        ("name", name()),
        ("active", flag()),
        ("recurrence", recurrence),
        ("folderId", reference_or_null("folder")),
        ("description", description_or_null()),
        (
            "executionTimeoutMs",
            one_of(&[json!(60_000), json!(0), Value::Null]),
        ),
    ]);
    let tag_ids = vec(reference("tag"), 0..3).prop_map(Value::from).boxed();
    let list = [
        ("q", text(&["", "", "ord", "%", "_", "Ü"])),
        (
            "status",
            text(&["", "", "active", "inactive", "draft", "deployed", "modified"]),
        ),
        ("folderId", prop_oneof![Just(String::new()), id("folder")].boxed()),
        ("tagIds", prop_oneof![Just(String::new()), id("tag")].boxed()),
        ("tagMatch", text(&["", "any", "all"])),
        ("sortBy", text(&["", "name", "createdAt", "updatedAt"])),
        ("sortDir", text(&["", "asc", "desc"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        2 => call("CreateWorkflow", [], made),
        4 => call("UpdateWorkflow", [("id", id("wf"))], changed),
        1 => call("DeleteWorkflow", [("id", id("wf"))], nothing()),
        2 => call("SetWorkflowTags", [("id", id("wf"))], object([("tagIds*", tag_ids)])),
        2 => call("ListWorkflows", list, nothing()),
        1 => call("GetWorkflow", [("id", id("wf")), ("view", text(&["", "draft", "deployed"]))], nothing()),
    ]
    .boxed()
}

pub(super) fn deployments() -> Steps {
    let expected = (0..3, 0..3).prop_map(|(workflow, back)| format!("wf#{workflow}@{back}").into());
    let deploy = object([("expectedUpdatedAt", expected.boxed())]);
    let expressions = [
        "1.body.price",
        "{{2.answer + 1}}",
        "{{upper(\"ß\")}}",
        "{{$vars.RATE}}",
        "{{1 +}}",
        "{{nothing()}}",
        "",
        "{{[3, 1, 2]}}",
        "{{sort([\"b\", \"Ä\", \"a\"])}}",
        "{{0.1 + 0.2}}",
        "{{1 / 3}}",
        "{{9007199254740993}}",
    ];
    let expression = object([
        ("expression*", one_of(&expressions)),
        ("fromNodeId", one_of(&["2", "9", "x"])),
        ("runId", reference("run")),
    ]);
    prop_oneof![
        4 => call("DeployWorkflow", [("id", id("wf"))], deploy),
        1 => call("UndeployWorkflow", [("id", id("wf"))], Just(json!({}))),
        1 => call("ValidateWorkflow", [("id", id("wf"))], Just(json!({}))),
        1 => call("ListWorkflowVersions", [("id", id("wf")), ("limit", limit()), ("cursor", cursor())], nothing()),
        1 => call("GetWorkflowVersion", [("id", id("wf")), ("versionNo", text(&["1", "2", "0", "-1"]))], nothing()),
        2 => call("ResolveExpression", [("id", id("wf"))], expression),
    ]
    .boxed()
}

pub(super) fn runs() -> Steps {
    let outputs = one_of(&[
        json!({}),
        json!({ "1": { "body": { "price": 60, "customer": "Ada", "id": 7 } } }),
        json!({ "1": { "body": { "price": "many", "customer": null } } }),
        json!({ "9": {}, "x": {} }),
        json!({ "1": [1, 2] }),
    ]);
    let seed = (id("run"), one_of(&[json!(2), json!(9), Value::Null])).prop_map(|(run, node)| match node {
        Value::Null => json!({ "runId": run }),
        node => json!({ "runId": run, "nodeId": node }),
    });
    let node = mostly(&["1", "2", "3"], &["9", "x", ""]);
    let seeded = prop_oneof![
        1 => object([("nodeId*", node.clone()), ("upstreamOutputs", outputs)]),
        1 => object([("nodeId*", node), ("seedFromRun", seed.boxed())]),
        3 => Just(json!({})),
    ];
    let key = prop_oneof![12 => text(&["", "once", "twice"]), 1 => text(&["with space"])].boxed();
    let retry = object([
        ("nodeId*", one_of(&[1, 2, 3, 9])),
        ("attemptNumber", one_of(&[1, 2])),
    ]);
    let pages = || [("limit", limit()), ("cursor", cursor())];
    let [limit, cursor] = pages();
    let [node_limit, node_cursor] = pages();
    let respond = object([
        ("response*", one_of(&[json!({}), json!({ "approved": true })])),
        ("attemptNumber", one_of(&[1, 2])),
    ]);
    let body = || Just(json!({}));
    prop_oneof![
        8 => call("StartRun", [("workflowId", id("wf")), ("idempotencyKey", key)], seeded),
        2 => call("CancelRun", [("id", id("run"))], body()),
        2 => call("RerunRun", [("id", id("run"))], body()),
        2 => call("RetryRunNode", [("id", id("run"))], retry),
        1 => call("RespondRunNode", [("id", id("run")), ("nodeId", text(&["1", "2", "9"]))], respond),
        1 => call("ListRuns", [("workflowId", id("wf")), limit, cursor], nothing()),
        1 => call("ListRunNodes", [("id", id("run")), node_limit, node_cursor], nothing()),
    ]
    .boxed()
}

pub(super) fn webhooks() -> Steps {
    let list = [
        ("q", text(&["", "ord", "hooks", "%"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        4 => call("MintWebhook", [("workflowId", id("wf"))], object([("nodeId*", mostly(&["1"], &["2", "9", "x"]))])),
        2 => call("UpdateWebhook", [("id", id("wh"))], object([("enabled*", flag())])),
        1 => call("DeleteWebhook", [("id", id("wh")), ("force", text(&["", "1", "true", "x"]))], nothing()),
        1 => call("ListWebhooks", list, nothing()),
    ]
    .boxed()
}
