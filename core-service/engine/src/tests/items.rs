//! Scopes: what runs once for each item, and what becomes of it.

use serde_json::{Value, json};

use crate::event::{LogLevel, LogLine, Outcome};
use crate::failure::NodeError;
use crate::graph::Graph;
use crate::iteration::Iteration;
use crate::state::{NodeStatus, RunStatus};
use crate::step::Input;
use crate::testing::world::World;
use crate::testing::{graph, names, plan, set_config, set_filter, set_params};

const LOOP: &str = "1:manual_trigger 2:splitter 3:call 4:aggregator(2) 5:set | 1-2 2-3 3-4 4-5";

fn each_item(concurrency: u32) -> Graph {
    let mut graph = graph(LOOP);
    set_params(
        &mut graph,
        2,
        json!({ "items": ["a", "b", "c"], "concurrency": concurrency }),
    );
    set_params(
        &mut graph,
        3,
        json!({ "body": { "item": "{{$item}}", "index": "{{$index}}", "of": "{{2.item}}" } }),
    );
    graph
}

/// Reports the result of one iteration of node 3.
#[track_caller]
fn finish(world: &mut World, iteration: &str, result: Result<Value, NodeError>) -> Vec<String> {
    let iteration: Iteration = iteration.parse().unwrap();
    let position = world
        .executing
        .iter()
        .position(|execute| execute.key.iteration == iteration)
        .unwrap();
    let execute = world.executing.remove(position);
    let (key, attempt) = (execute.key, execute.attempt);
    names(&world.input(Input::NodeFinished { key, attempt, result }))
}

#[test]
fn each_item_runs_once_and_is_collected_in_order() {
    let mut world = World::started(plan(&each_item(2)));
    let expected = [
        "run started",
        "completed 1",
        "opened 2",
        "item 2/0",
        "item 2/1",
        "started 3",
        "started 3",
    ];
    assert_eq!(names(&world.journal), expected);
    assert_eq!(
        world.executing[1].request,
        json!({ "item": "b", "index": 1, "of": "b" })
    );
    assert_eq!(
        finish(&mut world, "1", Ok(json!({ "n": 1 }))),
        ["completed 3", "item end 2/1", "item 2/2", "started 3"]
    );
    finish(&mut world, "2", Ok(json!({ "n": 2 })));
    let last = finish(&mut world, "0", Ok(json!({ "n": 0 })));
    assert_eq!(
        last,
        [
            "completed 3",
            "item end 2/0",
            "completed 2",
            "completed 4",
            "completed 5",
            "run succeeded"
        ]
    );
    let collected = json!({ "items": [{ "n": 0 }, { "n": 1 }, { "n": 2 }], "count": 3, "errors": [] });
    assert_eq!(**world.state.output(4).unwrap(), collected);
    assert_eq!(world.state.credits_used(), 4);
    let iterations: Vec<_> = world
        .state
        .nodes()
        .map(|node| format!("{}/{}", node.node.id, node.iteration))
        .collect();
    assert_eq!(iterations, ["1/", "2/", "3/0", "3/1", "3/2", "4/", "5/"]);
}

#[test]
fn the_aggregator_runs_also_without_items() {
    let mut graph = each_item(1);
    set_params(&mut graph, 2, json!({ "items": [] }));
    let world = World::started(plan(&graph));
    assert_eq!(
        **world.state.output(4).unwrap(),
        json!({ "items": [], "count": 0, "errors": [] })
    );
    assert_eq!(world.state.status(), RunStatus::Succeeded);
}

#[test]
fn collect_is_evaluated_inside_the_item() {
    let mut graph = each_item(1);
    set_params(
        &mut graph,
        4,
        json!({ "of": 2, "collect": "{{2.index}}:{{3.n}}" }),
    );
    let mut world = World::started(plan(&graph));
    for index in 0..3 {
        finish(&mut world, &index.to_string(), Ok(json!({ "n": index * 10 })));
    }
    assert_eq!(
        world.state.output(4).unwrap()["items"],
        json!(["0:0", "1:10", "2:20"])
    );
}

