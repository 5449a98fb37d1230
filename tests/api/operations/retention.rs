//! Runs are gone once their plan keeps them no longer, and only those.

use bytes::Bytes;
use contract::v1::{self, Limit, limit};
use http::Method;
use serde_json::json;
use test_support::{graphs, until};

use crate::world::World;

on_both_databases!(runs_beyond_those_that_a_plan_keeps_are_deleted);

async fn runs_beyond_those_that_a_plan_keeps_are_deleted(world: &World) {
    let _log = world.show_log();
    let plan = v1::SetPlanRequest {
        id: "keeps-one".to_owned(),
        retention_runs: Some(Limit {
            limit: Some(limit::Limit::Value(1)),
        }),
        ..v1::SetPlanRequest::default()
    };
    world.admin.client.clone().set_plan(plan).await.unwrap();
    let made = world.admin.organization("Short memory", Some("keeps-one")).await;
    let api = world.server.api(Some(&made.api_key));
    let workflow = api.workflow_with("x", graphs::small_flow()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let run_id = api.start(&workflow, json!({})).await;
        let _ = api.ended(&run_id).await;
        ids.push(run_id);
    }
    let other = world.api.workflow_with("x", graphs::small_flow()).await;
    let kept = world.api.start(&other, json!({})).await;

    let is_gone = until(async || (api.get(format!("/runs/{}", ids[0])).await.status == 404).then_some(()));
    assert!(is_gone.await.is_some(), "the oldest run stays");
    let _ = api.get(format!("/runs/{}", ids[2])).await.data(200);
    let (listed, _) = api.get(format!("/runs?workflowId={workflow}")).await.page();
    assert!(listed.iter().all(|run| run["id"] != ids[0]));
    let _ = world.api.get(format!("/runs/{kept}")).await.data(200);
    let figures = api.send(Method::GET, "/metrics", &[], Bytes::new()).await;
    assert!(figures.text().lines().any(|line| {
        let count = line.strip_prefix("switchyard_runs_deleted_total ");
        count.is_some_and(|count| count.parse::<u64>().unwrap() > 0)
    }));
}
