//! Webhooks: minted, listed, disabled, deleted, and called by strangers.

mod answer;
mod verify;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, graphs, text, together};

use crate::world::World;

on_both_databases!(
    minting_again_gives_the_same_url,
    of_several_mints_at_once_one_mints,
    only_webhook_triggers_are_minted,
    a_disabled_webhook_is_not_minted_again,
    webhooks_are_listed_and_found,
    a_bound_webhook_is_deleted_by_force,
    a_call_starts_a_run_of_the_deployed_version,
    bodies_are_read_as_their_type_says,
    what_is_not_live_takes_no_calls,
    the_trigger_says_the_method,
    a_repeated_delivery_is_one_run,
    bodies_have_their_limit,
    an_unpaid_bill_refuses_calls,
);

/// A live workflow of everyday use, and its webhook.
async fn live(world: &World) -> (String, String) {
    let workflow = world.api.workflow_with("Orders", graphs::order_flow()).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    (workflow, webhook)
}

fn order() -> Value {
    json!({ "id": 7, "price": 60, "customer": "Ada" })
}

/// The id of the run that a call started.
#[track_caller]
fn accepted(answer: &Answer) -> String {
    let data = answer.data(202);
    assert_eq!(data["accepted"], true);
    text(&data["runId"])
}

async fn minting_again_gives_the_same_url(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let path = format!("/workflows/{workflow}/webhook");
    let first = world.api.post(&path, json!({ "nodeId": "1" })).await.data(200);
    let id = text(&first["webhookId"]);
    let url = format!("{}/hooks/{id}", world.server.rest_url());
    assert_eq!(
        first,
        json!({ "webhookId": id, "url": url, "alreadyBound": false })
    );
    let second = world.api.post(&path, json!({ "nodeId": "1" })).await.data(200);
    assert_eq!(
        second,
        json!({ "webhookId": id, "url": url, "alreadyBound": true })
    );
}

async fn of_several_mints_at_once_one_mints(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let mints = (0..12).map(|_| {
        let (api, path) = (world.api.clone(), format!("/workflows/{workflow}/webhook"));
        async move { api.post(path, json!({ "nodeId": "1" })).await.data(200) }
    });
    let minted = together(mints).await;
    assert!(
        minted.iter().all(|webhook| webhook["url"] == minted[0]["url"]),
        "{minted:?}"
    );
    let new = minted.iter().filter(|webhook| webhook["alreadyBound"] == false);
    assert_eq!(new.count(), 1, "{minted:?}");
    assert_eq!(world.api.all_pages("/webhooks").await.len(), 1);
}

async fn only_webhook_triggers_are_minted(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let path = format!("/workflows/{workflow}/webhook");
    for node in [json!("2"), json!("one"), json!(""), json!(1), Value::Null] {
        world
            .api
            .post(&path, json!({ "nodeId": node }))
            .await
            .invalid("nodeId");
    }
    world.api.post(&path, json!({})).await.invalid("nodeId");
    world
        .api
        .post(&path, json!({ "nodeId": "99" }))
        .await
        .error(404, "NOT_FOUND");
    let unknown = world
        .api
        .post("/workflows/wf_unknown/webhook", json!({ "nodeId": "1" }))
        .await;
    unknown.error(404, "NOT_FOUND");
}

async fn a_disabled_webhook_is_not_minted_again(world: &World) {
    let (workflow, webhook) = live(world).await;
    let path = format!("/webhooks/{webhook}");
    let disabled = world
        .api
        .patch(&path, json!({ "enabled": false }))
        .await
        .data(200);
    assert_eq!(
        (&disabled["enabled"], &disabled["id"]),
        (&json!(false), &json!(webhook))
    );
    let minted = world
        .api
        .post(format!("/workflows/{workflow}/webhook"), json!({ "nodeId": "1" }))
        .await;
    minted.error(409, "webhook_disabled");
    world
        .api
        .call_hook(&webhook, &[], order())
        .await
        .error(409, "workflow_not_live");
    assert_eq!(
        world.api.patch(&path, json!({ "enabled": true })).await.data(200)["enabled"],
        true
    );
    accepted(&world.api.call_hook(&webhook, &[], order()).await);
    world.api.patch(&path, json!({})).await.invalid("enabled");
    world
        .api
        .patch(&path, json!({ "enabled": null }))
        .await
        .invalid("enabled");
    world
        .api
        .patch("/webhooks/wh_unknown", json!({ "enabled": true }))
        .await
        .error(404, "NOT_FOUND");
}

