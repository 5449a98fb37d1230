//! Runs that wait for other runs: without memory, without a place, and across processes.

use std::time::Duration;

use core_service::runtime::{RuntimeConfig, StartRunError};
use core_service::store::{Actor, Draft, NewWorkflow, RunStatus};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::graphs::{after_trigger, frozen, probe, set, start, wait};
use crate::world::{PATIENCE, Process, World, quick};

on_both_databases!(
    a_run_that_waits_for_another_is_no_memory,
    calls_need_no_place_that_their_callers_take,
    a_call_survives_the_process_of_its_caller,
    a_child_outlives_a_crash_between_its_start_and_the_wait,
    an_end_that_is_told_late_leaves_later_calls_alone,
);

/// A workflow whose draft is this graph.
pub(crate) async fn workflow(world: &World, graph: &Value) -> String {
    let draft = Draft {
        graph: serde_json::to_vec(graph).unwrap(),
        hash: frozen(graph).content_hash,
        node_count: 1,
    };
    let new = NewWorkflow {
        name: "Callee",
        description: None,
        team_id: None,
        folder_id: None,
        draft: &draft,
    };
    let created = world
        .store
        .create_workflow(&Actor::default(), &world.organization_id, &new)
        .await;
    created.unwrap().id
}

/// A graph that calls a workflow's draft.
pub(crate) fn calling(workflow_id: &str) -> Value {
    let params = json!({ "workflowId": workflow_id, "version": "draft" });
    after_trigger(&[("run_workflow", params, json!({})), set(json!({ "after": true }))])
}

/// The only run of a workflow, once there is one.
async fn only_run(world: &World, workflow_id: &str) -> String {
    let look = async {
        loop {
            let listed = world
                .store
                .list_runs(&world.organization_id, workflow_id, None, None, 10);
            if let [run] = listed.await.unwrap().as_slice() {
                return run.id.clone();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, look).await.expect("exactly one run")
}

async fn call(world: &World, process: &Process, workflow_id: &str) -> String {
    let begin = start(&world.organization_id, &calling(workflow_id), json!({}));
    process.start(begin).await.unwrap().run_id
}

async fn a_run_that_waits_for_another_is_no_memory(world: &World) {
    let process = world.process().await;
    let callee = workflow(world, &after_trigger(&[probe("wait")])).await;
    let caller = call(world, &process, &callee).await;
    let asleep = world
        .run_when(&caller, |run| run.status == RunStatus::Waiting)
        .await;
    assert_eq!(asleep.process_id, None);
    world.probe.begun(1).await;
    // The called run alone.
    process.counts(|counted| counted.runs_live == 1).await;
    world.probe.open(1);
    assert_eq!(world.ended(&caller).await.status, RunStatus::Succeeded);
    assert_eq!(world.probe.count(), 1);
}

async fn calls_need_no_place_that_their_callers_take(world: &World) {
    let process = world
        .process_with(RuntimeConfig {
            live_runs: 2,
            executions_per_organization: 1,
            ..quick()
        })
        .await;
    let last = workflow(world, &after_trigger(&[probe("ok")])).await;
    let between = workflow(world, &calling(&last)).await;
    let mut callers = Vec::new();
    while callers.len() < 5 {
        let begin = start(&world.organization_id, &calling(&between), json!({}));
        match process.start(begin).await {
            Ok(started) => callers.push(started.run_id),
            Err(StartRunError::Overloaded) => sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
    for caller in callers {
        assert_eq!(world.ended(&caller).await.status, RunStatus::Succeeded);
    }
    assert_eq!(world.probe.count(), 5);
}

async fn a_call_survives_the_process_of_its_caller(world: &World) {
    let first = world.process().await;
    let callee = workflow(world, &after_trigger(&[wait(700), probe("ok")])).await;
    let caller = call(world, &first, &callee).await;
    let child = only_run(world, &callee).await;
    first.crash();
    let _second = world.process().await;
    assert_eq!(world.ended(&child).await.status, RunStatus::Succeeded);
    assert_eq!(world.ended(&caller).await.status, RunStatus::Succeeded);
    assert_eq!(world.probe.count(), 1);
    assert_eq!(only_run(world, &callee).await, child);
}

async fn a_child_outlives_a_crash_between_its_start_and_the_wait(world: &World) {
    // The process dies as soon as the child is there, now before and now after its caller is known to wait.
    // A SQLite database is one process's: what a crashed one left open would be in the way of a third.
    for _ in 0..if world.is_sqlite() { 1 } else { 5 } {
        let first = world.process().await;
        let callee = workflow(world, &after_trigger(&[wait(300)])).await;
        let begin = start(&world.organization_id, &calling(&callee), json!({}));
        let started = first.start(begin).await.unwrap();
        let child = only_run(world, &callee).await;
        first.crash();
        let _second = world.process().await;
        assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
        assert_eq!(only_run(world, &callee).await, child);
    }
}

/// The run that calls has been begun again since the end that is told.
async fn an_end_that_is_told_late_leaves_later_calls_alone(world: &World) {
    let process = world.process().await;
    let callee = workflow(world, &after_trigger(&[wait(3_600_000)])).await;
    call(world, &process, &callee).await;
    let child = only_run(world, &callee).await;
    // {"workflowId":"wf_1","lineage":{},"end":{"status":"cancelled"},"endedAtMs":1,"hasChildren":true}
    let late = match world.is_sqlite() {
        true => {
            "INSERT INTO endings (run_id, attempt, seq, organization_id, notice, wake_at)
             SELECT parent_run_id, 1, 99, organization_id,
                 x'7b22776f726b666c6f774964223a2277665f31222c226c696e65616765223a7b7d2c22656e64223a7b22737461747573223a2263616e63656c6c6564227d2c22656e64656441744d73223a312c226861734368696c6472656e223a747275657d',
                 0 FROM runs WHERE parent_run_id IS NOT NULL"
        }
        false => {
            "INSERT INTO endings (run_id, attempt, seq, organization_id, notice, wake_at)
             SELECT parent_run_id, 1, 99, organization_id,
                 decode('7b22776f726b666c6f774964223a2277665f31222c226c696e65616765223a7b7d2c22656e64223a7b22737461747573223a2263616e63656c6c6564227d2c22656e64656441744d73223a312c226861734368696c6472656e223a747275657d', 'hex'),
                 0 FROM runs WHERE parent_run_id IS NOT NULL"
        }
    };
    world.execute(late).await;
    let told = async {
        while world.store.next_ending().await.unwrap().is_some() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, told).await.unwrap();
    assert_eq!(world.run(&child).await.status, RunStatus::Waiting);
}
