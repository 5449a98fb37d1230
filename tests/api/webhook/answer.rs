//! Calls that are answered with what their run says.

use serde_json::{Value, json};
use test_support::{Answer, Server, ServerOptions, graphs, text, together, until};

use crate::world::World;

on_both_databases!(
    the_last_output_is_the_answer,
    a_response_node_is_the_answer,
    an_answer_does_not_wait_for_the_rest,
    a_run_without_a_response_is_answered_without_content,
    a_failed_run_is_answered_at_once,
    a_late_run_is_a_time_out_and_goes_on,
    a_cancelled_run_is_answered,
    a_repeated_delivery_is_answered_alike,
    headers_cannot_be_smuggled_in,
);

/// A live workflow that begins with a webhook of this mode, and its webhook.
async fn live(world: &World, mode: &str, nodes: &[(&str, Value)]) -> String {
    live_with(world, json!({ "responseMode": mode }), nodes).await
}

async fn live_with(world: &World, trigger: Value, nodes: &[(&str, Value)]) -> String {
    let mut all = vec![("webhook_trigger", trigger)];
    all.extend_from_slice(nodes);
    let workflow = world.api.workflow_with("Answers", graphs::chain(&all)).await;
    world.api.go_live(&workflow).await;
    world.api.mint(&workflow, 1).await
}

/// A wait too long for one step, and short enough for a test.
fn pause() -> (&'static str, Value) {
    ("wait", json!({ "amount": 0.05, "unit": "seconds" }))
}

fn doubled() -> (&'static str, Value) {
    ("set", json!({ "fields": { "double": "{{1.body.number * 2}}" } }))
}

async fn call(world: &World, webhook: &str, number: Value) -> Answer {
    world
        .api
        .call_hook(webhook, &[], json!({ "number": number }))
        .await
}

/// The id of the one run that waits for a person.
async fn asking_run(world: &World) -> String {
    let run = until(async || {
        let (rows, _) = world.api.get("/human-requests").await.page();
        rows.first().map(|row| text(&row["runId"]))
    });
    run.await.expect("a run that asks")
}

async fn the_last_output_is_the_answer(world: &World) {
    for nodes in [vec![doubled()], vec![pause(), doubled()]] {
        let webhook = live(world, "last_node", &nodes).await;
        let answer = call(world, &webhook, json!(21)).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "application/json")
        );
        assert_eq!(answer.text(), "{\"double\":42}");
    }
}

async fn a_response_node_is_the_answer(world: &World) {
    let headers = json!({ "x-number": "{{1.body.number}}", "Cache-Control": "no-store" });
    for (nodes_before, body, content_type, sent) in [
        (
            vec![],
            json!("Double: {{1.body.number * 2}}"),
            "text/plain; charset=utf-8",
            "Double: 42",
        ),
        (
            vec![pause()],
            json!({ "double": "{{1.body.number * 2}}" }),
            "application/json",
            "{\"double\":42}",
        ),
        (vec![], Value::Null, "", ""),
    ] {
        let mut nodes = nodes_before;
        let params = json!({ "status": 201, "headers": headers, "body": body });
        nodes.extend([("webhook_response", params), doubled()]);
        let webhook = live(world, "respond_node", &nodes).await;
        let answer = call(world, &webhook, json!(21)).await;
        assert_eq!((answer.status, answer.text().as_str()), (201, sent));
        assert_eq!(answer.header("content-type"), content_type);
        assert_eq!(
            (answer.header("x-number"), answer.header("cache-control")),
            ("21", "no-store")
        );
    }
    let html = json!({ "headers": { "Content-Type": "text/html" }, "body": "<p>Hi</p>" });
    let webhook = live(world, "respond_node", &[("webhook_response", html)]).await;
    let answer = call(world, &webhook, json!(1)).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/html"));
    assert_eq!(answer.headers.get_all("content-type").iter().count(), 1);
}

async fn an_answer_does_not_wait_for_the_rest(world: &World) {
    let said = ("webhook_response", json!({ "status": 202, "body": "noted" }));
    let webhook = live(world, "respond_node", &[said, ("human_input", json!({}))]).await;
    let answer = call(world, &webhook, json!(1)).await;
    assert_eq!((answer.status, answer.text().as_str()), (202, "noted"));
    let run = asking_run(world).await;
    let path = format!("/runs/{run}/nodes/3/respond");
    let _ = world.api.post(path, json!({ "response": {} })).await.data(200);
    assert_eq!(world.api.ended(&run).await["status"], "succeeded");
}

async fn a_run_without_a_response_is_answered_without_content(world: &World) {
    for nodes in [vec![doubled()], vec![pause(), doubled()]] {
        let webhook = live(world, "respond_node", &nodes).await;
        let answer = call(world, &webhook, json!(21)).await;
        assert_eq!((answer.status, answer.text().as_str()), (204, ""));
    }
}