async fn webhooks_are_listed_and_found(world: &World) {
    let (workflow, webhook) = live(world).await;
    let (rows, cursor) = world.api.get("/webhooks").await.page();
    let created = rows[0]["createdAt"].clone();
    let entry = json!({
        "id": webhook, "name": "Orders / Webhook", "url": format!("{}/hooks/{webhook}", world.server.rest_url()),
        "method": "POST", "enabled": true, "workflowId": workflow, "nodeId": "1", "createdAt": created,
    });
    assert!(created.is_i64());
    assert_eq!((rows, cursor), (vec![entry], None));
    let mut made = vec![webhook.clone()];
    for name in ["Invoices", "Refunds"] {
        let workflow = world.api.workflow_with(name, graphs::order_flow()).await;
        made.insert(0, world.api.mint(&workflow, 1).await);
    }
    let ids = async |query: &str| -> Vec<String> {
        let rows = world.api.all_pages(&format!("/webhooks?{query}")).await;
        rows.iter().map(|row| text(&row["id"])).collect()
    };
    assert_eq!(ids("limit=1").await, made);
    assert_eq!(ids("q=refund").await, made[..1]);
    assert_eq!(ids(&format!("q={webhook}")).await, [webhook]);
    assert_eq!(ids("q=nothing").await, Vec::<String>::new());
}

async fn a_bound_webhook_is_deleted_by_force(world: &World) {
    let (_, webhook) = live(world).await;
    let path = format!("/webhooks/{webhook}");
    for query in ["", "?force=0", "?force=true"] {
        world
            .api
            .delete(format!("{path}{query}"))
            .await
            .error(409, "webhook_in_use");
    }
    let deleted = world.api.delete(format!("{path}?force=1")).await;
    assert_eq!((deleted.status, deleted.body), (204, Bytes::new()));
    world
        .api
        .delete(format!("{path}?force=1"))
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .call_hook(&webhook, &[], order())
        .await
        .error(404, "NOT_FOUND");
    // A webhook that lost its workflow goes without force.
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let _ = world.api.delete(format!("/workflows/{workflow}")).await.data(200);
    let (rows, _) = world.api.get(format!("/webhooks?q={webhook}")).await.page();
    assert_eq!(
        (&rows[0]["workflowId"], &rows[0]["nodeId"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(world.api.delete(format!("/webhooks/{webhook}")).await.status, 204);
}

async fn a_call_starts_a_run_of_the_deployed_version(world: &World) {
    let (workflow, webhook) = live(world).await;
    world
        .api
        .edit(
            &workflow,
            json!([{ "op": "rename_node", "nodeId": 2, "name": "Edited" }]),
        )
        .await;
    let answer = world
        .api
        .call_hook(&format!("{webhook}?a=1&a=2"), &[("x-shop", "Vienna")], order())
        .await;
    assert!(!answer.header("x-request-id").is_empty());
    let run = accepted(&answer);
    assert_eq!(
        answer.text(),
        format!("{{\"data\":{{\"runId\":\"{run}\",\"accepted\":true}}}}")
    );
    let report = world.api.ended(&run).await;
    assert_eq!(
        (&report["status"], &report["versionNo"]),
        (&json!("succeeded"), &json!(1))
    );
    let trigger = json!({ "kind": "webhook", "nodeId": 1, "webhookId": webhook });
    assert_eq!(
        (&report["trigger"], &report["createdBy"]),
        (&trigger, &Value::Null)
    );
    let input = &report["nodes"][0]["output"];
    assert_eq!((&input["body"], &input["method"]), (&order(), &json!("POST")));
    assert_eq!(
        (&input["query"], &input["headers"]["x-shop"]),
        (&json!({ "a": ["1", "2"] }), &json!("Vienna"))
    );
    let priced = json!({ "total": 120, "customer": "ADA", "label": "Order 7 of Ada" });
    assert_eq!(
        (&report["nodes"][1]["output"], &report["nodes"][1]["label"]),
        (&priced, &json!("Set fields"))
    );
    let (rows, _) = world.api.get(format!("/runs?workflowId={workflow}")).await.page();
    assert_eq!(rows[0]["id"], run);
}

async fn bodies_are_read_as_their_type_says(world: &World) {
    let (_, webhook) = live(world).await;
    let stranger = world.api.with_key(None);
    let path = format!("/hooks/{webhook}");
    let send = async |content_type: &str, body: &'static [u8]| {
        let headers = [("content-type", content_type)];
        stranger
            .send(Method::POST, &path, &headers, Bytes::from_static(body))
            .await
    };
    for (content_type, body, read) in [
        (
            "application/json; charset=utf-8",
            &b"[1, 2.50]"[..],
            json!([1, 2.50]),
        ),
        (
            "application/x-www-form-urlencoded",
            b"a=1&b=x+y%21",
            json!({ "a": "1", "b": "x y!" }),
        ),
        ("text/plain", "grüß".as_bytes(), json!("grüß")),
        ("application/json", b"", Value::Null),
    ] {
        let run = accepted(&send(content_type, body).await);
        let report = world.api.ended(&run).await;
        assert_eq!(report["nodes"][0]["output"]["body"], read, "{content_type}");
    }
    send("image/png", b"x").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    for wrong in [&b"{"[..], b"{} x", b"\xff"] {
        send("application/json", wrong)
            .await
            .error(400, "VALIDATION_ERROR");
    }
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let headers = [("content-type", "application/json")];
    let answer = stranger.send(Method::POST, &path, &headers, deep.into()).await;
    answer.error(400, "VALIDATION_ERROR");
}

async fn what_is_not_live_takes_no_calls(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let path = format!("/workflows/{workflow}");
    let refused = async || {
        _ = world
            .api
            .call_hook(&webhook, &[], order())
            .await
            .error(409, "workflow_not_live")
    };
    refused().await;
    let _ = world
        .api
        .post(format!("{path}/deploy"), json!({}))
        .await
        .data(200);
    refused().await;
    let _ = world.api.patch(&path, json!({ "active": true })).await.data(200);
    accepted(&world.api.call_hook(&webhook, &[], order()).await);
    let _ = world
        .api
        .post(format!("{path}/undeploy"), json!({}))
        .await
        .data(200);
    refused().await;
    let _ = world
        .api
        .post(format!("{path}/deploy"), json!({}))
        .await
        .data(200);
    accepted(&world.api.call_hook(&webhook, &[], order()).await);
    // A trigger that the deployed version lacks.
    world
        .api
        .edit(
            &workflow,
            json!([{ "op": "add_node", "tempId": "new", "kind": "webhook_trigger" }]),
        )
        .await;
    let newer = world.api.mint(&workflow, 6).await;
    world
        .api
        .call_hook(&newer, &[], order())
        .await
        .error(409, "workflow_not_live");
    world
        .api
        .call_hook("wh_unknown", &[], order())
        .await
        .error(404, "NOT_FOUND");
}

async fn the_trigger_says_the_method(world: &World) {
    let (workflow, webhook) = live(world).await;
    let stranger = world.api.with_key(None);
    let path = format!("/hooks/{webhook}");
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = stranger.send(method, &path, &[], Bytes::new()).await;
        answer.error(405, "METHOD_NOT_ALLOWED");
    }
    let put = json!([{ "op": "update_params", "nodeId": 1, "params": { "method": "PUT" } }]);
    world.api.edit(&workflow, put).await;
    let _ = world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200);
    accepted(&stranger.send(Method::PUT, &path, &[], Bytes::new()).await);
    world
        .api
        .call_hook(&webhook, &[], order())
        .await
        .error(405, "METHOD_NOT_ALLOWED");
    let (rows, _) = world.api.get("/webhooks").await.page();
    assert_eq!(rows[0]["method"], "PUT");
}

