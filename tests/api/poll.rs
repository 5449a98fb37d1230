//! Triggers that poll: each new item of a service starts one run.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, text, until};

use crate::world::World;

on_both_databases!(
    each_new_item_starts_one_run,
    what_comes_while_nobody_asks_starts_nothing,
    another_question_begins_anew,
    a_service_that_fails_is_told_of_and_asked_again,
    a_trigger_needs_a_list_of_things_with_keys,
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
    json!([
        { "op": "add_node", "tempId": "new", "appId": "http", "moduleSlug": "new_item",
          "params": { "url": shop.service.url("/orders"), "items": "rows", "key": key, "everySeconds": 1 } },
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
    let workflow = world.api.workflow_with("Orders", flow(shop, "id")).await;
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
    let page = format!("/activity?targetType=workflow&targetId={workflow}&limit=200");
    let page = world.api.get(page).await.data(200);
    let events = page["events"].as_array().unwrap().iter();
    let failed = events.filter(|event| event["action"] == "workflow.poll_failed");
    assert_eq!(failed.count(), 1, "it is told once");
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
