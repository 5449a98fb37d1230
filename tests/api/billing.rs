//! Credits and bills: what starts cost, what they hold, and when they are refused.

use contract::v1::{BillingStatus, Limit, SetPlanRequest, UpdateOrganizationRequest, limit};
use core_service::store::Store;
use serde_json::{Value, json};
use test_support::{Answer, Api, at_most, graphs, text, together};

use crate::world::World;

on_both_databases!(
    so_many_credits_are_so_many_runs,
    a_failed_node_costs_and_its_retries_do_not,
    what_is_free_costs_nothing_and_gives_its_hold_back,
    a_cancel_gives_the_hold_back,
    a_rerun_holds_as_a_start_does,
    so_many_credits_are_so_many_reruns,
    a_retried_node_is_billed_as_a_start_is,
    credits_change_while_runs_are_under_way,
    an_overdue_bill_stops_what_starts,
    without_credits_what_was_started_is_still_found,
    an_inactive_plan_starts_nothing,
);

/// The operator's hand on the organization's credits.
async fn give(world: &World, credits: Option<i64>) {
    let unlimited = Limit {
        limit: Some(limit::Limit::Unlimited(true)),
    };
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        credits: Some(credits.map_or(unlimited, at_most)),
        ..Default::default()
    };
    world.admin.change(change).await;
}

async fn bill(world: &World, status: BillingStatus) {
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: status.into(),
        ..Default::default()
    };
    world.admin.change(change).await;
}

/// What is left, and what is held.
async fn account(world: &World, store: &Store) -> (Option<i64>, i64) {
    let organization = store.organization(&world.organization).await.unwrap();
    (organization.credits, organization.credits_held)
}

async fn start(api: &Api, workflow: &str) -> Answer {
    api.post(format!("/workflows/{workflow}/runs"), json!({})).await
}

async fn rerun(api: &Api, run: &str) -> Answer {
    api.post(format!("/runs/{run}/rerun"), json!({})).await
}

async fn cancel(api: &Api, run: &str) {
    let _ = api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200);
}

/// A run that waits before its first node that costs anything.
async fn waiting(world: &World) -> (String, String) {
    let workflow = world.api.workflow_with("waits", graphs::long_wait()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let _ = world.api.reached(&run, &["waiting"]).await;
    (workflow, run)
}

async fn so_many_credits_are_so_many_runs(world: &World) {
    let store = world.store().await;
    // One that ends in its first commit, and one that goes on after it.
    let at_once = world.api.workflow_with("x", graphs::small_flow()).await;
    let until = core_service::clock::now_ms() + 1_000;
    let later = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("wait", json!({ "until": until })),
        ("set", json!({ "fields": { "done": true } })),
    ]);
    let later = world.api.workflow_with("y", later).await;
    give(world, Some(7)).await;
    let starts = (0..50).map(|number| {
        let (api, workflow) = (world.api.clone(), [&at_once, &later][number % 2].clone());
        async move { start(&api, &workflow).await }
    });
    let (started, refused): (Vec<Answer>, Vec<Answer>) = together(starts)
        .await
        .into_iter()
        .partition(|answer| answer.status == 201);
    assert_eq!(started.len(), 7);
    for answer in refused {
        answer.error(403, "PLAN_LIMIT_EXCEEDED");
    }
    for answer in started {
        let run = text(&answer.data(201)["runId"]);
        assert_eq!(world.api.ended(&run).await["creditsUsed"], 1.0);
    }
    assert_eq!(account(world, &store).await, (Some(0), 0));
}

