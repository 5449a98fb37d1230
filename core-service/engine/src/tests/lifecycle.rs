//! Stopping, cancelling, resuming, long stretches, and what is recorded.

use serde_json::json;

use crate::event::{EventBody, Failure, Outcome};
use crate::journal;
use crate::start::Start;
use crate::state::RunState;
use crate::state::{NodeStatus, RunStatus};
use crate::step::{Command, Execute, Input, STEP_BUDGET};
use crate::testing::world::{World, bare_step, replay};
use crate::testing::{graph, key, names, plan, set_params};

#[test]
fn stop_ends_the_run_at_once() {
    let mut graph = graph("1:manual_trigger 2:call 3:stop 4:set | 1-2 1-3 1-4");
    set_params(&mut graph, 3, json!({ "status": "failed", "message": "enough" }));
    let world = World::started(plan(&graph));
    let expected = [
        "run started",
        "completed 1",
        "started 2",
        "completed 3",
        "cancelled 2",
        "run failed",
    ];
    assert_eq!(names(&world.journal), expected);
    assert_eq!(world.finished.unwrap().1.unwrap().to_string(), "STOPPED: enough");
    // What the same step had asked for is not started.
    assert!(world.executing.is_empty());
    assert!(world.state.nodes().all(|node| node.node.id != 4));
}

#[test]
fn stop_can_end_the_run_well() {
    let graph = graph("1:stop |");
    let world = World::started(plan(&graph));
    assert_eq!(world.finished, Some((Outcome::Succeeded, None)));
}

#[test]
fn cancel_beats_what_comes_later() {
    let graph = graph("1:manual_trigger 2:call 3:set | 1-2 2-3");
    let mut world = World::started(plan(&graph));
    assert_eq!(
        names(&world.input(Input::Cancel)),
        ["cancelled 2", "run cancelled"]
    );
    let late = Input::NodeFinished {
        key: key(2),
        attempt: 1,
        result: Ok(json!({ "late": true })),
    };
    assert_eq!(names(&world.input(late)), ["completed 2"]);
    assert_eq!(world.state.status(), RunStatus::Cancelled);
    assert_eq!(**world.state.output(2).unwrap(), json!({ "late": true }));
    assert_eq!(world.state.nodes().count(), 2);
    assert_eq!(names(&world.input(Input::Cancel)), [""; 0]);
    replay(&world.plan, &world.journal);
}

#[test]
fn the_runtime_can_fail_a_run() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::started(plan(&graph));
    let failure = Failure {
        code: "ENGINE_ERROR".into(),
        message: "the process stopped three times".into(),
    };
    assert_eq!(
        names(&world.input(Input::Fail(failure.clone()))),
        ["cancelled 2", "run failed"]
    );
    assert_eq!(world.finished, Some((Outcome::Failed, Some(failure))));
}

#[test]
fn resume_asks_again_for_what_is_outstanding() {
    let mut graph = graph("1:manual_trigger 2:call 3:wait | 1-2 1-3");
    set_params(&mut graph, 3, json!({ "amount": 1, "unit": "minutes" }));
    let mut world = World::started(plan(&graph));
    let (executing, timers) = (world.executing.clone(), world.timers.clone());
    world.recover();
    assert_eq!((world.executing, world.timers), (executing, timers));
}

#[test]
fn stale_results_are_ignored() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::started(plan(&graph));
    for (node, attempt) in [(2, 2), (1, 1), (9, 1)] {
        let stale = Input::NodeFinished {
            key: key(node),
            attempt,
            result: Ok(json!({})),
        };
        assert_eq!(names(&world.input(stale)), [""; 0]);
    }
}

#[test]
fn a_long_stretch_is_divided() {
    let nodes: Vec<String> = (1..=400).map(|id| format!("{id}:set")).collect();
    let edges: Vec<String> = (1..400).map(|id| format!("{id}-{}", id + 1)).collect();
    let graph = graph(&format!("{} | {}", nodes.join(" "), edges.join(" ")));
    let mut state = RunState::new(plan(&graph));
    let first = bare_step(&mut state, Input::Start(Start::manual()), 1);
    assert_eq!(first.events.len(), 1 + STEP_BUDGET);
    assert_eq!(first.commands, [Command::Continue]);
    let second = bare_step(&mut state, Input::Continue, 2);
    assert_eq!(second.events.len(), 400 - STEP_BUDGET + 1);
    assert_eq!(state.status(), RunStatus::Succeeded);
}

#[test]
fn a_pure_run_is_one_small_segment() {
    let mut graph = graph("1:manual_trigger 2:set 3:condition 4:set | 1-2 2-3 3-4");
    set_params(&mut graph, 4, json!({ "fields": { "greeting": "hello" } }));
    let mut state = RunState::new(plan(&graph));
    let step = bare_step(&mut state, Input::Start(Start::manual()), 1_770_000_000_000);
    assert_eq!(
        step.commands,
        [Command::Finish {
            outcome: Outcome::Succeeded,
            failure: None
        }]
    );
    let bytes = journal::encode(&step.events).bytes;
    assert!(bytes.len() < 200, "{} bytes", bytes.len());
}

#[test]
fn secrets_are_masked_before_they_are_recorded() {
    let mut graph = graph("1:manual_trigger 2:call | 1-2");
    set_params(&mut graph, 2, json!({ "body": "x" }));
    let mut world = World::started(plan(&graph));
    let events = world.finish(2, Ok(json!({ "echo": ["hunter2"] })));
    assert!(
        matches!(&events[0].body, EventBody::NodeCompleted { output, .. } if **output == json!({ "echo": ["***"] }))
    );
}

#[test]
fn other_values_than_objects_are_wrapped() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::started(plan(&graph));
    world.finish(2, Ok(json!([1, 2])));
    assert_eq!(**world.state.output(2).unwrap(), json!({ "value": [1, 2] }));
}

#[test]
fn an_execution_carries_what_its_key_is_made_of() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::new(plan(&graph));
    world.input(Input::Start(Start {
        attempt: 3,
        ..Start::manual()
    }));
    let Execute {
        key: place,
        run_attempt,
        attempt,
        timeout_ms,
        ..
    } = world.executing[0].clone();
    assert_eq!((place, run_attempt, attempt, timeout_ms), (key(2), 3, 1, 300_000));
}

#[test]
fn a_foreign_journal_is_an_error() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let world = World::started(plan(&graph));
    let other = plan(&crate::testing::graph("1:set |"));
    let mut state = RunState::new(other);
    let applied: Result<(), _> = world.journal.iter().try_for_each(|event| state.apply(event));
    assert!(applied.is_err());
    let mut twice = RunState::new(world.plan.clone());
    let doubled = world.journal.iter().chain(&world.journal);
    assert!(
        doubled
            .map(|event| twice.apply(event))
            .any(|applied| applied.is_err())
    );
    assert_eq!(world.state.nodes().last().unwrap().status, NodeStatus::Running);
}