#[test]
fn an_item_that_takes_no_edge_is_left_out() {
    let mut graph = graph("1:manual_trigger 2:splitter 3:set 4:aggregator(2) | 1-2 2-3 3-4");
    set_params(&mut graph, 2, json!({ "items": [1, 2, 3] }));
    set_params(&mut graph, 3, json!({ "fields": { "n": "{{$item * 2}}" } }));
    set_filter(&mut graph, "2-3", json!("{{$item != 2}}"));
    let world = World::started(plan(&graph));
    assert_eq!(
        world.state.output(4).unwrap()["items"],
        json!([{ "n": 2 }, { "n": 6 }])
    );
    let skipped = world
        .state
        .nodes()
        .filter(|node| node.status == NodeStatus::Skipped)
        .count();
    assert_eq!(skipped, 1);
}

#[test]
fn a_failed_item_fails_the_run() {
    let mut world = World::started(plan(&each_item(2)));
    assert_eq!(
        finish(&mut world, "0", Err(NodeError::new("HTTP_ERROR", "no"))),
        ["failed 3"]
    );
    let last = finish(&mut world, "1", Ok(json!({})));
    assert_eq!(last, ["completed 3", "cancelled 2", "run failed"]);
}

#[test]
fn a_tolerant_splitter_goes_on_without_the_item() {
    let mut graph = each_item(3);
    set_config(&mut graph, 2, json!({ "onError": "continue" }));
    let mut world = World::started(plan(&graph));
    let failed = finish(&mut world, "1", Err(NodeError::new("HTTP_ERROR", "no hunter2")));
    assert_eq!(failed, ["failed 3", "item end 2/1"]);
    finish(&mut world, "0", Ok(json!({})));
    finish(&mut world, "2", Ok(json!({})));
    let errors = json!([{ "index": 1, "nodeId": 3, "code": "HTTP_ERROR", "message": "no ***" }]);
    assert_eq!(world.state.output(4).unwrap()["errors"], errors);
    assert_eq!(world.state.output(4).unwrap()["count"], 2);
    assert_eq!(world.finished, Some((Outcome::Succeeded, None)));
}

#[test]
fn a_failed_item_takes_what_it_has_in_flight_with_it() {
    let mut graph =
        graph("1:manual_trigger 2:splitter 3:call 4:wait 5:call 6:aggregator(2) | 1-2 2-3 2-4 2-5 3-6 4-6");
    set_params(&mut graph, 2, json!({ "items": [1] }));
    set_params(&mut graph, 4, json!({ "amount": 1, "unit": "days" }));
    set_config(&mut graph, 2, json!({ "onError": "continue" }));
    let mut world = World::started(plan(&graph));
    let events = names(&world.finish(3, Err(NodeError::new("HTTP_ERROR", "no"))));
    let expected = [
        "failed 3",
        "cancelled 4",
        "cancelled 5",
        "item end 2/0",
        "completed 2",
        "completed 6",
        "run succeeded",
    ];
    assert_eq!(events, expected);
    assert!(world.timers.is_empty() && world.executing.is_empty());
}

#[test]
fn scopes_nest() {
    let nodes = "1:manual_trigger 2:splitter 3:splitter 4:set 5:aggregator(3) 6:aggregator(2)";
    let mut graph = graph(&format!("{nodes} | 1-2 2-3 3-4 4-5 5-6"));
    set_params(&mut graph, 2, json!({ "items": [[1, 2], [3]] }));
    set_params(&mut graph, 3, json!({ "items": "{{2.item}}" }));
    set_params(
        &mut graph,
        4,
        json!({ "fields": { "n": "{{$item}}", "outer": "{{2.index}}" } }),
    );
    set_params(&mut graph, 6, json!({ "of": 2, "collect": "{{5.items}}" }));
    let world = World::started(plan(&graph));
    let expected = json!([[{ "n": 1, "outer": 0 }, { "n": 2, "outer": 0 }], [{ "n": 3, "outer": 1 }]]);
    assert_eq!(world.state.output(6).unwrap()["items"], expected);
    let iterations: Vec<_> = world
        .state
        .nodes()
        .filter(|node| node.node.id == 4)
        .map(|node| node.iteration.to_string())
        .collect();
    assert_eq!(iterations, ["0.0", "0.1", "1.0"]);
}

#[test]
fn a_region_without_aggregator_ends_with_its_items() {
    let mut graph = graph("1:manual_trigger 2:splitter 3:set | 1-2 2-3");
    set_params(&mut graph, 2, json!({ "items": [1, 2] }));
    let world = World::started(plan(&graph));
    assert_eq!(world.state.status(), RunStatus::Succeeded);
    assert_eq!(**world.state.output(2).unwrap(), json!({ "count": 2 }));
}

