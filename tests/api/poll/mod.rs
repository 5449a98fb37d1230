//! Triggers that poll: each new item of a service starts one run.

mod burst;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, text, until};

use crate::catalog;
use crate::world::World;

on_both_databases!(
    each_new_item_starts_one_run,
    what_comes_while_nobody_asks_starts_nothing,
    another_question_begins_anew,
    a_service_that_fails_is_told_of_and_asked_again,
    a_trigger_needs_a_list_of_things_with_keys,
    what_slides_into_the_list_starts_nothing,
    what_stands_below_a_known_item_starts_nothing,
    a_long_list_is_known_as_a_whole,
    a_list_that_is_too_long_is_refused,
);

/// A service with a list that grows, the latest first; nothing makes it fail.
struct Shop {
    service: Target,
    orders: Arc<Mutex<Option<Vec<i64>>>>,
}

impl Shop {
    async fn open(first: &[i64]) -> Self {
        let orders = Arc::new(Mutex::new(Some(first.to_vec())));
        let shown = Arc::clone(&orders);
        let service = Target::start(move |_: &Asked| {
            let orders = shown.lock().unwrap().clone();
            let status = if orders.is_some() { 200 } else { 500 };
            let rows = orders.unwrap_or_default().into_iter().rev();
            let rows: Vec<Value> = rows.map(|id| json!({ "id": id, "total": id * 10 })).collect();
            let answer = Response::builder()
                .status(status)
                .header("content-type", "application/json");
            answer
                .body(Bytes::from(json!({ "rows": rows }).to_string()))
                .unwrap()
        })
        .await;
        Self { service, orders }
    }

    fn set(&self, orders: Option<&[i64]>) {
        *self.orders.lock().unwrap() = orders.map(<[i64]>::to_vec);
    }

    /// Waits until the list was asked for from now on, and what was asked before is dealt with.
    async fn asked_again(&self) {
        let before = self.service.asked().len();
        let asked = until(async || (self.service.asked().len() >= before + 2).then_some(()));
        assert!(asked.await.is_some(), "nobody asks");
    }
}

/// A trigger (1) that asks each second, and a node that shows what it was given (2).
fn flow(shop: &Shop, key: &str) -> Value {
    let url = shop.service.url("/orders");
    let params = json!({ "url": url, "items": "rows", "key": key, "everySeconds": 1 });
    flow_of(("http", "new_item"), params)
}

fn flow_of((app, module): (&str, &str), params: Value) -> Value {
    json!([
        { "op": "add_node", "tempId": "new", "appId": app, "moduleSlug": module, "params": params },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "new",
          "params": { "fields": { "order": "{{1.id}}", "total": "{{1.total}}" } } },
    ])
}

/// What the runs of a workflow were given, oldest first, once there are so many and all have ended.
async fn given(world: &World, workflow: &str, number: usize) -> Vec<i64> {
    let path = format!("/runs?workflowId={workflow}&limit=200");
    let mut seen = Vec::new();
    let all = until(async || {
        seen = world.api.all_pages(&path).await;
        let ended = seen.iter().all(|run| run["status"] == "succeeded");
        (seen.len() >= number && ended).then_some(())
    });
    assert!(all.await.is_some(), "not {number} runs: {seen:?}");
    let mut given = Vec::new();
    for run in seen.iter().rev() {
        let report = world
            .api
            .get(format!("/runs/{}", text(&run["id"])))
            .await
            .data(200);
        let output = &report["nodes"][1]["output"];
        assert_eq!(output["total"], output["order"].as_i64().unwrap() * 10);
        given.push(output["order"].as_i64().unwrap());
    }
    given
}

async fn live(world: &World, shop: &Shop) -> String {
    live_with(world, shop, flow(shop, "id")).await
}

async fn live_with(world: &World, shop: &Shop, flow: Value) -> String {
    let workflow = world.api.workflow_with("Orders", flow).await;
    world.api.go_live(&workflow).await;
    shop.asked_again().await;
    workflow
}

