//! Instants that come: what runs, and with what.

use serde_json::{Value, json};
use test_support::{graphs, text};

use super::{ended_runs, live, live_soon, once, runs, scheduled_at, set, set_soon, soon, ticking_flow, told};
use crate::world::World;

on_both_databases!(
    an_instant_starts_the_deployed_version,
    a_workflow_without_a_schedule_trigger_starts_as_by_hand,
    an_interval_starts_and_ends_where_it_says,
    only_what_is_live_runs,
    a_change_acts_at_once,
    another_instant_another_run,
    what_cannot_start_is_told,
    an_overdue_bill_keeps_schedules_from_running,
    without_credits_nothing_runs,
);

async fn an_instant_starts_the_deployed_version(world: &World) {
    let api = &world.api;
    let workflow = api.workflow_with("Scheduled", ticking_flow()).await;
    api.go_live(&workflow).await;
    // The draft goes on; what is deployed runs.
    let more = json!([{ "op": "add_node", "tempId": "more", "kind": "set", "after": 2,
        "params": { "fields": { "more": true } } }]);
    api.edit(&workflow, more).await;
    let at = set_soon(api, &workflow).await;
    let [report] = ended_runs(api, &workflow, 1).await.try_into().unwrap();
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(report["trigger"]["kind"], "schedule", "{report}");
    assert_eq!(report["trigger"]["nodeId"], 1, "{report}");
    assert_eq!(report["versionNo"], 1);
    assert_eq!(report["createdBy"], Value::Null);
    assert_eq!(report["nodes"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(scheduled_at(&report), at);
    let output = &report["nodes"][0]["output"];
    let fired_at: jiff::Timestamp = text(&output["firedAt"]).parse().unwrap();
    assert!(fired_at.as_millisecond() >= at, "{output}");
    assert_eq!(report["nodes"][1]["output"]["at"], output["scheduledAt"]);
}

async fn a_workflow_without_a_schedule_trigger_starts_as_by_hand(world: &World) {
    let api = &world.api;
    let (by_hand, _) = live_soon(api, graphs::small_flow()).await;
    let bare =
        json!([{ "op": "add_node", "tempId": "only", "kind": "set", "params": { "fields": { "a": 1 } } }]);
    let (bare, _) = live_soon(api, bare).await;
    let [report] = ended_runs(api, &by_hand, 1).await.try_into().unwrap();
    assert_eq!(
        (&report["status"], &report["trigger"]["kind"]),
        (&json!("succeeded"), &json!("schedule"))
    );
    assert_eq!(report["nodes"][1]["output"], json!({ "answer": 42 }));
    let [report] = ended_runs(api, &bare, 1).await.try_into().unwrap();
    assert_eq!(report["nodes"][0]["output"], json!({ "a": 1 }), "{report}");
    assert_eq!(report["trigger"]["nodeId"], Value::Null);
}

async fn an_interval_starts_and_ends_where_it_says(world: &World) {
    let api = &world.api;
    let workflow = live(api, ticking_flow(), Value::Null).await;
    let start = soon(api, 1).await;
    let end = start + 30_000;
    let recurrence =
        json!({ "kind": "interval", "every": 1, "unit": "minutes", "startAt": start, "endAt": end });
    set(api, &workflow, recurrence).await;
    let [report] = ended_runs(api, &workflow, 1).await.try_into().unwrap();
    assert_eq!(scheduled_at(&report), start);
}

async fn only_what_is_live_runs(world: &World) {
    let api = &world.api;
    let at = soon(api, 30).await;
    let draft = api.workflow_with("Draft", ticking_flow()).await;
    set(api, &draft, once(at)).await;
    let inactive = api.workflow_with("Inactive", ticking_flow()).await;
    let _ = api
        .post(format!("/workflows/{inactive}/deploy"), json!({}))
        .await
        .data(200);
    set(api, &inactive, once(at)).await;
    let undeployed = live(api, ticking_flow(), once(at)).await;
    let _ = api
        .post(format!("/workflows/{undeployed}/undeploy"), json!({}))
        .await
        .data(200);
    let cleared = live(api, ticking_flow(), once(at)).await;
    set(api, &cleared, Value::Null).await;
    // When this one, due later, has run, the others would have.
    let last = live(api, ticking_flow(), once(at + 200)).await;
    ended_runs(api, &last, 1).await;
    for workflow in [&draft, &inactive, &undeployed, &cleared] {
        assert_eq!(runs(api, workflow).await, Vec::<Value>::new());
    }
    // What came while it was not live is over.
    let active = json!({ "active": true });
    let _ = api
        .patch(format!("/workflows/{inactive}"), active)
        .await
        .data(200);
    let (last, _) = live_soon(api, ticking_flow()).await;
    ended_runs(api, &last, 1).await;
    assert_eq!(runs(api, &inactive).await, Vec::<Value>::new());
}

async fn a_change_acts_at_once(world: &World) {
    let api = &world.api;
    let far = core_service::clock::now_ms() + 3_600_000;
    let workflow = live(api, ticking_flow(), once(far)).await;
    let at = set_soon(api, &workflow).await;
    let [report] = ended_runs(api, &workflow, 1).await.try_into().unwrap();
    assert_eq!(scheduled_at(&report), at);
}

async fn another_instant_another_run(world: &World) {
    let api = &world.api;
    let workflow = live(api, ticking_flow(), Value::Null).await;
    let mut instants = Vec::new();
    for number in 1..=3 {
        let at = set_soon(api, &workflow).await;
        // The same again changes nothing: neither before nor after the instant.
        set(api, &workflow, once(at)).await;
        instants.push(at);
        let reports = ended_runs(api, &workflow, number).await;
        set(api, &workflow, once(at)).await;
        assert_eq!(reports.iter().map(scheduled_at).collect::<Vec<_>>(), instants);
    }
}

async fn what_cannot_start_is_told(world: &World) {
    let api = &world.api;
    let disabled = json!([{ "op": "add_node", "tempId": "tick", "kind": "schedule_trigger",
        "config": { "disabled": true } }]);
    let (workflow, _) = live_soon(api, disabled).await;
    let refused =
        test_support::until(async || Some(told(api, &workflow).await).filter(|told| !told.is_empty()));
    assert_eq!(refused.await.unwrap(), ["workflow.schedule_refused"]);
    assert_eq!(runs(api, &workflow).await, Vec::<Value>::new());
}

async fn an_overdue_bill_keeps_schedules_from_running(world: &World) {
    use contract::v1::{BillingStatus, UpdateOrganizationRequest};
    let bill = |status: BillingStatus| UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: status.into(),
        ..Default::default()
    };
    let api = &world.api;
    world.admin.change(bill(BillingStatus::PastDue)).await;
    let (workflow, _) = live_soon(api, ticking_flow()).await;
    let refused =
        test_support::until(async || Some(told(api, &workflow).await).filter(|told| !told.is_empty()));
    assert_eq!(refused.await.unwrap(), ["workflow.schedule_refused"]);
    assert_eq!(runs(api, &workflow).await, Vec::<Value>::new());
    world.admin.change(bill(BillingStatus::Ok)).await;
    let at = set_soon(api, &workflow).await;
    let [report] = ended_runs(api, &workflow, 1).await.try_into().unwrap();
    assert_eq!(scheduled_at(&report), at, "what was refused is not made up for");
}

async fn without_credits_nothing_runs(world: &World) {
    use contract::v1::UpdateOrganizationRequest;
    use test_support::at_most;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        credits: Some(at_most(1)),
        ..Default::default()
    };
    world.admin.change(change).await;
    let api = &world.api;
    let (workflow, _) = live_soon(api, ticking_flow()).await;
    let [report] = ended_runs(api, &workflow, 1).await.try_into().unwrap();
    assert_eq!(report["creditsUsed"].as_f64(), Some(1.0), "{report}");
    let at = set_soon(api, &workflow).await;
    // Another organization's schedule of a later instant shows that the instant has passed.
    let stranger = world.stranger().await;
    let (other, later) = live_soon(&stranger, ticking_flow()).await;
    assert!(later > at);
    ended_runs(&stranger, &other, 1).await;
    assert_eq!(runs(api, &workflow).await.len(), 1);
    let refused =
        test_support::until(async || Some(told(api, &workflow).await).filter(|told| !told.is_empty()));
    assert_eq!(refused.await.unwrap(), ["workflow.schedule_refused"]);
}
