//! Races that exactly one may win: a cancel against the end of its run, and two answers and a cancel against each other;
//! on PostgreSQL from two processes. And races that one side may never win: an answer against the attempt after the one
//! that asked for it, a call against the cancel of its caller.
//!
//! `SWITCHYARD_TEST_RACES` says how many of each are run; 10,000 take a few minutes.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use core_service::runtime::{OpenQuestion, RequestError, Runtime, RuntimeConfig, Waiting};
use core_service::store::{Actor, HumanRequest, HumanRequestFilter, RunStatus};
use engine::event::{Event, EventBody, NodeKey};
use engine::journal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::children::{calling, workflow};
use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{LOOK_AGAIN_AFTER, PATIENCE, Process, World, quick};

on_both_databases!(
    of_a_cancel_and_the_end_one_wins,
    of_two_answers_and_a_cancel_one_wins,
    no_answer_is_taken_by_the_next_attempt,
    a_cancelled_caller_leaves_no_run_behind,
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

/// A process that keeps its lease however busy the machine is: whoever loses it may have to be asked again.
async fn process(world: &World) -> Process {
    let config = RuntimeConfig {
        lease: PATIENCE,
        ..quick()
    };
    world.process_with(config).await
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

/// Answers what the runs ask, as they ask it by now.
async fn answerer(world: &World) -> impl Fn(Runtime, String) -> Asked + Send + Sync + use<> {
    let organization_id = world.organization_id.clone();
    let asking = asking(world).await;
    move |runtime, run_id| {
        let (organization_id, waiting) = (organization_id.clone(), asking[&run_id].clone());
        Box::pin(async move {
            // All say the same, so that nobody can tell the winner by what the node holds.
            let (actor, output) = (Actor::default(), json!({ "by": "somebody" }));
            let answered = runtime.answer(&actor, &organization_id, &run_id, waiting, output);
            answered.await.map(drop)
        })
    }
}

async fn of_a_cancel_and_the_end_one_wins(world: &World) {
    let process = process(world).await;
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

/// The nodes that ask, by run.
async fn asking(world: &World) -> HashMap<String, Waiting> {
    let filter = HumanRequestFilter::default();
    let listed = world
        .store
        .list_human_requests(&world.organization_id, &filter, None, 10_000);
    let waiting = |request: HumanRequest| {
        let open: OpenQuestion = serde_json::from_slice(&request.question).unwrap();
        let key = NodeKey::root(request.node_id);
        let asked = open.asked;
        (request.run_id, Waiting { key, asked })
    };
    listed.await.unwrap().into_iter().map(waiting).collect()
}

async fn open_requests(world: &World) -> usize {
    asking(world).await.len()
}

async fn until_open(world: &World, wanted: usize) {
    let open = async {
        while open_requests(world).await != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, open).await.unwrap();
}

fn questioning() -> Value {
    after_trigger(&[
        ("human_input", json!({}), json!({})),
        set(json!({ "by": "{{2.by}}" })),
    ])
}

async fn of_two_answers_and_a_cancel_one_wins(world: &World) {
    let first = process(world).await;
    let second = if world.is_sqlite() {
        None
    } else {
        Some(process(world).await)
    };
    let second = second.as_ref().unwrap_or(&first);
    for _ in 0..rounds() {
        let runs = start_runs(&first, world, &questioning()).await;
        until_open(world, AT_ONCE).await;
        let (one, other, cancels) = tokio::join!(
            to_each(&first, &runs, answerer(world).await),
            to_each(second, &runs, answerer(world).await),
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

/// A run that asks (2) and fails beside that (3), when it is let go.
fn questioning_and_failing() -> Value {
    let mut graph = after_trigger(&[("human_input", json!({}), json!({})), probe("wait and fail")]);
    graph["edges"][1] = json!({ "id": "1-3", "from": 1, "to": 3 });
    graph
}

async fn no_answer_is_taken_by_the_next_attempt(world: &World) {
    let process = process(world).await;
    for round in 0..rounds() {
        let runs = start_runs(&process, world, &questioning_and_failing()).await;
        until_open(world, AT_ONCE).await;
        let (before, late) = (asking(world).await, answerer(world).await);
        world.probe.begun((2 * round + 1) * AT_ONCE).await;
        world.probe.open(AT_ONCE);
        for run_id in &runs {
            assert_eq!(world.ended(run_id).await.status, RunStatus::Failed);
        }
        let organization_id = world.organization_id.clone();
        let retry = move |runtime: Runtime, run_id: String| -> Asked {
            let organization_id = organization_id.clone();
            let actor = Actor::default();
            Box::pin(async move {
                runtime
                    .retry_node(&actor, &organization_id, &run_id, 3, false)
                    .await
            })
        };
        let late = Arc::new(late);
        let answer_late = || {
            let late = Arc::clone(&late);
            to_each(&process, &runs, move |runtime, run_id| late(runtime, run_id))
        };
        let (retried, answered) = tokio::join!(to_each(&process, &runs, retry), answer_late());
        // Now all is asked anew, and still nobody can answer what was asked before.
        until_open(world, AT_ONCE).await;
        let (now, answered_again) = (asking(world).await, answer_late().await);
        for run_id in &runs {
            assert_eq!(retried[run_id], Ok(()));
            assert_ne!(now[run_id], before[run_id]);
            let refused = Err(RequestError::Answered(NODE));
            assert_eq!(answered[run_id], refused, "{run_id}");
            assert_eq!(answered_again[run_id], refused, "{run_id}");
        }
        let taken = to_each(&process, &runs, answerer(world).await).await;
        assert!(taken.values().all(Result::is_ok), "{taken:?}");
        world.probe.begun((2 * round + 2) * AT_ONCE).await;
        world.probe.open(AT_ONCE);
        for run_id in &runs {
            assert_eq!(second_end(world, run_id).await, RunStatus::Failed);
        }
    }
}

/// The status of a run that has ended for the second time, its node answered once.
async fn second_end(world: &World, run_id: &str) -> RunStatus {
    let row = world.ended(run_id).await;
    let completed =
        |event: &&Event| matches!(&event.body, EventBody::NodeCompleted { key, .. } if key.node == NODE);
    let events = events(world, run_id).await;
    assert_eq!(events.iter().filter(completed).count(), 1, "{run_id}: {events:?}");
    row.status
}

/// The states of the runs of a workflow.
async fn states(world: &World, workflow_id: &str) -> Vec<RunStatus> {
    let listed = world
        .store
        .list_runs(&world.organization_id, workflow_id, None, None, 100_000);
    listed.await.unwrap().iter().map(|run| run.status).collect()
}

async fn a_cancelled_caller_leaves_no_run_behind(world: &World) {
    let process = process(world).await;
    let callee = workflow(world, &after_trigger(&[wait(3_600_000)])).await;
    let graph = calling(&callee);
    for round in 0..rounds() {
        let runs = start_runs(&process, world, &graph).await;
        let (cancel, places) = (canceller(world), runs.clone());
        let cancels = to_each(&process, &runs, move |runtime, run_id| {
            // Each at another moment of its call, and in each round at others.
            let place = places.iter().position(|other| *other == run_id).unwrap();
            let pause = Duration::from_millis(((place + 7 * round) % AT_ONCE) as u64);
            let cancelled = cancel(runtime, run_id);
            Box::pin(async move {
                tokio::time::sleep(pause).await;
                cancelled.await
            })
        });
        for (run_id, cancelled) in cancels.await {
            assert_eq!(cancelled, Ok(()), "{run_id}");
        }
    }
    process
        .counts(|counted| counted.executions_pending == 0 && counted.runs_live == 0)
        .await;
    let all_cancelled = async {
        loop {
            let states = states(world, &callee).await;
            if states.iter().all(|status| *status == RunStatus::Cancelled) {
                return states.len();
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    };
    match tokio::time::timeout(PATIENCE, all_cancelled).await {
        Ok(called) => assert!(called > 0, "no call was under way when its caller was cancelled"),
        Err(_elapsed) => panic!("left behind: {:?}", states(world, &callee).await),
    }
}

async fn an_open_request_survives_a_crash(world: &World) {
    let first = world.process().await;
    let started = first
        .start(start(&world.organization_id, &questioning(), json!({})))
        .await
        .unwrap();
    until_open(world, 1).await;
    first.crash();
    let second = world.process().await;
    until_open(world, 1).await;
    let (organization_id, run_id) = (world.organization_id.clone(), started.run_id.clone());
    let waiting = asking(world).await.remove(&run_id).unwrap();
    let done = second
        .call(|runtime| async move {
            let output = json!({ "by": "Ada" });
            runtime
                .answer(&Actor::default(), &organization_id, &run_id, waiting, output)
                .await
        })
        .await
        .unwrap();
    assert!(done.resumed && done.ended);
    assert_eq!(open_requests(world).await, 0);
    let run = world.ended(&started.run_id).await;
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 0));
}