async fn a_failed_node_costs_and_its_retries_do_not(world: &World) {
    let store = world.store().await;
    give(world, Some(10)).await;
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "wrong": "{{1.nothing * 2}}" } })),
        ("set", json!({ "fields": { "never": true } })),
    ]);
    let workflow = world.api.workflow_with("x", flow).await;
    let retries = json!({ "retry": { "maxAttempts": 3, "delayMs": 1 } });
    let config = json!([{ "op": "update_config", "nodeId": 2, "config": retries }]);
    world.api.edit(&workflow, config).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(
        (&report["status"], &report["nodes"][1]["attempt"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(
        (&report["creditsUsed"], &report["nodes"][1]["creditsUsed"]),
        (&json!(1.0), &json!(1.0))
    );
    assert_eq!(account(world, &store).await, (Some(9), 0));
}

async fn what_is_free_costs_nothing_and_gives_its_hold_back(world: &World) {
    let store = world.store().await;
    give(world, Some(1)).await;
    let flow = |wait: Value| {
        graphs::chain(&[
            ("manual_trigger", json!({})),
            ("condition", json!({ "mode": "first" })),
            ("wait", wait),
            ("stop", json!({ "status": "succeeded" })),
        ])
    };
    let soon = core_service::clock::now_ms() + 50;
    for until in [1, soon] {
        let workflow = world
            .api
            .workflow_with("free", flow(json!({ "until": until })))
            .await;
        let run = world.api.start(&workflow, json!({})).await;
        assert_eq!(world.api.ended(&run).await["creditsUsed"], 0.0);
        assert_eq!(account(world, &store).await, (Some(1), 0));
    }
    // With nothing left it is refused all the same: it would hold a credit.
    give(world, Some(0)).await;
    let workflow = world.api.workflow_with("free", flow(json!({ "until": 1 }))).await;
    start(&world.api, &workflow)
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
}

async fn a_cancel_gives_the_hold_back(world: &World) {
    let store = world.store().await;
    give(world, Some(1)).await;
    let (workflow, run) = waiting(world).await;
    assert_eq!(account(world, &store).await, (Some(1), 1));
    start(&world.api, &workflow)
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
    cancel(&world.api, &run).await;
    assert_eq!(account(world, &store).await, (Some(1), 0));
    assert_eq!(start(&world.api, &workflow).await.status, 201);
    assert_eq!(account(world, &store).await, (Some(1), 1));
}

async fn a_rerun_holds_as_a_start_does(world: &World) {
    let store = world.store().await;
    give(world, Some(1)).await;
    let (workflow, run) = waiting(world).await;
    cancel(&world.api, &run).await;
    assert_eq!(rerun(&world.api, &run).await.data(201)["attemptNumber"], 2);
    assert_eq!(account(world, &store).await, (Some(1), 1));
    start(&world.api, &workflow)
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
    cancel(&world.api, &run).await;
    assert_eq!(account(world, &store).await, (Some(1), 0));
    // One that pays at once holds nothing.
    let quick = world.api.workflow_with("x", graphs::small_flow()).await;
    let paid = world.api.start(&quick, json!({})).await;
    let _ = world.api.ended(&paid).await;
    rerun(&world.api, &paid).await.error(403, "PLAN_LIMIT_EXCEEDED");
    give(world, Some(1)).await;
    assert_eq!(rerun(&world.api, &paid).await.status, 201);
    let report = world.api.ended(&paid).await;
    assert_eq!(
        (&report["attemptNumber"], &report["creditsUsed"]),
        (&json!(2), &json!(2.0))
    );
    assert_eq!(account(world, &store).await, (Some(0), 0));
}

async fn so_many_credits_are_so_many_reruns(world: &World) {
    let store = world.store().await;
    let workflow = world.api.workflow_with("waits", graphs::long_wait()).await;
    let mut runs = Vec::new();
    for _ in 0..12 {
        let run = world.api.start(&workflow, json!({})).await;
        cancel(&world.api, &run).await;
        runs.push(run);
    }
    give(world, Some(3)).await;
    let reruns = runs.iter().map(|run| {
        let (api, run) = (world.api.clone(), run.clone());
        async move { (rerun(&api, &run).await, run) }
    });
    let (again, refused): (Vec<_>, Vec<_>) = together(reruns)
        .await
        .into_iter()
        .partition(|(answer, _)| answer.status == 201);
    assert_eq!(again.len(), 3);
    assert_eq!(account(world, &store).await, (Some(3), 3));
    for (answer, run) in &refused {
        answer.error(403, "PLAN_LIMIT_EXCEEDED");
        let report = world.api.get(format!("/runs/{run}")).await.data(200);
        assert_eq!(
            (&report["attemptNumber"], &report["status"]),
            (&json!(1), &json!("cancelled"))
        );
    }
    // A refusal is no harm: with a credit it goes on.
    give(world, Some(4)).await;
    assert_eq!(rerun(&world.api, &refused[0].1).await.status, 201);
    assert_eq!(account(world, &store).await, (Some(4), 4));
    for run in runs {
        let _ = world.api.post(format!("/runs/{run}/cancel"), json!({})).await;
    }
    assert_eq!(account(world, &store).await, (Some(4), 0));
}

async fn a_retried_node_is_billed_as_a_start_is(world: &World) {
    let store = world.store().await;
    give(world, Some(1)).await;
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "wrong": "{{1.nothing * 2}}" } })),
    ]);
    let workflow = world.api.workflow_with("x", flow).await;
    let run = world.api.start(&workflow, json!({})).await;
    assert_eq!(world.api.ended(&run).await["status"], "failed");
    assert_eq!(account(world, &store).await, (Some(0), 0));
    let retry = async || {
        world
            .api
            .post(format!("/runs/{run}/retry-node"), json!({ "nodeId": 2 }))
            .await
    };
    retry().await.error(403, "PLAN_LIMIT_EXCEEDED");
    let untouched = world.api.get(format!("/runs/{run}")).await.data(200);
    assert_eq!(
        (&untouched["status"], &untouched["creditsUsed"]),
        (&json!("failed"), &json!(1.0))
    );
    give(world, Some(1)).await;
    assert_eq!(retry().await.status, 200);
    let report = world.api.ended(&run).await;
    assert_eq!(
        (&report["attemptNumber"], &report["creditsUsed"]),
        (&json!(1), &json!(2.0))
    );
    assert_eq!(account(world, &store).await, (Some(0), 0));
}

