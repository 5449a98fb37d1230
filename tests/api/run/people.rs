//! Runs that wait for people: what is asked, who answers, and what becomes of requests that nobody answers.

use contract::v1::{BillingStatus, MemberRole, Scope, UpdateOrganizationRequest};
use serde_json::{Value, json};
use test_support::{graphs, text, together, until};

use crate::world::World;

on_both_databases!(
    an_answer_lets_the_run_go_on,
    answers_are_checked_against_the_fields,
    requests_are_listed_while_they_are_open,
    of_simultaneous_answers_one_wins,
    only_nodes_that_ask_are_answered,
    an_attempt_is_answered_and_no_other,
    iterations_are_answered_one_by_one,
    a_request_in_vain_fails_or_goes_on,
    a_cancelled_run_asks_nobody,
    an_unpaid_bill_stops_answers,
    forms_are_checked_when_they_are_saved,
    secrets_are_not_asked_aloud,
    another_organizations_requests_do_not_exist,
);

/// The form of everyday use.
pub(super) fn approval() -> Value {
    json!({
        "title": "Approve order {{1.body.id}}",
        "message": "Is it fine?",
        "fields": [
            { "name": "approved", "type": "boolean", "required": true, "label": "Approve?" },
            { "name": "amount", "type": "integer" },
            { "name": "until", "type": "datetime" },
        ],
        "assignees": ["Ada@Example.com", "grace"],
    })
}

/// A webhook (1), a form (2) and a node after it (3).
pub(super) fn asking(form: Value) -> Value {
    graphs::chain(&[
        ("webhook_trigger", json!({})),
        ("human_input", form),
        (
            "set",
            json!({ "fields": { "by": "{{2.respondedBy}}", "amount": "{{2.response.amount}}" } }),
        ),
    ])
}

/// A run that waits with this form, and its request.
pub(super) async fn waiting(world: &World, form: Value) -> (String, Value) {
    let workflow = world.api.workflow_with("Orders", asking(form)).await;
    let run = world
        .api
        .start(
            &workflow,
            json!({ "nodeId": "2", "upstreamOutputs": { "1": { "body": { "id": 7 } } } }),
        )
        .await;
    let request = open(world, &run).await;
    (run, request)
}

/// The one open request of a run, once it is there.
pub(super) async fn open(world: &World, run: &str) -> Value {
    let request = until(async || requests(world, &format!("runId={run}")).await.pop());
    request.await.expect("an open request")
}

pub(super) async fn requests(world: &World, query: &str) -> Vec<Value> {
    world.api.all_pages(&format!("/human-requests?{query}")).await
}

fn respond_path(run: &str, node: i64) -> String {
    format!("/runs/{run}/nodes/{node}/respond")
}

async fn an_answer_lets_the_run_go_on(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let body =
        json!({ "response": { "approved": true, "amount": 5.0, "until": "2026-01-31T10:00:00+01:00" } });
    let answered = world.api.post(respond_path(&run, 2), body).await.data(200);
    assert_eq!(answered, json!({ "ok": true, "resumed": true, "terminal": true }));
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded");
    let output = &report["nodes"][0]["output"];
    let kept = json!({ "approved": true, "amount": 5, "until": "2026-01-31T09:00:00Z" });
    assert_eq!(
        (&output["response"], &output["respondedBy"]),
        (&kept, &json!(world.owner))
    );
    assert!(text(&output["respondedAt"]).ends_with('Z'), "{output}");
    assert_eq!(output.as_object().unwrap().len(), 3);
    assert_eq!(
        report["nodes"][1]["output"],
        json!({ "by": world.owner, "amount": 5 })
    );
    // A form whose answer leads nowhere, and one that another branch waits beside.
    let last = graphs::chain(&[("manual_trigger", json!({})), ("human_input", json!({}))]);
    let workflow = world.api.workflow_with("x", last).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = open(world, &run).await;
    let answered = world
        .api
        .post(respond_path(&run, 2), json!({ "response": {} }))
        .await;
    assert_eq!(
        answered.data(200),
        json!({ "ok": true, "resumed": false, "terminal": true })
    );
    let mut beside = graphs::long_wait();
    let form = json!({ "op": "add_node", "tempId": "ask", "kind": "human_input", "after": "n1" });
    beside.as_array_mut().unwrap().push(form);
    let workflow = world.api.workflow_with("x", beside).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = open(world, &run).await;
    let answered = world
        .api
        .post(respond_path(&run, 4), json!({ "response": {} }))
        .await;
    assert_eq!(
        answered.data(200),
        json!({ "ok": true, "resumed": false, "terminal": false })
    );
    let told = world
        .api
        .get("/activity?action=run.node_answered")
        .await
        .data(200);
    assert_eq!(told["events"].as_array().unwrap().len(), 3);
}

