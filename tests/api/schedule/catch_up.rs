//! Instants that nobody noticed in time, and those that an earlier run is in the way of.

use serde_json::{Value, json};
use test_support::{graphs, text, until};

use super::past::nobody_looked_for;
use super::{ended_runs, live, runs, scheduled_at, set, ticking_flow, told};
use crate::world::World;

on_both_databases!(
    instants_within_the_window_are_caught_up_in_order,
    instants_before_the_window_are_missed,
    an_instant_is_skipped_while_a_run_goes_on,
);

const MINUTE: i64 = 60_000;

fn every_minute(window: i64) -> Value {
    json!({ "kind": "interval", "every": 1, "unit": "minutes", "catchupWindowMs": window })
}

async fn instants_within_the_window_are_caught_up_in_order(world: &World) {
    let api = &world.api;
    let workflow = live(api, ticking_flow(), every_minute(60 * MINUTE)).await;
    nobody_looked_for(world, &workflow, 20 * MINUTE).await;
    let reports = ended_runs(api, &workflow, 20).await;
    let instants: Vec<i64> = reports.iter().map(scheduled_at).collect();
    let steps: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [MINUTE; 19], "{instants:?}");
    assert_eq!(told(api, &workflow).await, Vec::<String>::new());
}

async fn instants_before_the_window_are_missed(world: &World) {
    let api = &world.api;
    // Away for an hour; the last instant is a moment ago, the one before it a minute and a moment.
    let workflow = live(api, ticking_flow(), every_minute(90_000)).await;
    nobody_looked_for(world, &workflow, 60 * MINUTE).await;
    let reports = until(async || {
        let missed = !told(api, &workflow).await.is_empty();
        let runs = runs(api, &workflow).await;
        (missed && !runs.is_empty()).then_some(runs)
    });
    let first = reports
        .await
        .expect("a run of an instant within the window")
        .len();
    let reports = ended_runs(api, &workflow, 2.max(first)).await;
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert_eq!(scheduled_at(&reports[1]) - scheduled_at(&reports[0]), MINUTE);
    assert_eq!(told(api, &workflow).await, ["workflow.schedule_missed"]);
}

async fn an_instant_is_skipped_while_a_run_goes_on(world: &World) {
    let api = &world.api;
    let waiting = graphs::chain(&[
        ("schedule_trigger", json!({})),
        ("wait", json!({ "amount": 1, "unit": "hours" })),
    ]);
    let mut recurrence = every_minute(60 * MINUTE);
    recurrence["skipIfRunning"] = json!(true);
    let workflow = live(api, waiting.clone(), recurrence).await;
    nobody_looked_for(world, &workflow, 5 * MINUTE).await;
    let seen = until(async || Some(runs(api, &workflow).await).filter(|runs| !runs.is_empty()));
    let first = text(&seen.await.unwrap()[0]["id"]);
    // A schedule without the wish that is due later has all its runs, so this one has been dealt with.
    let patient = live(api, waiting, every_minute(60 * MINUTE)).await;
    nobody_looked_for(world, &patient, 5 * MINUTE).await;
    let all = until(async || Some(runs(api, &patient).await).filter(|runs| runs.len() >= 5));
    assert_eq!(all.await.unwrap().len(), 5);
    assert_eq!(runs(api, &workflow).await.len(), 1, "four instants are skipped");
    // Once it has ended, the next instant runs.
    let _ = api
        .post(format!("/runs/{first}/cancel"), json!({}))
        .await
        .data(200);
    nobody_looked_for(world, &workflow, MINUTE).await;
    let again = until(async || Some(runs(api, &workflow).await).filter(|runs| runs.len() > 1));
    assert_eq!(again.await.unwrap().len(), 2);
    for workflow in [&workflow, &patient] {
        set(api, workflow, Value::Null).await;
        for run in runs(api, workflow).await {
            if run["finishedAt"].is_null() {
                let _ = api
                    .post(format!("/runs/{}/cancel", text(&run["id"])), json!({}))
                    .await
                    .data(200);
            }
        }
    }
}
