//! What is asked of runs: cancel, retry a node, run again; wherever the run is.

use core_service::runtime::{Done, RequestError};
use core_service::store::{Actor, RunStatus};
use engine::event::{LogLevel, LogLine};
use engine::state::NodeStatus;
use serde_json::{Value, json};

use crate::graphs::{after_trigger, probe, set, start, wait};
use crate::world::{PATIENCE, Process, World};

on_both_databases!(
    a_cancel_stops_what_is_executed,
    a_sleeping_run_is_cancelled,
    a_cancel_reaches_another_process,
    only_unfinished_runs_of_the_organization_are_cancelled,
    a_cancel_that_was_answered_stands,
    a_failed_node_runs_again_with_what_is_below,
    a_rerun_is_a_new_attempt_with_the_same_input,
    one_answer_wins,
    an_answer_reaches_another_process,
    a_signal_to_a_run_that_was_just_put_to_sleep_is_acted_upon,
);

async fn cancel(process: &Process, world: &World, run_id: &str) -> Result<(), RequestError> {
    let (organization_id, run_id) = (world.organization_id.clone(), run_id.to_owned());
    process
        .call(|runtime| async move { runtime.cancel(&Actor::default(), &organization_id, &run_id).await })
        .await
}

async fn a_cancel_stops_what_is_executed(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), set(json!({}))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let begun = world.probe.begun(1).await;
    begun[0].log.write(LogLine {
        level: LogLevel::Info,
        message: "so far".to_owned(),
    });
    cancel(&process, world, &started.run_id).await.unwrap();
    assert_eq!(world.run(&started.run_id).await.status, RunStatus::Cancelled);
    world.probe.given_up(1).await;
    let report = process.report(world, &started.run_id).await;
    let node = report.state.nodes().find(|node| node.node.id == 2).unwrap();
    assert_eq!(node.status, NodeStatus::Cancelled);
    assert_eq!(node.log[0].message, "so far", "what it wrote is kept");
}

async fn a_sleeping_run_is_cancelled(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[wait(60_000), probe("ok")]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    cancel(&process, world, &started.run_id).await.unwrap();
    let run = world.run(&started.run_id).await;
    assert_eq!((run.status, run.process_id), (RunStatus::Cancelled, None));
    assert_eq!(world.store.run_timers(&started.run_id).await.unwrap(), []);
}

async fn a_cancel_reaches_another_process(world: &World) {
    if world.is_sqlite() {
        return; // A SQLite database serves one process.
    }
    let (driving, other) = (world.process().await, world.process().await);
    let graph = after_trigger(&[probe("wait")]);
    let started = driving
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(1).await;
    cancel(&other, world, &started.run_id).await.unwrap();
    assert_eq!(world.run(&started.run_id).await.status, RunStatus::Cancelled);
    assert_eq!(other.runtime.metrics().runs_cancelled, 0, "its driver did it");
    driving.counts(|metrics| metrics.runs_cancelled == 1).await;
}

async fn only_unfinished_runs_of_the_organization_are_cancelled(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[wait(60_000)]);
    let waiting = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let done = process
        .start(start(&world.organization_id, &after_trigger(&[]), json!({})))
        .await
        .unwrap();
    assert_eq!(
        cancel(&process, world, &done.run_id).await,
        Err(RequestError::Terminal)
    );
    assert_eq!(
        cancel(&process, world, "run_00000000000000000000000000").await,
        Err(RequestError::NotFound)
    );
    let run_id = waiting.run_id.clone();
    let stranger = process
        .call(|runtime| async move { runtime.cancel(&Actor::default(), "org_other", &run_id).await })
        .await;
    assert_eq!(stranger, Err(RequestError::NotFound));
    assert_eq!(world.run(&waiting.run_id).await.status, RunStatus::Waiting);
}