async fn answers_are_checked_against_the_fields(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let path = respond_path(&run, 2);
    for (response, place) in [
        (json!({}), "response.approved"),
        (json!({ "approved": null }), "response.approved"),
        (json!({ "approved": "yes" }), "response.approved"),
        (json!({ "approved": true, "amount": 1.5 }), "response.amount"),
        (json!({ "approved": true, "until": "tomorrow" }), "response.until"),
        (json!({ "approved": true, "other": 1 }), "response.other"),
    ] {
        world
            .api
            .post(&path, json!({ "response": response }))
            .await
            .invalid(place);
    }
    for response in [json!([]), json!("yes"), Value::Null] {
        world
            .api
            .post(&path, json!({ "response": response }))
            .await
            .invalid("response");
    }
    world.api.post(&path, json!({})).await.invalid("response");
    let both = world
        .api
        .post(&path, json!({ "response": { "amount": "x" } }))
        .await;
    assert_eq!(
        both.error(400, "VALIDATION_ERROR")["details"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        world.api.reached(&run, &["waiting"]).await["nodes"][0]["status"],
        "waiting"
    );
    let body = json!({ "response": { "approved": false, "amount": null } });
    let _ = world.api.post(&path, body).await.data(200);
    let report = world.api.ended(&run).await;
    assert_eq!(
        report["nodes"][0]["output"]["response"],
        json!({ "approved": false })
    );
}

async fn requests_are_listed_while_they_are_open(world: &World) {
    let (run, request) = waiting(world, approval()).await;
    let report = world.api.reached(&run, &["waiting"]).await;
    let id = text(&request["id"]);
    assert!(
        id.starts_with("hreq_") && request["createdAt"].is_i64(),
        "{request}"
    );
    let url = text(&request["answer_url"]);
    assert!(
        url.starts_with(&format!("{}/answer/", world.server.rest_url())),
        "{url}"
    );
    let expected = json!({
        "id": id, "workflowId": report["workflowId"], "runId": run, "attemptNumber": 1, "nodeId": 2,
        "title": "Approve order 7", "message": "Is it fine?",
        "fields": [
            { "name": "approved", "type": "boolean", "required": true, "label": "Approve?" },
            { "name": "amount", "type": "integer", "required": false, "label": "amount" },
            { "name": "until", "type": "datetime", "required": false, "label": "until" },
        ],
        "assignees": ["Ada@Example.com", "grace"],
        "answer_url": url, "dueAt": null, "createdAt": request["createdAt"],
    });
    assert_eq!(request, expected);
    // The link answers, which this key may not.
    let reader = world
        .admin
        .key(&world.organization, &world.owner, &[Scope::WorkflowRead], None)
        .await;
    let shown = world
        .api
        .with_key(Some(&reader.api_key))
        .get("/human-requests")
        .await;
    let (shown, _) = shown.page();
    assert_eq!(
        (&shown[0]["id"], &shown[0]["answer_url"]),
        (&json!(id), &Value::Null)
    );
    let (second, newer) = waiting(
        world,
        json!({ "title": "Another", "assignees": ["grace hopper"] }),
    )
    .await;
    let ids = async |query: &str| -> Vec<Value> {
        requests(world, query)
            .await
            .into_iter()
            .map(|row| row["id"].clone())
            .collect()
    };
    let (first, newer) = (&request["id"], &newer["id"]);
    assert_eq!(
        ids("limit=1").await,
        [newer.clone(), first.clone()],
        "newest first"
    );
    for (query, found) in [
        (format!("runId={second}"), vec![newer.clone()]),
        (
            format!("workflowId={}", text(&report["workflowId"])),
            vec![first.clone()],
        ),
        ("assignee=ada@example.COM".to_owned(), vec![first.clone()]),
        ("assignee=grace".to_owned(), vec![first.clone()]),
        ("assignee=gr_ce".to_owned(), vec![]),
        ("assignee=ada".to_owned(), vec![]),
        ("runId=run_unknown".to_owned(), vec![]),
    ] {
        assert_eq!(ids(&query).await, found, "{query}");
    }
    world.api.get("/human-requests?limit=0").await.invalid("limit");
    world
        .api
        .get("/human-requests?status=open")
        .await
        .invalid("status");
    let (_, cursor) = world.api.get("/human-requests?limit=1").await.page();
    let other = format!(
        "/human-requests?limit=1&assignee=grace&cursor={}",
        cursor.unwrap()
    );
    world.api.get(other).await.invalid("cursor");
    let body = json!({ "response": { "approved": true } });
    let _ = world.api.post(respond_path(&run, 2), body).await.data(200);
    assert_eq!(ids("").await, std::slice::from_ref(newer));
    let _ = world
        .api
        .post(format!("/runs/{second}/cancel"), json!({}))
        .await
        .data(200);
    assert_eq!(ids("").await, Vec::<Value>::new());
}

async fn of_simultaneous_answers_one_wins(world: &World) {
    for after in [false, true] {
        let (run, _) = match after {
            false => waiting(world, approval()).await,
            // The run goes on waiting after the answer.
            true => {
                let mut graph = graphs::long_wait();
                graph[1]["kind"] = json!("human_input");
                graph[1]["params"] = json!({ "fields": [{ "name": "approved", "type": "any" }] });
                graph[2]["kind"] = json!("wait");
                graph[2]["params"] = json!({ "amount": 1, "unit": "hours" });
                let workflow = world.api.workflow_with("x", graph).await;
                let run = world.api.start(&workflow, json!({})).await;
                let request = open(world, &run).await;
                (run, request)
            }
        };
        let answers = (0..10).map(|number| {
            let (api, path) = (world.api.clone(), respond_path(&run, 2));
            let body = json!({ "response": { "approved": number % 2 == 0 } });
            async move {
                let answer = api.post(path, body).await;
                match answer.status {
                    200 => "won".to_owned(),
                    status => format!("{status} {}", text(&answer.json()["error"]["code"])),
                }
            }
        });
        let mut outcomes = together(answers).await;
        outcomes.sort();
        assert_eq!(
            outcomes.iter().filter(|outcome| *outcome == "won").count(),
            1,
            "{outcomes:?}"
        );
        let lost = |outcome: &String| match after {
            true => outcome == "409 resume_in_flight",
            false => ["409 resume_in_flight", "409 run_terminal_conflict"].contains(&outcome.as_str()),
        };
        assert!(outcomes[..9].iter().all(lost), "{outcomes:?}");
        let late = json!({ "response": { "approved": true } });
        let code = if after {
            "resume_in_flight"
        } else {
            "run_terminal_conflict"
        };
        world.api.post(respond_path(&run, 2), late).await.error(409, code);
    }
}

async fn only_nodes_that_ask_are_answered(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let body = || json!({ "response": { "approved": true } });
    for node in ["1", "3", "99", "two", "-2"] {
        let path = format!("/runs/{run}/nodes/{node}/respond");
        world.api.post(path, body()).await.error(404, "NOT_FOUND");
    }
    world
        .api
        .post("/runs/run_unknown/nodes/2/respond", body())
        .await
        .error(404, "NOT_FOUND");
    // A form that the run has not come to.
    let later = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "amount": 1, "unit": "hours" })),
        ("human_input", json!({})),
    ]);
    let workflow = world.api.workflow_with("x", later).await;
    let run = world.api.start(&workflow, json!({})).await;
    let path = respond_path(&run, 3);
    world
        .api
        .post(&path, json!({ "response": {} }))
        .await
        .error(404, "NOT_FOUND");
    let (_, viewer) = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let viewer = world.api.with_key(Some(&viewer.api_key));
    viewer
        .post(&path, json!({ "response": {} }))
        .await
        .error(403, "MISSING_SCOPE");
    let _ = viewer.get("/human-requests").await.page();
}