#[test]
fn a_splitter_that_fails_takes_its_error_edge() {
    let mut graph = graph("1:manual_trigger 2:splitter 3:set 4:aggregator(2) 5:set | 1-2 2-3 3-4 2-5-error");
    set_params(&mut graph, 2, json!({ "items": "{{1.nothing}}" }));
    let world = World::started(plan(&graph));
    assert_eq!(
        names(&world.journal)[2..],
        ["failed 2", "completed 5", "skipped 4", "run succeeded"]
    );
}

#[test]
fn a_run_of_many_items_is_divided_into_steps() {
    let mut graph = graph("1:manual_trigger 2:splitter 3:set 4:aggregator(2) | 1-2 2-3 3-4");
    let items: Vec<u32> = (0..2_000).collect();
    set_params(&mut graph, 2, json!({ "items": items, "concurrency": 10 }));
    set_params(&mut graph, 3, json!({ "fields": { "n": "{{$item}}" } }));
    let world = World::started(plan(&graph));
    assert_eq!(world.state.output(4).unwrap()["count"], 2_000);
    assert_eq!(world.state.output(4).unwrap()["items"][1_999]["n"], 1_999);
}

#[test]
fn a_run_holds_so_much_and_no_more() {
    let mut graph = each_item(2);
    let items: Vec<u32> = (0..100).collect();
    set_params(&mut graph, 2, json!({ "items": items, "concurrency": 2 }));
    let mut world = World::started(plan(&graph));
    let large = json!({ "text": "x".repeat(4 << 20) });
    let mut finished = 0;
    while world.finished.is_none() {
        finish(&mut world, &finished.to_string(), Ok(large.clone()));
        finished += 1;
    }
    let (outcome, failure) = world.finished.clone().unwrap();
    let failure = failure.unwrap();
    assert_eq!((outcome, &*failure.code), (Outcome::Failed, "RUN_TOO_LARGE"));
    assert!(failure.message.contains("128 MiB"), "{failure}");
    // Each output is held twice: as the node's, and as what is collected of its item.
    assert_eq!(finished, 16);
    world.recover();
}

#[test]
fn console_output_of_a_run_is_bounded() {
    let mut graph = each_item(1);
    let items: Vec<u32> = (0..20).collect();
    set_params(&mut graph, 2, json!({ "items": items }));
    let mut world = World::started(plan(&graph));
    for index in 0..20 {
        let (key, attempt) = (world.executing[0].key.clone(), world.executing[0].attempt);
        let lines = vec![LogLine {
            level: LogLevel::Info,
            message: "x".repeat(1 << 20),
        }];
        world.input(Input::NodeLogged { key, attempt, lines });
        finish(&mut world, &index.to_string(), Ok(json!({})));
    }
    assert_eq!(world.state.status(), RunStatus::Succeeded);
    let logs = world.state.nodes().filter(|node| node.node.id == 3);
    let lengths: Vec<usize> = logs.map(|node| node.log[0].message.len()).collect();
    assert!(
        lengths[..15].iter().all(|length| *length == 1 << 20),
        "{lengths:?}"
    );
    assert!(lengths[15..].iter().all(|length| *length < 100), "{lengths:?}");
}

#[test]
fn retrying_inside_a_scope_begins_the_scope_anew() {
    let mut world = World::started(plan(&each_item(3)));
    finish(&mut world, "0", Ok(json!({})));
    finish(&mut world, "1", Err(NodeError::new("HTTP_ERROR", "no")));
    finish(&mut world, "2", Ok(json!({})));
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.finished = None;
    let events = names(&world.input(Input::RetryNode(3)));
    assert_eq!(events[..3], ["resumed 3", "opened 2", "item 2/0"]);
    for index in 0..3 {
        finish(&mut world, &index.to_string(), Ok(json!({ "again": index })));
    }
    assert_eq!(world.state.output(4).unwrap()["count"], 3);
    assert_eq!(world.state.status(), RunStatus::Succeeded);
    world.recover();
}

const SEARCH: &str = "1:manual_trigger 2:search 3:call 4:aggregator(2) 5:set | 1-2 2-3 3-4 4-5";