async fn each_new_item_starts_one_run(world: &World) {
    let shop = Shop::open(&[1, 2]).await;
    let workflow = live(world, &shop).await;
    assert_eq!(
        given(world, &workflow, 0).await,
        [0; 0],
        "what was there starts nothing"
    );
    shop.set(Some(&[1, 2, 3, 4]));
    assert_eq!(given(world, &workflow, 2).await, [3, 4]);
    shop.set(Some(&[2, 3, 4, 5]));
    assert_eq!(given(world, &workflow, 3).await, [3, 4, 5]);
    shop.set(Some(&[1, 5]));
    shop.asked_again().await;
    assert_eq!(
        given(world, &workflow, 3).await,
        [3, 4, 5],
        "what comes back is not new"
    );
    let runs = world.api.all_pages(&format!("/runs?workflowId={workflow}")).await;
    let report = world
        .api
        .get(format!("/runs/{}", text(&runs[0]["id"])))
        .await
        .data(200);
    assert_eq!(report["trigger"]["kind"], "poll", "{report}");
}

async fn what_comes_while_nobody_asks_starts_nothing(world: &World) {
    let shop = Shop::open(&[1]).await;
    let workflow = live(world, &shop).await;
    let switch = async |active: bool| {
        let body = json!({ "active": active });
        let _ = world
            .api
            .patch(format!("/workflows/{workflow}"), body)
            .await
            .data(200);
    };
    switch(false).await;
    shop.set(Some(&[1, 2]));
    switch(true).await;
    shop.asked_again().await;
    shop.set(Some(&[1, 2, 3]));
    assert_eq!(given(world, &workflow, 1).await, [3]);
    let undeployed = world
        .api
        .post(format!("/workflows/{workflow}/undeploy"), json!({}))
        .await;
    let _ = undeployed.data(200);
    shop.set(Some(&[1, 2, 3, 4]));
    world.api.go_live(&workflow).await;
    shop.asked_again().await;
    assert_eq!(given(world, &workflow, 1).await, [3]);
}

async fn another_question_begins_anew(world: &World) {
    let shop = Shop::open(&[1]).await;
    let workflow = live(world, &shop).await;
    // A version with the same trigger goes on.
    let rename = json!([{ "op": "rename_node", "nodeId": 2, "name": "Shown" }]);
    let _ = world.api.edit(&workflow, rename).await;
    shop.set(Some(&[1, 2]));
    world.api.go_live(&workflow).await;
    assert_eq!(given(world, &workflow, 1).await, [2]);
    // One with another question takes what is there for known.
    let other = json!([{ "op": "update_params", "nodeId": 1, "params": { "key": "total" } }]);
    let _ = world.api.edit(&workflow, other).await;
    world.api.go_live(&workflow).await;
    shop.asked_again().await;
    shop.set(Some(&[1, 2, 3]));
    assert_eq!(given(world, &workflow, 2).await, [2, 3]);
}

async fn a_service_that_fails_is_told_of_and_asked_again(world: &World) {
    let shop = Shop::open(&[1]).await;
    let workflow = live(world, &shop).await;
    shop.set(None);
    shop.asked_again().await;
    shop.asked_again().await;
    shop.set(Some(&[1, 2]));
    assert_eq!(given(world, &workflow, 1).await, [2], "nothing is forgotten");
    let told = reasons(world, &workflow, "workflow.poll_failed").await;
    let [reason] = told.try_into().expect("it is told once");
    assert!(reason.contains("500"), "{reason}");
}

/// How often the activity feed tells something of a workflow.
async fn told(world: &World, workflow: &str, action: &str) -> usize {
    reasons(world, workflow, action).await.len()
}