/// Cancels race with the ends of their runs: whichever wins, the answer says so.
async fn a_cancel_that_was_answered_stands(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), wait(0), probe("ok")]);
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(
            process
                .start(start(&world.organization_id, &graph, json!({})))
                .await
                .unwrap()
                .run_id,
        );
    }
    world.probe.begun(runs.len()).await;
    let (organization_id, cancelled_ids) = (world.organization_id.clone(), runs.clone());
    let probe = world.probe.clone();
    let answers = process
        .call(|runtime| async move {
            let mut cancels = Vec::new();
            for run_id in cancelled_ids {
                let (runtime, organization_id) = (runtime.clone(), organization_id.clone());
                probe.open(1);
                cancels.push(tokio::spawn(async move {
                    runtime.cancel(&Actor::default(), &organization_id, &run_id).await
                }));
            }
            let mut answers = Vec::new();
            for cancel in cancels {
                answers.push(cancel.await.unwrap());
            }
            answers
        })
        .await;
    for (run_id, answer) in runs.iter().zip(answers) {
        let status = world.ended(run_id).await.status;
        match answer {
            Ok(()) => assert_eq!(status, RunStatus::Cancelled),
            Err(RequestError::Terminal) => assert_eq!(status, RunStatus::Succeeded),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn a_failed_node_runs_again_with_what_is_below(world: &World) {
    let process = world.process().await;
    // Fails in its first two executions, and is not retried by itself.
    let graph = after_trigger(&[
        probe("ok"),
        probe("fail twice"),
        set(json!({ "tries": "{{3.tries}}" })),
    ]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let retry = |node: i64| {
        let (organization_id, run_id) = (world.organization_id.clone(), started.run_id.clone());
        process.call(move |runtime| async move {
            runtime
                .retry_node(&Actor::default(), &organization_id, &run_id, node, false)
                .await
        })
    };
    let failed = world.ended(&started.run_id).await;
    assert_eq!((failed.status, failed.attempt_number), (RunStatus::Failed, 1));
    assert_eq!(retry(2).await, Err(RequestError::NotFailed(2)));
    assert_eq!(
        world.run(&started.run_id).await.process_id,
        None,
        "a refusal leaves the run alone"
    );
    for expected in [RunStatus::Failed, RunStatus::Succeeded] {
        let before = world.probe.count();
        assert_eq!(retry(3).await, Ok(()));
        world.probe.begun(before + 1).await;
        assert_eq!(world.ended(&started.run_id).await.status, expected);
    }
    assert_eq!(retry(3).await, Err(RequestError::NotFailed(3)));
    assert_eq!(world.probe.count(), 4, "node 2 ran once, node 3 three times");
    let report = process.report(world, &started.run_id).await;
    assert_eq!(**report.state.last_output().unwrap(), json!({ "tries": 3 }));
}

async fn a_rerun_is_a_new_attempt_with_the_same_input(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[
        probe("wait"),
        set(json!({ "n": "{{1.n}}", "attempt": "{{$run.attemptNumber}}" })),
    ]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({ "n": 7 })))
        .await
        .unwrap();
    let rerun = || {
        let (organization_id, run_id) = (world.organization_id.clone(), started.run_id.clone());
        process.call(move |runtime| async move {
            runtime
                .rerun(&Actor::default(), &organization_id, &run_id, false)
                .await
        })
    };
    assert_eq!(rerun().await, Err(RequestError::NotTerminal));
    world.probe.open(2);
    let first = world.ended(&started.run_id).await;
    assert_eq!(rerun().await, Ok(()));
    let second = world
        .run_when(&started.run_id, |run| {
            run.attempt_number == 2 && run.status.is_terminal()
        })
        .await;
    assert_eq!((first.credits_used, second.credits_used), (2, 4));
    let report = process.report(world, &started.run_id).await;
    assert_eq!(
        **report.state.last_output().unwrap(),
        json!({ "n": 7, "attempt": 2 })
    );
    let keys: Vec<String> = world
        .probe
        .begun(2)
        .await
        .iter()
        .map(|one| one.idempotency_key())
        .collect();
    assert_ne!(keys[0], keys[1], "another attempt is another request");
}

async fn answer(
    process: &Process,
    world: &World,
    run_id: &str,
    node: i64,
    output: Value,
) -> Result<(), RequestError> {
    let (organization_id, run_id) = (world.organization_id.clone(), run_id.to_owned());
    let waiting = process.waiting(world, &run_id, node).await;
    let answered = process.call(move |runtime| async move {
        runtime
            .answer(&Actor::default(), &organization_id, &run_id, waiting, output)
            .await
    });
    answered.await.map(drop)
}

async fn one_answer_wins(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("park"), set(json!({ "by": "{{2.by}}" }))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world
        .run_when(&started.run_id, |run| {
            run.status == RunStatus::Waiting && run.process_id.is_none()
        })
        .await;
    // People take their time.
    process.counts(|counted| counted.runs_live == 0).await;
    assert_eq!(
        answer(&process, world, &started.run_id, 1, json!({})).await,
        Err(RequestError::NotWaiting(1))
    );
    assert_eq!(
        answer(&process, world, &started.run_id, 9, json!({})).await,
        Err(RequestError::NotWaiting(9))
    );
    let (organization_id, run_id) = (world.organization_id.clone(), started.run_id.clone());
    let waiting = process.waiting(world, &run_id, 2).await;
    let outcomes = process
        .call(|runtime| async move {
            let answer = |by: i64| {
                let (runtime, organization_id, run_id, waiting) = (
                    runtime.clone(),
                    organization_id.clone(),
                    run_id.clone(),
                    waiting.clone(),
                );
                let output = json!({ "by": by });
                tokio::spawn(async move {
                    runtime
                        .answer(&Actor::default(), &organization_id, &run_id, waiting, output)
                        .await
                })
            };
            let answers: Vec<_> = (0..10).map(answer).collect();
            let mut outcomes = Vec::new();
            for answer in answers {
                outcomes.push(answer.await.unwrap());
            }
            outcomes
        })
        .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let lost = |outcome: &&Result<Done, RequestError>| **outcome == Err(RequestError::Answered(2));
    assert_eq!(outcomes.iter().filter(lost).count(), 9, "{outcomes:?}");
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let winner = outcomes.iter().position(Result::is_ok).unwrap();
    let report = process.report(world, &started.run_id).await;
    assert_eq!(**report.state.last_output().unwrap(), json!({ "by": winner }));
}

async fn an_answer_reaches_another_process(world: &World) {
    if world.is_sqlite() {
        return; // A SQLite database serves one process.
    }
    let (driving, other) = (world.process().await, world.process().await);
    // While one node is executed there, another waits for an answer.
    let mut graph = after_trigger(&[probe("wait"), probe("park")]);
    graph["edges"][1] = json!({ "id": "1-3", "from": 1, "to": 3 });
    let started = driving
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    world.probe.begun(2).await;
    let parked = async {
        loop {
            let report = driving.report(world, &started.run_id).await;
            if report
                .state
                .nodes()
                .any(|node| node.status == NodeStatus::Waiting)
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, parked).await.unwrap();
    assert_eq!(
        answer(&other, world, &started.run_id, 3, json!({ "yes": true })).await,
        Ok(())
    );
    assert_eq!(
        answer(&other, world, &started.run_id, 3, json!({ "yes": false })).await,
        Err(RequestError::Answered(3))
    );
    world.probe.open(1);
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    driving.counts(|metrics| metrics.runs_succeeded == 1).await;
}

/// As from a process that took the driver, which was about to leave, for the one to ask.
async fn a_signal_to_a_run_that_was_just_put_to_sleep_is_acted_upon(world: &World) {
    let process = world.process().await;
    let started = process
        .start(start(
            &world.organization_id,
            &after_trigger(&[probe("park")]),
            json!({}),
        ))
        .await
        .unwrap();
    process.counts(|counted| counted.runs_live == 0).await;
    let payload = json!({ "actor": Actor::default() }).to_string();
    for (kind, payload) in [("unheard_of", "?"), ("cancel", &*payload)] {
        let store = &world.store;
        let sent = store.send_signal(&world.organization_id, &started.run_id, kind, payload.as_bytes());
        assert!(sent.await.unwrap().is_some(), "the run has not ended");
    }
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Cancelled);
    assert_eq!(world.run(&started.run_id).await.pending_signals, 0);
}
