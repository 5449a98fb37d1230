//! Races that exactly one may win: a cancel against the end of its run, and two answers and a cancel against each other;
//! on PostgreSQL from two processes.
//!
//! `SWITCHYARD_TEST_RACES` says how many of each are run; 10,000 take a few minutes.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use core_service::runtime::{RequestError, Runtime};
use core_service::store::{Actor, HumanRequestFilter, RunStatus};
use engine::event::{Event, EventBody, NodeKey};
use engine::journal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::graphs::{after_trigger, probe, set, start};
use crate::world::{PATIENCE, Process, World};

on_both_databases!(
    of_a_cancel_and_the_end_one_wins,
    of_two_answers_and_a_cancel_one_wins,
    an_open_request_survives_a_crash,
);

/// Races that are run at once.
const AT_ONCE: usize = 20;
const NODE: i64 = 2;

#[expect(
    clippy::disallowed_methods,
    reason = "the environment says how long the test may take"
)]
fn rounds() -> usize {
    let races = std::env::var("SWITCHYARD_TEST_RACES").ok();
    let races = races.map_or(100, |races| races.parse::<usize>().expect("a number of races"));
    races.div_ceil(AT_ONCE)
}

async fn start_runs(process: &Process, world: &World, graph: &Value) -> Vec<String> {
    let starts = (0..AT_ONCE).map(|_| start(&world.organization_id, graph, json!({})));
    let starts: Vec<_> = starts.collect();
    process
        .call(|runtime| async move {
            let mut started = JoinSet::new();
            for start in starts {
                let runtime = runtime.clone();
                started.spawn(async move { runtime.start_run(start).await.unwrap().run_id });
            }
            started.join_all().await
        })
        .await
}

/// Does the same to every run at once and gives what came of it, by run.
async fn to_each(
    process: &Process,
    runs: &[String],
    act: impl Fn(Runtime, String) -> Asked + Send + 'static,
) -> HashMap<String, Result<(), RequestError>> {
    let runs = runs.to_vec();
    process
        .call(|runtime| async move {
            let mut acts = JoinSet::new();
            for run_id in runs {
                let done = act(runtime.clone(), run_id.clone());
                acts.spawn(async move { (run_id, done.await) });
            }
            acts.join_all().await.into_iter().collect()
        })
        .await
}

async fn events(world: &World, run_id: &str) -> Vec<Event> {
    let segments = world.store.load_segments(run_id, None).await.unwrap();
    let decoded = segments
        .iter()
        .map(|segment| journal::decode(&segment.events).unwrap());
    decoded.flatten().collect()
}

/// What the journal and the report say must be one end, and the same as the row's.
async fn one_end(world: &World, process: &Process, run_id: &str) -> RunStatus {
    let row = world.ended(run_id).await;
    let events = events(world, run_id).await;
    let ends = |event: &&Event| matches!(event.body, EventBody::RunFinished { .. });
    assert_eq!(events.iter().filter(ends).count(), 1, "{run_id}: {events:?}");
    let report = process.report(world, run_id).await;
    assert_eq!(report.state.status().as_str(), row.status.as_word(), "{run_id}");
    row.status
}

/// A request that is under way.
type Asked = Pin<Box<dyn Future<Output = Result<(), RequestError>> + Send>>;

fn canceller(world: &World) -> impl Fn(Runtime, String) -> Asked + Send + use<> {
    let organization_id = world.organization_id.clone();
    move |runtime, run_id| {
        let organization_id = organization_id.clone();
        Box::pin(async move { runtime.cancel(&Actor::default(), &organization_id, &run_id).await })
    }
}

fn answerer(world: &World) -> impl Fn(Runtime, String) -> Asked + Send + use<> {
    let organization_id = world.organization_id.clone();
    move |runtime, run_id| {
        let organization_id = organization_id.clone();
        Box::pin(async move {
            // All say the same, so that nobody can tell the winner by what the node holds.
            let (actor, output) = (Actor::default(), json!({ "by": "somebody" }));
            let answered = runtime.answer(&actor, &organization_id, &run_id, NodeKey::root(NODE), output);
            answered.await.map(drop)
        })
    }
}

