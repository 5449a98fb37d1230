//! A live example of each endpoint, and how it is made: the one entry that an endpoint needs in this suite.

use serde_json::{Value, json};
use test_support::{graphs, text};

use super::endpoint::{Endpoint, apps_are_there};
use super::home::Home;
use super::request::Example;

/// Live examples of an endpoint, to be sent in their order. Together they use each query parameter but `cursor` and
/// each field of the body. There are none where nothing is there yet that could be shown.
///
/// # Panics
/// When the endpoint has no entry here.
pub(super) async fn examples(home: &Home<'_>, endpoint: &Endpoint) -> Vec<Example> {
    let api = &home.api;
    match endpoint.name.as_str() {
        "GET /workflows" => {
            let workflow = home.full_workflow().await;
            let made = api.get(format!("/workflows/{workflow}")).await.data(200);
            let (rows, _) = api.get("/workflows").await.page();
            let listed = rows.iter().find(|row| row["id"] == workflow.as_str()).unwrap();
            let all = Example::list()
                .query("limit", 2)
                .query("q", "order")
                .query("status", "deployed")
                .query("folderId", text(&made["folderId"]))
                .query("tagIds", text(&listed["tagIds"][0]))
                .query("tagMatch", "all")
                .query("sortBy", "name")
                .query("sortDir", "asc");
            home.workflow().await;
            vec![Example::list(), all]
        }
        "POST /workflows" => {
            let folder = home.folder().await;
            vec![
                Example::sent(
                    json!({ "name": "Orders", "folderId": folder, "teamId": home.team, "description": "all" }),
                ),
                Example::sent(
                    json!({ "name": "Orders", "folderId": null, "teamId": null, "description": null }),
                ),
            ]
        }
        "GET /workflows/{id}" => {
            let full = Example::at(home.full_workflow().await);
            let plain = Example::at(home.workflow().await);
            vec![
                full.clone(),
                full.clone().query("view", "deployed"),
                plain.query("view", "draft"),
            ]
        }
        "PATCH /workflows/{id}" => {
            let workflow = Example::at(home.workflow().await);
            changes_of_a_workflow(&home.folder().await)
                .map(|body| workflow.clone().with(body))
                .collect()
        }
        "DELETE /workflows/{id}" => vec![Example::at(home.workflow().await)],
        "POST /workflows/{id}/ops" => {
            let workflow = home.workflow().await;
            let draft = api.get(format!("/workflows/{workflow}")).await.data(200);
            let body = every_operation(&draft["updatedAt"]);
            let again = home.workflow().await;
            let draft = api.get(format!("/workflows/{again}")).await.data(200);
            let ops = json!([{ "op": "rename_node", "nodeId": 1, "name": "Called" }]);
            let plain = json!({ "ops": ops, "expectedUpdatedAt": draft["updatedAt"] });
            vec![Example::at(workflow).with(body), Example::at(again).with(plain)]
        }
        "POST /workflows/{id}/deploy" => {
            let workflow = home.workflow().await;
            let draft = api.get(format!("/workflows/{workflow}")).await.data(200);
            let body = json!({ "expectedUpdatedAt": draft["updatedAt"] });
            let plain = Example::at(home.workflow().await);
            vec![
                Example::at(workflow).with(body),
                plain.clone().with(json!({})),
                plain,
            ]
        }
        "POST /workflows/{id}/undeploy" => vec![Example::at(home.live_workflow().await.0).with(json!({}))],
        "POST /workflows/{id}/validate" => {
            let valid = Example::at(home.workflow().await);
            let lacking = graphs::chain(&[("manual_trigger", json!({})), ("wait", json!({}))]);
            let lacking = Example::at(api.workflow_with("Lacking", lacking).await);
            vec![valid.clone().with(json!({})), valid, lacking]
        }
        "GET /workflows/{id}/versions" => {
            vec![Example::at(home.live_workflow().await.0).query("limit", 1)]
        }
        "GET /workflows/{id}/versions/{versionNo}" => {
            vec![Example::at(home.live_workflow().await.0).and("1")]
        }
        "POST /workflows/{id}/resolve-expression" => {
            let (workflow, run) = home.ended_run().await;
            let body = json!({ "expression": "{{1}}", "fromNodeId": "2", "runId": run });
            vec![
                Example::at(&workflow).with(body),
                Example::at(&workflow).with(json!({ "expression": "{{2.answer}}" })),
                Example::at(&workflow).with(json!({ "expression": "{{2.answer" })),
            ]
        }
        "POST /workflows/{id}/webhook" => {
            let minting = Example::at(home.workflow().await).with(json!({ "nodeId": "1" }));
            vec![minting.clone(), minting]
        }
        "POST /workflows/{id}/runs" => {
            let (workflow, run) = home.ended_run().await;
            let from_run = json!({ "seedFromRun": { "runId": run, "nodeId": 2 } });
            let from_caller = json!({ "nodeId": "2", "upstreamOutputs": { "1": { "any": null } } });
            let start = Example::at(&workflow);
            let repeated = start.clone().with(json!({})).header("idempotency-key", "once");
            vec![
                start.clone().with(from_caller),
                start.clone().with(from_run),
                repeated.clone(),
                repeated,
                start,
            ]
        }
        "POST /workflows/{id}/test-module" => {
            let workflow = Example::at(home.app_workflow().await);
            let of_node = |node: Value| workflow.clone().with(json!({ "nodeId": node }));
            vec![of_node(json!(2)), of_node(json!("2"))]
        }
        "PUT /workflows/{id}/tags" => {
            let workflow = Example::at(home.workflow().await);
            let tags = json!({ "tagIds": [home.tag().await, home.tag().await] });
            vec![
                workflow.clone().with(tags),
                workflow.with(json!({ "tagIds": [] })),
            ]
        }
        "GET /variables" => {
            home.variable(true).await;
            home.variable(false).await;
            vec![Example::list()]
        }
        "GET /variables/{id}" => vec![
            Example::at(home.variable(true).await),
            Example::at(home.variable(false).await),
        ],
        "PUT /variables/{id}" => {
            let name = Example::at(format!("SET_{}", home.number()));
            let secret = json!({ "value": "hunter22", "isSecret": true, "teamId": home.team });
            let of_all = json!({ "value": "v", "teamId": null });
            vec![
                name.clone().with(secret),
                name.clone().with(of_all.clone()),
                name.with(of_all),
            ]
        }
        "DELETE /variables/{id}" => vec![Example::at(home.variable(false).await)],
        "GET /runs" => {
            let (workflow, _) = home.ended_run().await;
            let waits = api
                .get(format!("/runs/{}", home.waiting_run().await))
                .await
                .data(200);
            let of = |workflow: &str| Example::list().query("workflowId", workflow);
            vec![
                of(&workflow).query("limit", 1).query("q", "succeeded"),
                of(&text(&waits["workflowId"])),
            ]
        }
        "GET /runs/{id}" => vec![
            Example::at(home.ended_run().await.1),
            Example::at(home.failed_run().await),
            Example::at(home.waiting_run().await),
            Example::at(home.called_run().await),
        ],
        "GET /runs/{id}/nodes" => vec![
            Example::at(home.failed_run().await),
            Example::at(home.waiting_run().await).query("limit", 1),
        ],
        "GET /runs/{id}/events" => vec![
            Example::at(home.ended_run().await.1),
            Example::at(home.failed_run().await),
        ],
        "POST /runs/{id}/cancel" => vec![Example::at(home.waiting_run().await).with(json!({}))],
        "POST /runs/{id}/rerun" => vec![Example::at(home.ended_run().await.1).with(json!({}))],
        "POST /runs/{id}/retry-node" => {
            let body = json!({ "nodeId": 2, "attemptNumber": 1 });
            vec![Example::at(home.failed_run().await).with(body)]
        }
        "POST /runs/{id}/nodes/{nodeId}/respond" => {
            let node = Example::at(home.asking_run(&["a", "b"]).await.1).and("3");
            let answer = json!({ "approved": true });
            let first = json!({ "response": answer, "iteration": "0", "attemptNumber": 1 });
            let second = json!({ "response": answer, "iteration": "1" });
            vec![node.clone().with(first), node.with(second)]
        }
        "GET /credentials" => {
            home.credential().await;
            let all = Example::list().query("limit", 1).query("appId", "http");
            vec![Example::list(), all]
        }
        "POST /credentials" => {
            let all = json!({
                "appId": "http", "connectionId": "bearer", "name": "Mine", "data": { "token": "hunter22" },
                "teamId": home.team,
            });
            let unfinished =
                json!({ "appId": "http", "connectionId": "bearer", "name": "Mine", "teamId": null });
            vec![Example::sent(all), Example::sent(unfinished)]
        }
        "PATCH /credentials/{id}" => {
            let credential = Example::at(home.credential().await);
            let all = json!({ "name": "Renamed", "folderId": home.folder().await });
            vec![
                credential.clone().with(all),
                credential.with(json!({ "folderId": null })),
            ]
        }
        "DELETE /credentials/{id}" => vec![Example::at(home.credential().await)],
        "POST /credentials/{id}/verify" => vec![Example::at(home.credential().await).with(json!({}))],
        "POST /credentials/dynamic-options" => {
            let credential = home.choosing_credential().await;
            let least = json!({ "appId": "shelves", "rpcId": "books", "params": { "shelf": "a" } });
            let mut all = least.clone();
            all["credentialId"] = json!(credential);
            vec![Example::sent(all), Example::sent(least)]
        }
        "GET /databases" => {
            home.table().await;
            home.table().await;
            vec![Example::list(), Example::list().query("limit", 1)]
        }
        "POST /databases" => {
            let all =
                json!({ "name": "All", "description": "of it", "columns": columns(), "teamId": home.team });
            let least =
                json!({ "name": "Least", "columns": [{ "name": "a", "type": "json" }], "teamId": null });
            vec![Example::sent(all), Example::sent(least)]
        }
        "GET /databases/{id}" => vec![Example::at(home.table().await)],
        "PATCH /databases/{id}" => {
            vec![Example::at(home.table().await).with(json!({ "columns": columns() }))]
        }
        "DELETE /databases/{id}" => vec![Example::at(home.table().await)],
        "GET /databases/{id}/rows" => {
            let table = home.table().await;
            let filters = json!([{ "columnId": "price", "operator": "gt", "value": 1 }]);
            let all = Example::at(&table)
                .query("filters", filters)
                .query("sortColumnId", "sku")
                .query("sortDir", "desc")
                .query("limit", 1);
            vec![Example::at(&table), all]
        }
        "GET /structures" => {
            home.structure().await;
            home.structure().await;
            vec![Example::list(), Example::list().query("limit", 1)]
        }
        "POST /structures" => {
            let all = json!({
                "name": "All", "description": "of it", "fields": fields(),
                "folderId": home.folder().await, "teamId": home.team,
            });
            let least = json!({ "name": "Least", "folderId": null, "teamId": null });
            vec![Example::sent(all), Example::sent(least)]
        }
        "GET /structures/{id}" => vec![Example::at(home.structure().await)],
        "PATCH /structures/{id}" => {
            let structure = Example::at(home.structure().await);
            let all = json!({
                "name": "New", "description": "new", "fields": fields(), "folderId": home.folder().await,
            });
            let clear = json!({ "description": null, "folderId": null, "fields": [] });
            vec![structure.clone().with(all), structure.with(clear)]
        }
        "GET /functions" => {
            home.function().await;
            vec![Example::list().query("limit", 1).query("q", "answer")]
        }
        "POST /functions" => {
            let all = json!({
                "name": format!("all{}", home.number()), "code": "return a", "description": "of it",
                "parameters": parameters(), "folderId": home.folder().await, "teamId": home.team,
            });
            let least = json!({ "name": format!("least{}", home.number()), "code": "return 1" });
            vec![Example::sent(all), Example::sent(least)]
        }
        "GET /functions/{id}" => vec![Example::at(home.function().await)],
        "PATCH /functions/{id}" => {
            let function = Example::at(home.function().await);
            let all = json!({
                "name": format!("new{}", home.number()), "code": "return a", "description": "new",
                "parameters": parameters(), "folderId": home.folder().await,
            });
            let clear = json!({ "description": null, "folderId": null, "parameters": [] });
            vec![function.clone().with(all), function.with(clear)]
        }
        "GET /teams" => vec![Example::list()],
        "GET /human-requests" => {
            let (workflow, run) = home.asking_run(&["a"]).await;
            let all = Example::list()
                .query("workflowId", workflow)
                .query("runId", run)
                .query("assignee", "ada@users.test")
                .query("limit", 1);
            vec![Example::list(), all]
        }
        "GET /folders" => {
            let parent = home.folder().await;
            let _ = api
                .post("/folders", json!({ "name": "Below", "parentId": parent }))
                .await
                .data(201);
            vec![Example::list()]
        }
        "POST /folders" => vec![
            Example::sent(json!({ "name": "Below", "parentId": home.folder().await })),
            Example::sent(json!({ "name": "Top", "parentId": null })),
        ],
        "PATCH /folders/{id}" => {
            let folder = Example::at(home.folder().await);
            let down = json!({ "name": "Below", "parentId": home.folder().await });
            vec![
                folder.clone().with(down),
                folder.with(json!({ "parentId": null })),
            ]
        }
        "DELETE /folders/{id}" => vec![Example::at(home.folder().await)],
        "GET /tags" => {
            home.tag().await;
            vec![Example::list()]
        }
        "POST /tags" => vec![Example::sent(json!({ "name": "urgent", "color": "#ff0000" }))],
        "PATCH /tags/{id}" => {
            vec![Example::at(home.tag().await).with(json!({ "name": "late", "color": "blue" }))]
        }
        "DELETE /tags/{id}" => vec![Example::at(home.tag().await)],
        "GET /webhooks" => {
            home.live_workflow().await;
            vec![Example::list().query("limit", 1).query("q", "orders")]
        }
        "PATCH /webhooks/{id}" => {
            let webhook = Example::at(home.live_workflow().await.1);
            vec![
                webhook.clone().with(json!({ "enabled": false })),
                webhook.with(json!({ "enabled": true })),
            ]
        }
        "DELETE /webhooks/{id}" => vec![Example::at(home.live_workflow().await.1).query("force", "1")],
        "GET /invitations" => {
            home.invitation().await;
            home.invitation().await;
            vec![
                Example::list(),
                Example::list().query("status", "pending").query("limit", 1),
            ]
        }
        "POST /invitations" => {
            let email = || format!("invited{}@users.test", home.number());
            vec![
                Example::sent(json!({ "email": email(), "role": "admin", "teamId": home.team })),
                Example::sent(json!({ "email": email(), "role": "viewer", "teamId": null })),
            ]
        }
        "DELETE /invitations/{id}" => vec![Example::at(home.invitation().await)],
        "GET /members" => vec![Example::list(), Example::list().query("limit", 1)],
        "GET /activity" => {
            let workflow = home.workflow().await;
            let all = Example::list()
                .query("targetType", "workflow")
                .query("targetId", workflow)
                .query("actorUserId", &home.owner)
                .query("action", "workflow.created")
                .query("since", 0)
                .query("until", 9_999_999_999_999_i64)
                .query("limit", 1);
            vec![Example::list(), all]
        }
        "GET /catalog/apps" => vec![Example::list().query("query", "http").query("limit", 1)],
        "GET /catalog/apps/{appId}/modules/{moduleId}" => match apps_are_there() {
            true => vec![Example::at("http").and("request")],
            false => Vec::new(),
        },
        "GET /catalog/nodes/{kind}" => ["condition", "splitter", "wait", "webhook_trigger"]
            .map(Example::at)
            .into(),
        name => panic!("{name} has no example; say in tests/api/conformance/example.rs how one is made"),
    }
}