async fn credits_change_while_runs_are_under_way(world: &World) {
    let store = world.store().await;
    let (workflow, run) = waiting(world).await;
    // What started without a limit holds nothing, whatever is said later.
    give(world, Some(1)).await;
    assert_eq!(account(world, &store).await, (Some(1), 0));
    let metered = world.api.start(&workflow, json!({})).await;
    assert_eq!(account(world, &store).await, (Some(1), 1));
    cancel(&world.api, &run).await;
    assert_eq!(account(world, &store).await, (Some(1), 1));
    // Its next attempt counts.
    rerun(&world.api, &run).await.error(403, "PLAN_LIMIT_EXCEEDED");
    give(world, Some(2)).await;
    assert_eq!(rerun(&world.api, &run).await.status, 201);
    assert_eq!(account(world, &store).await, (Some(2), 2));
    // A hold is given back although nothing is counted any more.
    give(world, None).await;
    assert_eq!(start(&world.api, &workflow).await.status, 201);
    cancel(&world.api, &metered).await;
    cancel(&world.api, &run).await;
    assert_eq!(account(world, &store).await, (None, 0));
    assert_eq!(rerun(&world.api, &metered).await.status, 201);
    give(world, Some(5)).await;
    cancel(&world.api, &metered).await;
    assert_eq!(account(world, &store).await, (Some(5), 0));
}

/// A live webhook, and its workflow.
async fn live(world: &World) -> (String, String) {
    let flow = graphs::chain(&[
        ("webhook_trigger", json!({})),
        ("set", json!({ "fields": { "done": true } })),
    ]);
    let workflow = world.api.workflow_with("hooked", flow).await;
    world.api.go_live(&workflow).await;
    (world.api.mint(&workflow, 1).await, workflow)
}

