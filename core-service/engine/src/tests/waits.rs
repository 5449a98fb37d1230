//! Waiting, and the time a run may take.

use serde_json::json;

use crate::failure::NodeError;
use crate::start::Start;
use crate::state::RunStatus;
use crate::step::{Execute, Input, NodeAttempt, StepError};
use crate::testing::world::World;
use crate::testing::{graph, key, names, plan, set_config, set_params};
use crate::timer::TimerKey;

#[test]
fn a_wait_goes_on_when_its_timer_fires() {
    let mut graph = graph("1:manual_trigger 2:wait 3:set | 1-2 2-3");
    set_params(&mut graph, 2, json!({ "amount": 1.5, "unit": "seconds" }));
    let mut world = World::started(plan(&graph));
    assert_eq!(world.state.status(), RunStatus::Waiting);
    assert_eq!(
        names(&world.fire()),
        ["completed 2", "completed 3", "run succeeded"]
    );
    assert_eq!(**world.state.output(2).unwrap(), json!({ "until": 2_500 }));
    assert_eq!(world.state.credits_used(), 1);
}

#[test]
fn a_wait_until_the_past_is_no_wait() {
    let mut graph = graph("1:manual_trigger 2:wait | 1-2");
    for until in [json!(5), json!("1970-01-01T00:00:01Z")] {
        set_params(&mut graph, 2, json!({ "until": until }));
        assert_eq!(World::started(plan(&graph)).state.status(), RunStatus::Succeeded);
    }
}

#[test]
fn a_wait_beyond_ten_years_is_refused() {
    let mut graph = graph("1:manual_trigger 2:wait | 1-2");
    set_params(&mut graph, 2, json!({ "amount": 4000, "unit": "days" }));
    assert_eq!(World::started(plan(&graph)).state.status(), RunStatus::Failed);
}

#[test]
fn the_time_a_run_waits_does_not_count() {
    let mut graph = graph("1:manual_trigger 2:call 3:wait 4:call | 1-2 2-3 3-4");
    set_params(&mut graph, 3, json!({ "amount": 1, "unit": "hours" }));
    let mut world = World::new(plan(&graph));
    world.input(Input::Start(Start {
        timeout_ms: Some(10_000),
        ..Start::manual()
    }));
    assert_eq!(world.timers[&TimerKey::Run], 11_000);
    world.now_ms = 9_000;
    world.finish(2, Ok(json!({})));
    assert!(!world.timers.contains_key(&TimerKey::Run));
    assert_eq!(names(&world.fire()), ["completed 3", "started 4"]);
    assert_eq!(world.timers[&TimerKey::Run], 9_000 + 3_600_000 + 2_000);
    assert_eq!(names(&world.fire()), ["cancelled 4", "run failed"]);
    assert_eq!(world.finished.unwrap().1.unwrap().code, "RUN_TIMEOUT");
}

#[test]
fn a_run_timer_that_fires_early_does_nothing() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::new(plan(&graph));
    world.input(Input::Start(Start {
        timeout_ms: Some(10_000),
        ..Start::manual()
    }));
    world.timers.clear();
    assert_eq!(names(&world.input(Input::TimerFired(TimerKey::Run))), [""; 0]);
    // It is set again, or the run would have no end.
    assert_eq!(world.timers[&TimerKey::Run], 11_000);
}

#[test]
fn a_parked_execution_waits_for_its_answer() {
    let graph = graph("1:manual_trigger 2:call 3:set | 1-2 2-3");
    let mut world = World::started(plan(&graph));
    let place = key(2);
    let park = |attempt| Input::NodeParked {
        key: place.clone(),
        attempt,
        due_at_ms: Some(60_000),
    };
    assert_eq!(names(&world.input(park(9))), [""; 0]);
    assert_eq!(names(&world.input(park(1))), ["waiting 2"]);
    assert_eq!(world.state.status(), RunStatus::Waiting);
    let executing = std::mem::take(&mut world.executing);
    world.recover();
    assert!(world.executing.is_empty(), "what is parked is not executed again");
    let answer = Input::NodeAnswered {
        key: place,
        asked: executing[0].node_attempt(),
        result: Ok(json!({ "yes": true })),
    };
    assert_eq!(
        names(&world.input(answer.clone())),
        ["completed 2", "completed 3", "run succeeded"]
    );
    assert_eq!(
        world.try_input(answer),
        Err(StepError::Answered(2)),
        "one answer wins"
    );
}