/// Bodies that change a workflow, with each kind of recurrence, and that clear what they set.
fn changes_of_a_workflow(folder: &str) -> impl Iterator<Item = Value> {
    let everything = json!({
        "name": "Renamed", "description": "new", "active": true, "folderId": folder, "executionTimeoutMs": 1000,
        "recurrence": {
            "kind": "interval", "every": 15, "unit": "minutes", "timezone": "Europe/Berlin", "skipIfRunning": true,
            "startAt": "2026-01-31T09:30:00.000Z", "endAt": 4_000_000_000_000_i64, "catchupWindowMs": 1000,
        },
    });
    let recurrences = [
        json!({ "kind": "daily", "at": ["09:00"] }),
        json!({ "kind": "weekly", "days": [1, 7], "at": ["09:00", "17:30"] }),
        json!({ "kind": "monthly", "daysOfMonth": [1, -1], "at": ["00:00"] }),
        json!({ "kind": "cron", "expression": "*/5 * * * *" }),
        json!({ "kind": "once", "at": 4_000_000_000_000_i64 }),
    ];
    let recurrences = recurrences.map(|recurrence| json!({ "recurrence": recurrence }));
    let cleared =
        json!({ "recurrence": null, "folderId": null, "description": null, "executionTimeoutMs": null });
    [everything]
        .into_iter()
        .chain(recurrences)
        .chain([cleared, json!({})])
}

