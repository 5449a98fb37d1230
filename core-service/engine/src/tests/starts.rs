//! Where runs start.

use std::sync::Arc;

use serde_json::json;

use crate::start::{Start, StartError, StartFrom};
use crate::step::Input;
use crate::testing::world::World;
use crate::testing::{graph, names, plan, set_config};

fn starts(text: &str, from: StartFrom) -> Result<Vec<i64>, StartError> {
    plan(&graph(text)).start_nodes(&from)
}

#[test]
fn by_hand_the_manual_trigger_comes_first() {
    let triggers = "1:schedule_trigger 2:manual_trigger 3:workflow_trigger 4:set | 1-4 2-4 3-4";
    assert_eq!(starts(triggers, StartFrom::Manual), Ok(vec![2]));
    assert_eq!(
        starts("1:schedule_trigger 3:workflow_trigger |", StartFrom::Manual),
        Ok(vec![1])
    );
    assert_eq!(
        starts("1:set 2:set 3:set | 1-3", StartFrom::Manual),
        Ok(vec![1, 2])
    );
    assert_eq!(starts("|", StartFrom::Manual), Err(StartError::NothingToStart));
}

#[test]
fn a_trigger_is_chosen_by_how_the_run_was_started() {
    let triggers = "1:manual_trigger 2:schedule_trigger 3:workflow_trigger |";
    assert_eq!(
        starts(triggers, StartFrom::Kind("schedule_trigger".into())),
        Ok(vec![2])
    );
    assert_eq!(
        starts(triggers, StartFrom::Kind("webhook_trigger".into())),
        Ok(vec![1])
    );
    assert_eq!(starts(triggers, StartFrom::Trigger(3)), Ok(vec![3]));
    assert_eq!(
        starts(triggers, StartFrom::Trigger(4)),
        Err(StartError::UnknownNode(4))
    );
    assert_eq!(
        starts("1:set |", StartFrom::Trigger(1)),
        Err(StartError::NotATrigger(1))
    );
}

#[test]
fn disabled_triggers_do_not_start_runs() {
    let mut graph = graph("1:manual_trigger |");
    set_config(&mut graph, 1, json!({ "disabled": true }));
    assert_eq!(
        plan(&graph).start_nodes(&StartFrom::Manual),
        Err(StartError::NothingToStart)
    );
}

#[test]
fn the_trigger_gives_the_input() {
    let mut world = World::new(plan(&graph("1:manual_trigger |")));
    let start = Start {
        input: Arc::new(json!({ "body": 1 })),
        ..Start::manual()
    };
    world.input(Input::Start(start.clone()));
    assert_eq!(**world.state.output(1).unwrap(), json!({ "body": 1 }));
    assert_eq!(world.state.credits_used(), 0);
    assert!(world.try_input(Input::Start(start)).is_err());
}

#[test]
fn an_input_that_is_no_object_is_wrapped() {
    let mut world = World::new(plan(&graph("1:manual_trigger |")));
    let start = Start {
        input: Arc::new(json!([1])),
        ..Start::manual()
    };
    world.input(Input::Start(start));
    assert_eq!(**world.state.output(1).unwrap(), json!({ "value": [1] }));
}

#[test]
fn what_another_trigger_leads_to_is_not_waited_for() {
    let world = World::started(plan(&graph(
        "1:manual_trigger 2:schedule_trigger 3:set 4:set | 1-3 2-3 2-4",
    )));
    assert_eq!(
        names(&world.journal),
        ["run started", "completed 1", "completed 3", "run succeeded"]
    );
}

#[test]
fn a_scoped_run_starts_at_its_node_with_seeds_above() {
    let mut graph = graph("1:manual_trigger 2:set 3:set 4:set 5:set | 1-2 2-3 3-4 1-5 5-4");
    set_config(&mut graph, 3, json!({ "disabled": true }));
    let mut world = World::new(plan(&graph));
    let seeds = vec![
        (2, Arc::new(json!({ "seeded": 2 }))),
        (4, Arc::new(json!({ "ignored": true }))),
    ];
    world.input(Input::Start(Start {
        from: StartFrom::Node(3),
        seeds,
        ..Start::manual()
    }));
    assert_eq!(
        names(&world.journal),
        ["run started", "completed 3", "completed 4", "run succeeded"]
    );
    assert_eq!(**world.state.output(3).unwrap(), json!({ "seeded": 2 }));
    assert_eq!(**world.state.output(4).unwrap(), json!({}));
}

#[test]
fn a_seed_for_the_trigger_is_its_output() {
    let mut world = World::new(plan(&graph("1:webhook_trigger 2:set | 1-2")));
    let seeds = vec![(1, Arc::new(json!({ "body": 7 })))];
    world.input(Input::Start(Start {
        seeds,
        ..Start::manual()
    }));
    assert_eq!(**world.state.output(1).unwrap(), json!({ "body": 7 }));
}

#[test]
fn seeds_name_nodes_that_exist() {
    let mut world = World::new(plan(&graph("1:set |")));
    let seeds = vec![(7, Arc::new(json!({})))];
    let refused = world.try_input(Input::Start(Start {
        seeds,
        ..Start::manual()
    }));
    assert_eq!(refused, Err(StartError::UnknownNode(7).into()));
    assert!(world.journal.is_empty());
}