fn each_found() -> Graph {
    let mut graph = graph(SEARCH);
    set_params(
        &mut graph,
        3,
        json!({ "body": { "item": "{{$item}}", "index": "{{$index}}", "id": "{{2.id}}" } }),
    );
    graph
}

#[test]
fn a_module_that_gives_several_things_opens_a_scope() {
    let mut world = World::started(plan(&each_found()));
    let found = names(&world.finish(2, Ok(json!([{ "id": "a" }, "b"]))));
    assert_eq!(found, ["opened 2", "item 2/0", "started 3"]);
    assert_eq!(
        world.executing[0].request,
        json!({ "item": { "id": "a" }, "index": 0, "id": "a" })
    );
    finish(&mut world, "0", Ok(json!({ "n": 0 })));
    // What is no object is wrapped, as every output is.
    assert_eq!(
        world.executing[0].request,
        json!({ "item": { "value": "b" }, "index": 1, "id": null })
    );
    finish(&mut world, "1", Ok(json!({ "n": 1 })));
    assert_eq!(world.state.status(), RunStatus::Succeeded);
    assert_eq!(**world.state.output(2).unwrap(), json!({ "count": 2 }));
    let collected = json!({ "items": [{ "n": 0 }, { "n": 1 }], "count": 2, "errors": [] });
    assert_eq!(**world.state.output(4).unwrap(), collected);
}

#[test]
fn what_was_found_is_not_searched_for_again() {
    let mut world = World::started(plan(&each_found()));
    world.recover();
    assert_eq!(world.executing[0].key.node, 2, "nothing was found yet");
    world.finish(2, Ok(json!([{ "id": "a" }, { "id": "b" }])));
    world.recover();
    let executing: Vec<i64> = world.executing.iter().map(|execute| execute.key.node).collect();
    assert_eq!(executing, [3]);
    finish(&mut world, "0", Ok(json!({})));
    finish(&mut world, "1", Ok(json!({})));
    assert_eq!(world.state.status(), RunStatus::Succeeded);
}

#[test]
fn a_search_may_find_one_thing_nothing_or_too_much() {
    let mut world = World::started(plan(&each_found()));
    let one = names(&world.finish(2, Ok(json!({ "id": "a" }))));
    assert_eq!(one, ["opened 2", "item 2/0", "started 3"]);
    let mut world = World::started(plan(&each_found()));
    let nothing = names(&world.finish(2, Ok(json!([]))));
    assert_eq!(
        nothing,
        [
            "opened 2",
            "completed 2",
            "completed 4",
            "completed 5",
            "run succeeded"
        ]
    );
    let mut world = World::started(plan(&each_found()));
    world.finish(2, Ok(Value::Array(vec![json!({}); 10_001])));
    let failure = world.finished.unwrap().1.unwrap();
    assert!(failure.message.contains("at most 10000"), "{}", failure.message);
}

#[test]
fn a_search_that_was_cancelled_is_recorded_and_opens_nothing() {
    let mut world = World::started(plan(&each_found()));
    let search = world.executing[0].clone();
    world.input(Input::Cancel);
    let late = world.input(Input::NodeFinished {
        key: search.key,
        attempt: search.attempt,
        result: Ok(json!([{ "id": "a" }])),
    });
    assert_eq!(names(&late), ["completed 2"]);
    assert_eq!(world.finished.unwrap().0, Outcome::Cancelled);
}

#[test]
fn a_kind_tries_again_by_itself_after_temporary_failures_only() {
    let temporary = || NodeError {
        temporary: true,
        ..NodeError::new("HTTP_ERROR", "busy")
    };
    let mut world = World::started(plan(&each_found()));
    assert_eq!(names(&world.finish(2, Err(temporary()))), ["retrying 2"]);
    world.fire();
    let lasting = names(&world.finish(2, Err(NodeError::new("HTTP_ERROR", "no"))));
    assert_eq!(lasting, ["failed 2", "run failed"]);
    // What the node says itself is for every failure.
    let mut graph = each_found();
    set_config(
        &mut graph,
        2,
        json!({ "retry": { "maxAttempts": 2, "delayMs": 10 } }),
    );
    let mut world = World::started(plan(&graph));
    let first = names(&world.finish(2, Err(NodeError::new("HTTP_ERROR", "no"))));
    assert_eq!(first, ["retrying 2"]);
    world.fire();
    assert_eq!(
        names(&world.finish(2, Err(temporary()))),
        ["failed 2", "run failed"]
    );
}