async fn an_attempt_is_answered_and_no_other(world: &World) {
    let (run, first) = waiting(world, approval()).await;
    let path = respond_path(&run, 2);
    let at = |attempt: i32| json!({ "response": { "approved": true }, "attemptNumber": attempt });
    world.api.post(&path, at(2)).await.error(400, "attempt_mismatch");
    let _ = world.api.post(&path, at(1)).await.data(200);
    let _ = world.api.ended(&run).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    let second = open(world, &run).await;
    assert_eq!(second["attemptNumber"], 2);
    assert_ne!(second["answer_url"], first["answer_url"]);
    world.api.post(&path, at(1)).await.error(400, "attempt_mismatch");
    let _ = world.api.post(&path, at(2)).await.data(200);
    assert_eq!(world.api.ended(&run).await["attemptNumber"], 2);
}

async fn iterations_are_answered_one_by_one(world: &World) {
    let graph = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("splitter", json!({ "items": ["a", "b", "c"], "concurrency": 3 })),
        (
            "human_input",
            json!({ "title": "{{$item}}", "fields": [{ "name": "n", "type": "integer" }] }),
        ),
        ("aggregator", json!({ "of": 2, "collect": "{{3.response.n}}" })),
    ]);
    let workflow = world.api.workflow_with("x", graph).await;
    let run = world.api.start(&workflow, json!({})).await;
    let all = until(async || {
        let open = requests(world, &format!("runId={run}")).await;
        (open.len() == 3).then_some(open)
    });
    let all = all.await.expect("three open requests");
    let mut asked: Vec<_> = all
        .iter()
        .map(|one| (text(&one["iteration"]), text(&one["title"])))
        .collect();
    asked.sort();
    let expected = [("0", "a"), ("1", "b"), ("2", "c")];
    assert_eq!(
        asked,
        expected.map(|(iteration, title)| (iteration.to_owned(), title.to_owned()))
    );
    let path = respond_path(&run, 3);
    let body = |n: i64, iteration: Option<&str>| match iteration {
        None => json!({ "response": { "n": n } }),
        Some(iteration) => json!({ "response": { "n": n }, "iteration": iteration }),
    };
    world.api.post(&path, body(1, None)).await.invalid("iteration");
    world
        .api
        .post(&path, body(1, Some("x")))
        .await
        .invalid("iteration");
    world
        .api
        .post(&path, body(1, Some("7")))
        .await
        .error(404, "NOT_FOUND");
    for (n, iteration, terminal) in [(20, Some("2"), false), (10, Some("0"), false), (30, None, true)] {
        let answered = world.api.post(&path, body(n, iteration)).await.data(200);
        assert_eq!(answered["terminal"], terminal, "{answered}");
        if !terminal {
            world
                .api
                .post(&path, body(n, iteration))
                .await
                .error(409, "resume_in_flight");
        }
    }
    let report = world.api.ended(&run).await;
    let last = report["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["nodeId"] == 4);
    assert_eq!(last.unwrap()["output"]["items"], json!([10, 30, 20]));
}

