//! Failures: retries, error edges, `onError`, and what an unhandled one does.

use serde_json::json;

use crate::event::Outcome;
use crate::failure::NodeError;
use crate::state::{NodeStatus, RunStatus};
use crate::testing::world::World;
use crate::testing::{graph, names, plan, set_config, set_filter, set_params};
use crate::timer::TimerKey;

fn broken() -> NodeError {
    NodeError::new("HTTP_ERROR", "status 500 for hunter2")
}

#[test]
fn an_unhandled_failure_fails_the_run_and_starts_nothing_new() {
    let graph = graph("1:manual_trigger 2:call 3:call 4:set 5:wait | 1-2 1-3 3-4 1-5");
    let mut graph = graph;
    set_params(&mut graph, 5, json!({ "amount": 1, "unit": "days" }));
    let mut world = World::started(plan(&graph));
    assert_eq!(names(&world.finish(2, Err(broken()))), ["failed 2"]);
    assert_eq!(world.state.status(), RunStatus::Running);
    assert_eq!(
        names(&world.finish(3, Ok(json!({})))),
        ["completed 3", "cancelled 5", "run failed"]
    );
    let (outcome, failure) = world.finished.unwrap();
    assert_eq!(outcome, Outcome::Failed);
    assert_eq!(failure.unwrap().to_string(), "HTTP_ERROR: status 500 for ***");
    assert!(world.timers.is_empty());
}

#[test]
fn an_error_edge_handles_the_failure() {
    let mut graph = graph("1:manual_trigger 2:call 3:set 4:set | 1-2 2-3 2-4-error");
    set_config(&mut graph, 4, json!({ "disabled": true }));
    let mut world = World::started(plan(&graph));
    let events = names(&world.finish(2, Err(broken())));
    assert_eq!(events, ["failed 2", "skipped 3", "completed 4", "run succeeded"]);
    let error = json!({ "error": { "code": "HTTP_ERROR", "message": "status 500 for ***" } });
    assert_eq!(**world.state.output(4).unwrap(), error);
}

#[test]
fn an_error_edge_whose_filter_says_no_handles_nothing() {
    let mut graph = graph("1:manual_trigger 2:call 3:set | 1-2 2-3-error");
    set_filter(
        &mut graph,
        "2-3-error",
        json!({ "any": [{ "all": [{ "left": 1, "operator": "eq", "right": 2 }] }] }),
    );
    let mut world = World::started(plan(&graph));
    assert_eq!(names(&world.finish(2, Err(broken()))), ["failed 2", "run failed"]);
}

#[test]
fn on_error_continue_takes_the_normal_edges() {
    let mut graph = graph("1:manual_trigger 2:call 3:set | 1-2 2-3");
    set_config(&mut graph, 2, json!({ "onError": "continue" }));
    let mut world = World::started(plan(&graph));
    assert_eq!(
        names(&world.finish(2, Err(broken()))),
        ["failed 2", "completed 3", "run succeeded"]
    );
    assert_eq!(world.state.output(2).unwrap()["error"]["code"], "HTTP_ERROR");
}

#[test]
fn retries_wait_longer_each_time_and_cost_once() {
    let mut graph = graph("1:manual_trigger 2:call | 1-2");
    set_config(
        &mut graph,
        2,
        json!({ "retry": { "maxAttempts": 3, "delayMs": 100, "multiplier": 2 } }),
    );
    let mut world = World::started(plan(&graph));
    assert_eq!(names(&world.finish(2, Err(broken()))), ["retrying 2"]);
    assert_eq!(world.timers.values().collect::<Vec<_>>(), [&1_100]);
    assert_eq!(world.state.status(), RunStatus::Waiting);
    assert_eq!(names(&world.fire()), ["started 2"]);
    assert_eq!(world.executing[0].attempt, 2);
    let asked = NodeError {
        retry_after_ms: Some(5_000),
        ..broken()
    };
    assert_eq!(names(&world.finish(2, Err(asked))), ["retrying 2"]);
    assert_eq!(world.timers.values().collect::<Vec<_>>(), [&6_100]);
    world.fire();
    assert_eq!(names(&world.finish(2, Err(broken()))), ["failed 2", "run failed"]);
    assert_eq!(world.state.credits_used(), 1);
    assert_eq!(world.state.nodes().last().unwrap().attempt, 3);
}

#[test]
fn a_failed_template_fails_the_node() {
    let mut graph = graph("1:manual_trigger 2:wait | 1-2");
    set_params(&mut graph, 2, json!({ "until": "soon" }));
    let world = World::started(plan(&graph));
    assert_eq!(world.finished.unwrap().1.unwrap().code, "EXPRESSION_ERROR");
}

#[test]
fn a_retry_timer_that_fires_early_or_twice_does_no_harm() {
    let mut graph = graph("1:manual_trigger 2:call | 1-2");
    set_config(
        &mut graph,
        2,
        json!({ "retry": { "maxAttempts": 2, "delayMs": 100 } }),
    );
    let mut world = World::started(plan(&graph));
    world.finish(2, Err(broken()));
    let key = TimerKey::Node(crate::testing::key(2));
    assert_eq!(
        names(&world.input(crate::step::Input::TimerFired(key.clone()))),
        [""; 0]
    );
    world.fire();
    assert_eq!(names(&world.input(crate::step::Input::TimerFired(key))), [""; 0]);
    assert_eq!(world.executing.len(), 1);
}

#[test]
fn retry_node_runs_the_node_and_all_below_it_again() {
    let graph = graph("1:manual_trigger 2:call 3:call 4:set | 1-2 1-3 2-4 3-4");
    let mut world = World::started(plan(&graph));
    world.finish(2, Ok(json!({ "kept": true })));
    world.finish(3, Err(broken()));
    assert_eq!(world.state.status(), RunStatus::Failed);
    assert!(world.try_input(crate::step::Input::RetryNode(2)).is_err());
    world.finished = None;
    assert_eq!(
        names(&world.input(crate::step::Input::RetryNode(3))),
        ["resumed 3", "started 3"]
    );
    assert_eq!(world.executing[0].run_attempt, 1);
    let events = names(&world.finish(3, Ok(json!({}))));
    assert_eq!(events, ["completed 3", "completed 4", "run succeeded"]);
    assert_eq!(**world.state.output(2).unwrap(), json!({ "kept": true }));
    assert_eq!(world.state.credits_used(), 4);
    assert_eq!(
        world
            .state
            .nodes()
            .filter(|node| node.status == NodeStatus::Completed)
            .count(),
        4
    );
}