#[test]
fn an_answer_is_for_the_attempt_that_asked() {
    let mut graph = graph("1:manual_trigger 2:call 3:set 4:call | 1-2 2-3 1-4");
    set_config(
        &mut graph,
        2,
        json!({ "retry": { "maxAttempts": 2, "delayMs": 10 } }),
    );
    let mut world = World::started(plan(&graph));
    let answer = |asked, yes: bool| Input::NodeAnswered {
        key: key(2),
        asked,
        result: match yes {
            true => Ok(json!({})),
            false => Err(NodeError::new("NO", "no")),
        },
    };
    let asked = |world: &World| {
        let asking = |execute: &&Execute| execute.key == key(2);
        world.executing.iter().find(asking).unwrap().node_attempt()
    };
    // Somebody answers before it is known that the node waits.
    let first = asked(&world);
    assert_eq!(names(&world.input(answer(first, false))), ["retrying 2"]);
    assert_eq!(world.try_input(answer(first, true)), Err(StepError::Answered(2)));
    world.executing.retain(|execute| execute.key != key(2));
    assert_eq!(names(&world.fire()), ["started 2"]);
    let second = asked(&world);
    assert_eq!(world.try_input(answer(first, true)), Err(StepError::Answered(2)));
    // What the run gave up when it failed is asked anew when it goes on; the number says 1 again.
    world.now_ms += 10;
    world.finish(4, Err(NodeError::new("HTTP_ERROR", "no")));
    world.input(Input::Cancel);
    assert_eq!(world.try_input(answer(second, true)), Err(StepError::Answered(2)));
    world.executing.clear();
    world.input(Input::RetryNode(4));
    let third = asked(&world);
    assert_eq!((first.number, third.number), (1, 1));
    assert_eq!(world.try_input(answer(first, true)), Err(StepError::Answered(2)));
    assert_eq!(
        names(&world.input(answer(third, true))),
        ["completed 2", "completed 3"]
    );
}

#[test]
fn what_asks_nobody_takes_no_answer() {
    let mut graph = graph("1:manual_trigger 2:wait 3:call | 1-2 2-3");
    set_params(&mut graph, 2, json!({ "amount": 1, "unit": "hours" }));
    let mut world = World::started(plan(&graph));
    for node in [1, 2, 3, 9] {
        let answer = Input::NodeAnswered {
            key: key(node),
            asked: NodeAttempt {
                started_at_ms: world.now_ms,
                number: 1,
            },
            result: Ok(json!({})),
        };
        assert_eq!(world.try_input(answer), Err(StepError::NotWaiting(node)));
    }
}

#[test]
fn nobody_answers_in_time() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::started(plan(&graph));
    world.input(Input::NodeParked {
        key: key(2),
        attempt: 1,
        due_at_ms: Some(60_000),
    });
    assert_eq!(names(&world.fire()), ["failed 2", "run failed"]);
    assert_eq!(world.finished.unwrap().1.unwrap().code, "NODE_TIMEOUT");
}

#[test]
fn the_time_before_a_retry_does_not_count() {
    let graph = graph("1:manual_trigger 2:call | 1-2");
    let mut world = World::new(plan(&graph));
    world.input(Input::Start(Start {
        timeout_ms: Some(10_000),
        ..Start::manual()
    }));
    world.now_ms = 5_000;
    world.finish(2, Err(NodeError::new("HTTP_ERROR", "no")));
    world.finished = None;
    world.now_ms = 1_000_000;
    world.input(Input::RetryNode(2));
    assert_eq!(world.timers[&TimerKey::Run], 1_000_000 + 6_000);
}