/// A batch for the workflow of everyday use that has each operation, with each of its fields. What only the graph can
/// tell to be wrong is an entry in `errors`, so that fields which exclude each other need no app to be there.
fn every_operation(updated_at: &Value) -> Value {
    json!({ "expectedUpdatedAt": updated_at, "dryRun": true, "atomic": false, "ops": [
        {
            "op": "add_node", "tempId": "new", "kind": "set", "name": "New", "params": { "fields": {} },
            "config": { "timeoutMs": 1000 }, "x": 10, "y": 20.5, "after": 5, "scaffold": false,
        },
        {
            "op": "add_node", "tempId": "module", "appId": "nothing", "moduleSlug": "like_this",
            "connectionId": "none", "credentialId": "cred_none",
        },
        { "op": "update_params", "nodeId": "new", "params": { "fields": { "a": 1 } }, "mode": "replace" },
        { "op": "update_config", "nodeId": "new", "config": { "notes": "n" }, "mode": "merge" },
        { "op": "rename_node", "nodeId": "new", "name": "Newer" },
        { "op": "connect", "from": 4, "to": "new", "type": "normal", "order": 3, "filter": "{{true}}" },
        { "op": "set_edge_filter", "from": 4, "to": "new", "type": "normal", "filter": null },
        { "op": "set_edge_filter", "edgeId": "none", "filter": "{{true}}" },
        { "op": "disconnect", "from": 4, "to": "new", "type": "normal" },
        { "op": "disconnect", "edgeId": "none" },
        { "op": "set_credential", "nodeId": "new", "credentialId": null },
        { "op": "remove_node", "nodeId": "new", "heal": true },
    ] })
}

fn columns() -> Value {
    json!([
        { "name": "sku", "type": "text", "required": true, "indexed": true, "uniqueKey": true },
        { "name": "price", "type": "number" },
    ])
}

fn fields() -> Value {
    json!([{ "name": "email", "type": "email", "required": true }])
}

fn parameters() -> Value {
    json!([{ "name": "a", "type": "number", "description": "what to give", "required": true }])
}