async fn a_request_in_vain_fails_or_goes_on(world: &World) {
    let form = |on_timeout: &str| json!({ "title": "Quick", "timeoutMs": 1, "onTimeout": on_timeout });
    let workflow = world.api.workflow_with("x", asking(form("fail"))).await;
    let run = world.api.start(&workflow, json!({ "nodeId": "2" })).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["nodes"][0]["error"]["code"], "NODE_TIMEOUT");
    assert!(text(&report["error"]).starts_with("NODE_TIMEOUT: "), "{report}");
    let workflow = world.api.workflow_with("y", asking(form("continue"))).await;
    let run = world.api.start(&workflow, json!({ "nodeId": "2" })).await;
    let report = world.api.ended(&run).await;
    let nobody = json!({ "response": null, "respondedBy": null, "respondedAt": null, "timedOut": true });
    assert_eq!(report["nodes"][0]["output"], nobody);
    assert_eq!(requests(world, "").await, Vec::<Value>::new());
    let (_, open) = waiting(world, json!({ "timeoutMs": 60_000 })).await;
    let patience = open["dueAt"].as_i64().unwrap() - open["createdAt"].as_i64().unwrap();
    assert!((59_000..=60_000).contains(&patience), "{open}");
}

async fn a_cancelled_run_asks_nobody(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    assert_eq!(requests(world, "").await, Vec::<Value>::new());
    let body = json!({ "response": { "approved": true } });
    world
        .api
        .post(respond_path(&run, 2), body)
        .await
        .error(409, "run_terminal_conflict");
}