async fn a_repeated_delivery_is_one_run(world: &World) {
    let (workflow, webhook) = live(world).await;
    for header in ["webhook-id", "idempotency-key"] {
        let deliver = |id: String, number: i32| {
            let (api, webhook) = (world.api.clone(), webhook.clone());
            let body = json!({ "number": number });
            async move { accepted(&api.call_hook(&webhook, &[(header, &id)], body).await) }
        };
        let runs = together((0..20).map(|number| deliver(format!("{header}_1"), number))).await;
        assert!(runs.iter().all(|run| *run == runs[0]), "{header}: {runs:?}");
        assert_ne!(deliver(format!("{header}_2"), 0).await, runs[0]);
    }
    assert_eq!(
        world
            .api
            .all_pages(&format!("/runs?workflowId={workflow}"))
            .await
            .len(),
        4
    );
}

async fn bodies_have_their_limit(world: &World) {
    let (_, webhook) = live(world).await;
    let stranger = world.api.with_key(None);
    let path = format!("/hooks/{webhook}");
    let headers = [("content-type", "text/plain")];
    let largest = Bytes::from(vec![b'x'; 5 << 20]);
    accepted(&stranger.send(Method::POST, &path, &headers, largest).await);
    let larger = Bytes::from(vec![b'x'; (5 << 20) + 1]);
    stranger
        .send(Method::POST, &path, &headers, larger)
        .await
        .error(413, "PAYLOAD_TOO_LARGE");
}

async fn an_unpaid_bill_refuses_calls(world: &World) {
    let (_, webhook) = live(world).await;
    let mut change = contract::v1::UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: contract::v1::BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(change.clone()).await;
    world
        .api
        .call_hook(&webhook, &[], order())
        .await
        .error(402, "PAYMENT_REQUIRED");
    change.billing_status = contract::v1::BillingStatus::Ok.into();
    change.credits = Some(test_support::at_most(0));
    world.admin.change(change).await;
    world
        .api
        .call_hook(&webhook, &[], order())
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
}