async fn a_failed_run_is_answered_at_once(world: &World) {
    for mode in ["last_node", "respond_node"] {
        for nodes in [vec![doubled()], vec![pause(), doubled()]] {
            let webhook = live(world, mode, &nodes).await;
            let answer = call(world, &webhook, json!("x")).await;
            let error = answer.error(500, "run_failed");
            let report = world.api.ended(&text(&error["run_id"])).await;
            assert_eq!(report["status"], "failed");
            assert!(
                !answer.text().contains("EXPRESSION_ERROR"),
                "a stranger learns no more"
            );
        }
    }
    // What was said before the failure counts.
    let said = ("webhook_response", json!({ "body": "said" }));
    let webhook = live(world, "respond_node", &[said, doubled()]).await;
    let answer = call(world, &webhook, json!("x")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "said"));
}

async fn a_late_run_is_a_time_out_and_goes_on(world: &World) {
    let trigger = json!({ "responseMode": "last_node", "responseTimeoutMs": 100 });
    let webhook = live_with(world, trigger, &[("human_input", json!({})), doubled()]).await;
    let error = call(world, &webhook, json!(1))
        .await
        .error(504, "DEADLINE_EXCEEDED");
    let run = asking_run(world).await;
    assert_eq!(error["run_id"], run);
    let path = format!("/runs/{run}/nodes/2/respond");
    let _ = world.api.post(path, json!({ "response": {} })).await.data(200);
    assert_eq!(world.api.ended(&run).await["status"], "succeeded");
}

async fn a_cancelled_run_is_answered(world: &World) {
    let webhook = live(world, "last_node", &[("human_input", json!({}))]).await;
    let calling = tokio::spawn({
        let (api, webhook) = (world.api.clone(), webhook.clone());
        async move { api.call_hook(&webhook, &[], json!({})).await }
    });
    let run = asking_run(world).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    let error = calling.await.unwrap().error(500, "run_failed");
    assert_eq!(error["run_id"], run);
}

async fn a_repeated_delivery_is_answered_alike(world: &World) {
    for nodes in [vec![doubled()], vec![pause(), doubled()]] {
        let webhook = live(world, "last_node", &nodes).await;
        let deliver = |number: i64| {
            let (api, webhook) = (world.api.clone(), webhook.clone());
            let body = json!({ "number": number });
            async move {
                let answer = api.call_hook(&webhook, &[("webhook-id", "msg_1")], body).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
                answer.text()
            }
        };
        let answers = together((1..=10).map(deliver)).await;
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(deliver(99).await, answers[0]);
    }
    let respond = json!({ "status": 418, "body": "{{1.body.number}}" });
    let webhook = live(world, "respond_node", &[("webhook_response", respond)]).await;
    for number in [7, 8] {
        let body = json!({ "number": number });
        let answer = world
            .api
            .call_hook(&webhook, &[("idempotency-key", "k")], body)
            .await;
        assert_eq!((answer.status, answer.text().as_str()), (418, "7"));
    }
}

async fn headers_cannot_be_smuggled_in(world: &World) {
    let respond = json!({ "headers": { "x-name": "{{1.body.number}}" }, "body": "fine" });
    let webhook = live(world, "respond_node", &[("webhook_response", respond)]).await;
    assert_eq!(call(world, &webhook, json!("Ada")).await.header("x-name"), "Ada");
    for wrong in ["a\r\nset-cookie: b=c", "a\nb", "a\u{0}b"] {
        let answer = call(world, &webhook, json!(wrong)).await;
        let _ = answer.error(500, "run_failed");
        assert!(answer.headers.get("set-cookie").is_none() && answer.headers.get("x-name").is_none());
    }
    let workflow = world.api.workflow("x").await;
    for name in ["Content-Length", "Transfer-Encoding", "Connection", "x y"] {
        let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
        let params = json!({ "headers": { name: "1" } });
        let body = json!({
            "ops": [{ "op": "add_node", "tempId": "a", "kind": "webhook_response", "params": params }],
            "expectedUpdatedAt": draft["updatedAt"],
        });
        let refused = world.api.post(format!("/workflows/{workflow}/ops"), body).await;
        assert!(
            refused.text().contains(&format!("headers.{name}")),
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn a_server_that_stops_answers_those_who_wait() {
    let mut server = Server::start(ServerOptions::default()).await;
    let api = server.first_api();
    let nodes = [
        ("webhook_trigger", json!({ "responseMode": "last_node" })),
        ("human_input", json!({})),
    ];
    let workflow = api.workflow_with("Waits", graphs::chain(&nodes)).await;
    api.go_live(&workflow).await;
    let webhook = api.mint(&workflow, 1).await;
    let calling = tokio::spawn({
        let api = api.clone();
        async move { api.call_hook(&webhook, &[], json!({})).await }
    });
    let run = until(async || {
        let (rows, _) = api.get("/human-requests").await.page();
        rows.first().map(|row| text(&row["runId"]))
    });
    let run = run.await.expect("a run that asks");
    server.interrupt();
    let error = calling.await.unwrap().error(503, "UNAVAILABLE");
    assert_eq!(error["run_id"], run);
    assert!(server.terminate().await.success());
}
