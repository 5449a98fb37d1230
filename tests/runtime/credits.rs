//! Credits under faults: whatever happens to runs and processes, what was given is what was used and what is left.

use std::sync::Arc;

use core_service::runtime::{RequestError, RuntimeConfig, StartRun, StartRunError};
use core_service::store::{Actor, OrganizationChange};
use engine::state::RunState;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{Process, World, quick};

on_both_databases!(
    what_is_given_is_used_or_left,
    a_rerun_whose_process_dies_costs_once,
);

/// Something done to the service; runs are named by their place among those started so far.
#[derive(Debug, Clone)]
enum Act {
    Start(usize),
    Rerun(usize),
    Retry(usize),
    Cancel(usize),
    LetGo,
    Crash,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0..graphs().len()).prop_map(Act::Start),
        3 => (0..20_usize).prop_map(Act::Rerun),
        3 => (0..20_usize).prop_map(Act::Retry),
        2 => (0..20_usize).prop_map(Act::Cancel),
        2 => Just(Act::LetGo),
        1 => Just(Act::Crash),
    ];
    vec(act, 40)
}

/// Workflows that end at once, execute, fail, are retried, are held up, sleep, wait for people, and cost nothing.
fn graphs() -> Vec<Value> {
    let retried = json!({ "retry": { "maxAttempts": 3, "delayMs": 1 } });
    vec![
        after_trigger(&[set(json!({}))]),
        after_trigger(&[probe("ok"), set(json!({}))]),
        after_trigger(&[probe("fail")]),
        after_trigger(&[("probe", json!({ "do": "fail twice" }), retried)]),
        after_trigger(&[probe("wait"), set(json!({}))]),
        after_trigger(&[wait(600_000), set(json!({}))]),
        after_trigger(&[probe("park"), set(json!({}))]),
        after_trigger(&[]),
    ]
}

async fn give(world: &World, credits: i64) {
    let change = OrganizationChange {
        credits: Some(Some(credits)),
        ..OrganizationChange::default()
    };
    world
        .store
        .change_organization(&Actor::default(), &world.organization_id, &change)
        .await
        .unwrap();
}

/// What is left, and what is held.
async fn account(world: &World) -> (Option<i64>, i64) {
    let organization = world.store.organization(&world.organization_id).await.unwrap();
    (organization.credits, organization.credits_held)
}

fn metered(world: &World, graph: &Value) -> StartRun {
    StartRun {
        metered: true,
        ..start(&world.organization_id, graph, json!({}))
    }
}

async fn ask(process: &Process, world: &World, run_id: &str, act: &Act) -> Result<(), RequestError> {
    let (organization_id, run_id, act) = (world.organization_id.clone(), run_id.to_owned(), act.clone());
    process
        .call(|runtime| async move {
            let (actor, organization_id, run_id) = (Actor::default(), &organization_id, &run_id);
            match act {
                Act::Rerun(_) => runtime.rerun(&actor, organization_id, run_id, true).await,
                Act::Retry(_) => runtime.retry_node(&actor, organization_id, run_id, 2, true).await,
                _ => runtime.cancel(&actor, organization_id, run_id).await,
            }
        })
        .await
}

/// What the journals of all attempts of a run say that it cost.
async fn recorded(process: &Process, world: &World, run_id: &str) -> i64 {
    let run = world.run(run_id).await;
    let organization_id = world.organization_id.clone();
    process
        .call(|runtime| async move {
            let plan = runtime.plan(&organization_id, &run.graph_hash).await.unwrap();
            let mut credits = 0;
            for attempt in 1..=run.attempt_number {
                let events = runtime.events(&organization_id, &run.id, attempt, 0).await;
                let mut state = RunState::new(Arc::clone(&plan));
                for event in events.unwrap().segments.iter().flatten() {
                    state.apply(event).unwrap();
                }
                credits += i64::try_from(state.credits_used()).unwrap();
            }
            credits
        })
        .await
}

async fn what_is_given_is_used_or_left(world: &World) {
    const GIVEN: i64 = 25;
    give(world, GIVEN).await;
    let acts = acts().new_tree(&mut TestRunner::default()).unwrap().current();
    eprintln!("{acts:?}");
    let config = || RuntimeConfig {
        crash_limit: i64::MAX,
        ..quick()
    };
    let mut process = world.process_with(config()).await;
    let mut runs: Vec<String> = Vec::new();
    for act in &acts {
        match act {
            Act::Start(graph) => match process.start(metered(world, &graphs()[*graph])).await {
                Ok(started) => runs.push(started.run_id),
                // A slow machine loses leases; what was started then is found in the end.
                Err(StartRunError::OutOfCredits | StartRunError::Unavailable) => {}
                Err(error) => panic!("{act:?}: {error}"),
            },
            Act::LetGo => world.probe.open(1),
            Act::Crash => {
                process.crash();
                process = world.process_with(config()).await;
            }
            Act::Rerun(run) | Act::Retry(run) | Act::Cancel(run) => {
                let Some(run_id) = runs.get(*run) else { continue };
                match ask(&process, world, run_id, act).await {
                    Ok(())
                    | Err(
                        RequestError::OutOfCredits
                        | RequestError::Terminal
                        | RequestError::NotTerminal
                        | RequestError::NotFailed(_)
                        | RequestError::Unavailable,
                    ) => {}
                    Err(error) => panic!("{act:?}: {error}"),
                }
            }
        }
    }
    world.probe.open(1_000);
    let workflow_id = start(&world.organization_id, &graphs()[0], json!({})).workflow_id;
    let all = world
        .store
        .list_runs(&world.organization_id, &workflow_id, None, None, 1_000)
        .await
        .unwrap();
    assert!(all.len() >= runs.len(), "{all:?}");
    let mut used = 0;
    for run in all {
        while ask(&process, world, &run.id, &Act::Cancel(0)).await == Err(RequestError::Unavailable) {}
        let ended = world.ended(&run.id).await;
        let recorded = recorded(&process, world, &run.id).await;
        assert_eq!(ended.credits_used, recorded, "{ended:?}");
        used += recorded;
    }
    assert_eq!(account(world).await, (Some(GIVEN - used), 0));
}

async fn a_rerun_whose_process_dies_costs_once(world: &World) {
    give(world, 10).await;
    let first = world.process().await;
    let graph = after_trigger(&[probe("ok"), probe("wait"), set(json!({}))]);
    let run_id = first.start(metered(world, &graph)).await.unwrap().run_id;
    world.probe.open(1);
    world.ended(&run_id).await;
    assert_eq!(account(world).await, (Some(7), 0));
    assert_eq!(ask(&first, world, &run_id, &Act::Rerun(0)).await, Ok(()));
    world.probe.begun(4).await;
    first.crash();
    let second = world.process().await;
    // The node that was under way is executed once more, and costs once.
    world.probe.begun(5).await;
    world.probe.open(1);
    let run = world
        .run_when(&run_id, |run| run.attempt_number == 2 && run.status.is_terminal())
        .await;
    assert_eq!((run.credits_used, run.crashes), (6, 1));
    assert_eq!(account(world).await, (Some(4), 0));
    assert_eq!(recorded(&second, world, &run_id).await, 6);
}