async fn of_a_cancel_and_the_end_one_wins(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait")]);
    for round in 1..=rounds() {
        let runs = start_runs(&process, world, &graph).await;
        world.probe.begun(round * AT_ONCE).await;
        let cancels = to_each(&process, &runs, canceller(world));
        let ends = async { world.probe.open(AT_ONCE) };
        let (answers, ()) = tokio::join!(cancels, ends);
        for (run_id, answer) in answers {
            let status = one_end(world, &process, &run_id).await;
            match answer {
                Ok(()) => assert_eq!(status, RunStatus::Cancelled),
                Err(RequestError::Terminal) => assert_eq!(status, RunStatus::Succeeded),
                Err(other) => panic!("{run_id}: {other}"),
            }
        }
        // Executions that a cancel gave up took no permit; the next round must find the gate shut.
        world.probe.shut();
    }
}

async fn open_requests(world: &World) -> usize {
    let filter = HumanRequestFilter::default();
    let listed = world
        .store
        .list_human_requests(&world.organization_id, &filter, None, 10_000);
    listed.await.unwrap().len()
}

async fn until_open(world: &World, wanted: usize) {
    let open = async {
        while open_requests(world).await != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, open).await.unwrap();
}

fn asking() -> Value {
    after_trigger(&[
        ("human_input", json!({}), json!({})),
        set(json!({ "by": "{{2.by}}" })),
    ])
}

async fn of_two_answers_and_a_cancel_one_wins(world: &World) {
    let first = world.process().await;
    let second = if world.is_sqlite() {
        None
    } else {
        Some(world.process().await)
    };
    let second = second.as_ref().unwrap_or(&first);
    for _ in 0..rounds() {
        let runs = start_runs(&first, world, &asking()).await;
        until_open(world, AT_ONCE).await;
        let (one, other, cancels) = tokio::join!(
            to_each(&first, &runs, answerer(world)),
            to_each(second, &runs, answerer(world)),
            to_each(&first, &runs, canceller(world)),
        );
        for run_id in &runs {
            let outcomes = [&one[run_id], &other[run_id], &cancels[run_id]];
            let winners = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(winners, 1, "{run_id}: {outcomes:?}");
            for lost in outcomes[..2].iter().filter_map(|outcome| outcome.as_ref().err()) {
                let expected = [RequestError::Answered(NODE), RequestError::Terminal];
                assert!(expected.contains(lost), "{run_id}: {lost}");
            }
            let status = one_end(world, &first, run_id).await;
            let expected = if cancels[run_id].is_ok() {
                RunStatus::Cancelled
            } else {
                RunStatus::Succeeded
            };
            assert_eq!(status, expected, "{run_id}: {outcomes:?}");
            let completions = events(world, run_id).await;
            let completed = |event: &&Event| matches!(&event.body, EventBody::NodeCompleted { key, .. } if key.node == NODE);
            let completions = completions.iter().filter(completed).count();
            assert_eq!(
                completions,
                usize::from(status == RunStatus::Succeeded),
                "{run_id}"
            );
        }
        assert_eq!(open_requests(world).await, 0);
    }
}

async fn an_open_request_survives_a_crash(world: &World) {
    let first = world.process().await;
    let started = first
        .start(start(&world.organization_id, &asking(), json!({})))
        .await
        .unwrap();
    until_open(world, 1).await;
    first.crash();
    let second = world.process().await;
    until_open(world, 1).await;
    let (organization_id, run_id) = (world.organization_id.clone(), started.run_id.clone());
    let done = second
        .call(|runtime| async move {
            let output = json!({ "by": "Ada" });
            runtime
                .answer(
                    &Actor::default(),
                    &organization_id,
                    &run_id,
                    NodeKey::root(NODE),
                    output,
                )
                .await
        })
        .await
        .unwrap();
    assert!(done.resumed && done.ended);
    assert_eq!(open_requests(world).await, 0);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
}