async fn an_unpaid_bill_stops_answers(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let path = respond_path(&run, 2);
    let mut change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(change.clone()).await;
    let body = json!({ "response": { "approved": true } });
    world
        .api
        .post(&path, json!({ "response": {} }))
        .await
        .invalid("response.approved");
    world
        .api
        .post(&path, body.clone())
        .await
        .error(402, "PAYMENT_REQUIRED");
    change.billing_status = BillingStatus::Ok.into();
    world.admin.change(change).await;
    let _ = world.api.post(&path, body).await.data(200);
}

async fn forms_are_checked_when_they_are_saved(world: &World) {
    let workflow = world.api.workflow("x").await;
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let wrong = json!({ "fields": [{ "name": "a", "type": "colour" }] });
    let body = json!({
        "ops": [{ "op": "add_node", "tempId": "a", "kind": "human_input", "params": wrong }],
        "expectedUpdatedAt": draft["updatedAt"],
    });
    let result = world.api.post(format!("/workflows/{workflow}/ops"), body).await;
    let told = String::from_utf8_lossy(&result.body).into_owned();
    assert!(told.contains("fields[0].type"), "{told}");
    // What only the run knows is checked by the run.
    let form = json!({ "fields": [{ "name": "{{1.body.name}}", "type": "text" }] });
    let workflow = world.api.workflow_with("y", asking(form)).await;
    let seeds = json!({ "nodeId": "2", "upstreamOutputs": { "1": { "body": { "name": "" } } } });
    let run = world.api.start(&workflow, seeds).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["nodes"][0]["error"]["code"], "EXPRESSION_ERROR");
}

async fn secrets_are_not_asked_aloud(world: &World) {
    let secret = json!({ "value": "s3cret-word", "isSecret": true });
    let _ = world.api.put("/variables/HUSH", secret).await.data(201);
    let form = json!({ "title": "It is {{$vars.HUSH}}", "message": "{{$vars.HUSH}}" });
    let (_, request) = waiting(world, form).await;
    assert_eq!(
        (&request["title"], &request["message"]),
        (&json!("It is ***"), &json!("***"))
    );
}

async fn another_organizations_requests_do_not_exist(world: &World) {
    let (run, _) = waiting(world, approval()).await;
    let stranger = world.stranger().await;
    let (rows, _) = stranger.get(format!("/human-requests?runId={run}")).await.page();
    assert_eq!(rows, Vec::<Value>::new());
    let body = json!({ "response": { "approved": true } });
    stranger
        .post(respond_path(&run, 2), body)
        .await
        .error(404, "NOT_FOUND");
}
