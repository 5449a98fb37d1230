//! Joins, skipping, filters, fallback edges, conditions and disabled nodes.

use serde_json::{Value, json};

use crate::state::NodeStatus;
use crate::testing::world::World;
use crate::testing::{graph, names, plan, set_config, set_filter, set_params};

fn constant(holds: bool) -> Value {
    json!({ "any": [{ "all": [{ "left": holds, "operator": "is_true" }] }] })
}

fn status(world: &World, node: i64) -> NodeStatus {
    let found = world.state.nodes().find(|report| report.node.id == node);
    found.map_or(NodeStatus::Pending, |report| report.status)
}

#[test]
fn a_join_runs_once_when_all_its_edges_are_decided() {
    let graph = graph("1:manual_trigger 2:call 3:call 4:set | 1-2 1-3 2-4 3-4");
    let mut world = World::started(plan(&graph));
    assert_eq!(names(&world.finish(3, Ok(json!({})))), ["completed 3"]);
    assert_eq!(
        names(&world.finish(2, Ok(json!({})))),
        ["completed 2", "completed 4", "run succeeded"]
    );
}

#[test]
fn a_join_with_one_dead_edge_still_runs() {
    let mut graph = graph("1:manual_trigger 2:set 3:set 4:set | 1-2 1-3 2-4 3-4");
    set_filter(&mut graph, "1-2", constant(false));
    let world = World::started(plan(&graph));
    let expected = [
        "run started",
        "completed 1",
        "skipped 2",
        "completed 3",
        "completed 4",
        "run succeeded",
    ];
    assert_eq!(names(&world.journal), expected);
}

#[test]
fn skipping_spreads_until_something_delivers() {
    let mut graph = graph("1:manual_trigger 2:set 3:set 4:set | 1-2 2-3 3-4 1-4");
    set_filter(&mut graph, "1-2", constant(false));
    let world = World::started(plan(&graph));
    let statuses: Vec<_> = (1..=4).map(|node| status(&world, node)).collect();
    use NodeStatus::{Completed, Skipped};
    assert_eq!(statuses, [Completed, Skipped, Skipped, Completed]);
    assert_eq!(world.state.edges_taken().collect::<Vec<_>>(), ["1-4"]);
}

#[test]
fn join_any_runs_at_the_first_delivery_and_ignores_the_rest() {
    let mut graph = graph("1:manual_trigger 2:call 3:call 4:call | 1-2 1-3 2-4 3-4");
    set_config(&mut graph, 4, json!({ "join": "any" }));
    let mut world = World::started(plan(&graph));
    assert_eq!(
        names(&world.finish(3, Ok(json!({})))),
        ["completed 3", "started 4"]
    );
    assert_eq!(names(&world.finish(4, Ok(json!({})))), ["completed 4"]);
    assert_eq!(
        names(&world.finish(2, Ok(json!({})))),
        ["completed 2", "run succeeded"]
    );
}

#[test]
fn join_any_is_skipped_only_when_every_edge_is_dead() {
    let mut graph = graph("1:manual_trigger 2:set 3:set 4:set | 1-2 1-3 2-4 3-4");
    set_config(&mut graph, 4, json!({ "join": "any" }));
    set_filter(&mut graph, "2-4", constant(false));
    set_filter(&mut graph, "3-4", constant(false));
    assert_eq!(status(&World::started(plan(&graph)), 4), NodeStatus::Skipped);
    set_filter(&mut graph, "3-4", constant(true));
    assert_eq!(status(&World::started(plan(&graph)), 4), NodeStatus::Completed);
}

#[test]
fn the_fallback_edge_is_taken_when_no_normal_edge_is() {
    let mut graph = graph("1:manual_trigger 2:set 3:set | 1-2 1-3-fallback");
    assert_eq!(
        World::started(plan(&graph))
            .state
            .edges_taken()
            .collect::<Vec<_>>(),
        ["1-2"]
    );
    set_filter(&mut graph, "1-2", constant(false));
    assert_eq!(
        World::started(plan(&graph))
            .state
            .edges_taken()
            .collect::<Vec<_>>(),
        ["1-3-fallback"]
    );
}

#[test]
fn a_condition_takes_the_first_edge_or_all() {
    let mut graph = graph("1:condition 2:set 3:set 4:set 5:set | 1-2 1-3 1-4 1-5-fallback");
    set_filter(&mut graph, "1-2", constant(false));
    for (edge, order) in graph.edges.iter_mut().zip([0, 2, 1, 0]) {
        edge.order = order;
    }
    let all = World::started(plan(&graph));
    assert_eq!(
        **all.state.output(1).unwrap(),
        json!({ "matched": ["1-4", "1-3"] })
    );
    set_params(&mut graph, 1, json!({ "mode": "first" }));
    let first = World::started(plan(&graph));
    assert_eq!(**first.state.output(1).unwrap(), json!({ "matched": ["1-4"] }));
    for id in ["1-3", "1-4"] {
        set_filter(&mut graph, id, constant(false));
    }
    let none = World::started(plan(&graph));
    assert_eq!(
        **none.state.output(1).unwrap(),
        json!({ "matched": ["1-5-fallback"] })
    );
}

#[test]
fn a_disabled_node_passes_its_input_through_and_costs_nothing() {
    let mut graph = graph("1:manual_trigger 2:set 3:call | 1-2 2-3");
    set_params(&mut graph, 2, json!({ "fields": { "a": 1 } }));
    set_config(&mut graph, 3, json!({ "disabled": true }));
    let world = World::started(plan(&graph));
    assert_eq!(**world.state.output(3).unwrap(), json!({ "a": 1 }));
    assert_eq!(world.state.credits_used(), 1);
    assert!(world.executing.is_empty());
}

#[test]
fn the_input_of_a_join_is_an_object_by_node_id() {
    let mut graph = graph("1:manual_trigger 2:set 3:set 4:set | 1-2 1-3 2-4 3-4");
    set_params(&mut graph, 2, json!({ "fields": { "a": 1 } }));
    set_params(&mut graph, 3, json!({ "fields": { "b": 2 } }));
    set_config(&mut graph, 4, json!({ "disabled": true }));
    let world = World::started(plan(&graph));
    assert_eq!(
        **world.state.output(4).unwrap(),
        json!({ "2": { "a": 1 }, "3": { "b": 2 } })
    );
}