async fn an_overdue_bill_stops_what_starts(world: &World) {
    let (webhook, workflow) = live(world).await;
    let path = format!("/workflows/{workflow}/runs");
    let key = [("idempotency-key", "before")];
    let first = world.api.post_with(&path, &key, json!({})).await.data(201);
    let run = text(&first["runId"]);
    assert_eq!(world.api.ended(&run).await["status"], "succeeded");
    let delivery = [("webhook-id", "before")];
    let delivered = world.api.call_hook(&webhook, &delivery, json!({})).await;
    let delivered = delivered.data(202);
    let (_, under_way) = waiting(world).await;
    bill(world, BillingStatus::PastDue).await;
    start(&world.api, &workflow).await.error(402, "PAYMENT_REQUIRED");
    rerun(&world.api, &run).await.error(402, "PAYMENT_REQUIRED");
    let retry = format!("/runs/{run}/retry-node");
    let retried = world.api.post(retry, json!({ "nodeId": 2 })).await;
    retried.error(402, "PAYMENT_REQUIRED");
    let called = world.api.call_hook(&webhook, &[], json!({})).await;
    called.error(402, "PAYMENT_REQUIRED");
    let again = world.api.call_hook(&webhook, &delivery, json!({})).await;
    assert_eq!(again.data(202), delivered, "a repeated delivery starts nothing");
    let replayed = world.api.post_with(&path, &key, json!({})).await;
    assert_eq!(replayed.data(201), first);
    assert_eq!(replayed.header("idempotent-replayed"), "true");
    // Reading, editing and ending runs stay possible.
    let _ = world.api.get(format!("/runs/{run}")).await.data(200);
    cancel(&world.api, &under_way).await;
    bill(world, BillingStatus::Ok).await;
    assert_eq!(rerun(&world.api, &run).await.status, 201);
    assert_eq!(world.api.call_hook(&webhook, &[], json!({})).await.status, 202);
}

async fn without_credits_what_was_started_is_still_found(world: &World) {
    let (webhook, workflow) = live(world).await;
    give(world, Some(2)).await;
    let path = format!("/workflows/{workflow}/runs");
    let key = [("idempotency-key", "before")];
    let first = world.api.post_with(&path, &key, json!({})).await.data(201);
    let delivery = [("webhook-id", "delivery")];
    let called = world
        .api
        .call_hook(&webhook, &delivery, json!({}))
        .await
        .data(202);
    let _ = world.api.ended(&text(&first["runId"])).await;
    let _ = world.api.ended(&text(&called["runId"])).await;
    start(&world.api, &workflow)
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
    let refused = world.api.call_hook(&webhook, &[], json!({})).await;
    refused.error(403, "PLAN_LIMIT_EXCEEDED");
    let replayed = world.api.post_with(&path, &key, json!({})).await;
    assert_eq!(replayed.data(201), first);
    assert_eq!(replayed.header("idempotent-replayed"), "true");
    let again = world.api.call_hook(&webhook, &delivery, json!({})).await;
    assert_eq!(again.data(202), called);
    // A refused start leaves its key for another try.
    let late = [("idempotency-key", "late")];
    let refused = world.api.post_with(&path, &late, json!({})).await;
    refused.error(403, "PLAN_LIMIT_EXCEEDED");
    give(world, Some(1)).await;
    let started = world.api.post_with(&path, &late, json!({})).await;
    assert_eq!((started.status, started.header("idempotent-replayed")), (201, ""));
}

async fn an_inactive_plan_starts_nothing(world: &World) {
    let (webhook, workflow) = live(world).await;
    let plan = format!("bill-{}", world.organization.to_lowercase());
    let set = |active: bool| SetPlanRequest {
        id: plan.clone(),
        active: Some(active),
        ..Default::default()
    };
    world.admin.plan(set(false)).await;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        plan_id: Some(plan.clone()),
        ..Default::default()
    };
    world.admin.change(change).await;
    start(&world.api, &workflow)
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
    let called = world.api.call_hook(&webhook, &[], json!({})).await;
    called.error(403, "PLAN_LIMIT_EXCEEDED");
    world.admin.plan(set(true)).await;
    assert_eq!(start(&world.api, &workflow).await.status, 201);
    assert_eq!(world.api.call_hook(&webhook, &[], json!({})).await.status, 202);
}