/// The reasons that the activity feed gives for something that a workflow's first node could not do.
async fn reasons(world: &World, workflow: &str, action: &str) -> Vec<String> {
    let page = format!("/activity?targetType=workflow&targetId={workflow}&limit=200");
    let page = world.api.get(page).await.data(200);
    let events = page["events"].as_array().unwrap().iter();
    let told = events.filter(|event| event["action"] == action);
    told.map(|event| {
        assert_eq!(event["metadata"]["nodeId"], 1, "{event}");
        text(&event["metadata"]["reason"])
    })
    .collect()
}

async fn a_trigger_needs_a_list_of_things_with_keys(world: &World) {
    let shop = Shop::open(&[1]).await;
    let workflow = world.api.workflow_with("Orders", flow(&shop, "number")).await;
    world.api.go_live(&workflow).await;
    shop.asked_again().await;
    shop.set(Some(&[1, 2]));
    shop.asked_again().await;
    assert_eq!(given(world, &workflow, 0).await, [0; 0]);
}

async fn what_slides_into_the_list_starts_nothing(world: &World) {
    let shop = Shop::open(&[7, 8, 9]).await;
    let url = shop.service.url("/orders");
    let params = json!({ "url": url, "items": "rows", "order": "id", "everySeconds": 1 });
    let workflow = live_with(world, &shop, flow_of(("http", "new_item"), params)).await;
    shop.set(Some(&[6, 8, 9]));
    shop.asked_again().await;
    shop.set(Some(&[4, 5, 6]));
    shop.asked_again().await;
    // The server starts the earliest first: with 10, all below it would have been started, too.
    shop.set(Some(&[3, 4, 5, 10]));
    assert_eq!(given(world, &workflow, 1).await, [10]);
}

/// An app that says that its lists begin with the latest item.
const LATEST_FIRST: &str = r#"
manifest: 1
id: latest_first
name: Latest first
baseUrl: BASE_URL
connections: []
modules:
  - id: new_order
    label: New order
    type: trigger
    description: Starts a run for each new order.
    connection: optional
    request: { path: /orders }
    items: "{{response.body.rows}}"
    poll: { key: "{{$item.id}}", latestFirst: true, everySeconds: 1 }
"#;

async fn what_stands_below_a_known_item_starts_nothing(world: &World) {
    let shop = Shop::open(&[7, 8, 9]).await;
    catalog::bring(world, &LATEST_FIRST.replace("BASE_URL", &shop.service.url(""))).await;
    let flow = flow_of(("latest_first", "new_order"), json!({}));
    let workflow = live_with(world, &shop, flow).await;
    shop.set(Some(&[5, 6, 8]));
    shop.asked_again().await;
    shop.set(Some(&[4, 5, 6, 10]));
    assert_eq!(given(world, &workflow, 1).await, [10]);
}

async fn a_long_list_is_known_as_a_whole(world: &World) {
    let mut orders: Vec<i64> = (1..=12_000).collect();
    let shop = Shop::open(&orders).await;
    let workflow = live(world, &shop).await;
    shop.asked_again().await;
    assert_eq!(given(world, &workflow, 0).await, [0; 0]);
    orders.push(12_001);
    shop.set(Some(&orders));
    assert_eq!(given(world, &workflow, 1).await, [12_001]);
    shop.asked_again().await;
    assert_eq!(given(world, &workflow, 1).await, [12_001]);
}

async fn a_list_that_is_too_long_is_refused(world: &World) {
    let orders: Vec<i64> = (1..=50_001).collect();
    let shop = Shop::open(&orders).await;
    let workflow = live(world, &shop).await;
    let told = until(async || (told(world, &workflow, "workflow.poll_failed").await == 1).then_some(()));
    assert!(told.await.is_some(), "nobody tells of it");
    // It has not begun: what is there once it can be remembered starts nothing.
    shop.set(Some(&[1, 2]));
    shop.asked_again().await;
    shop.set(Some(&[1, 2, 3]));
    assert_eq!(given(world, &workflow, 1).await, [3]);
}
