//! The suite of scenarios (`tests/engine`), run by the engine alone in simulated time.

#![allow(clippy::unwrap_used, reason = "tests")]

mod kinds;
mod surroundings;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::kind::Registry;
use scenarios::{Scenario, differences, mutants};
use world::{Crashes, World};

/// The product's kinds that the engine only commands.
const REACHING_OUTSIDE: [&str; 13] = [
    "database_delete",
    "database_get",
    "database_insert",
    "database_query",
    "database_update",
    "database_upsert",
    "function_call",
    "http_request",
    "human_input",
    "js_code",
    "run_workflow",
    "structure_validate",
    "variable_set",
];

/// Shows all scenarios that fail, not the first alone.
fn each(check: impl Fn(&Scenario) -> Vec<String>) {
    let mut failed = Vec::new();
    for scenario in scenarios::all() {
        let found = catch_unwind(AssertUnwindSafe(|| check(&scenario)));
        let found = found.unwrap_or_else(|_| vec!["a panic, which is shown above".to_owned()]);
        if !found.is_empty() {
            failed.push(format!("{}: {}", scenario.name, found.join("\n    ")));
        }
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[test]
fn every_scenario_happens_as_it_is_told() {
    each(|scenario| differences(&scenario.expect, &World::run(scenario, Crashes::Never)));
}

#[test]
fn every_scenario_happens_so_when_the_process_crashes_all_the_time() {
    each(|scenario| differences(&scenario.expect, &World::run(scenario, Crashes::AfterEachStep)));
}

#[test]
fn every_expectation_can_fail() {
    each(|scenario| {
        let seen = World::run(scenario, Crashes::Never);
        let mutants = mutants(&scenario.expect).into_iter();
        let unnoticed = mutants.filter(|mutant| differences(mutant, &seen).is_empty());
        unnoticed
            .map(|mutant| format!("nobody notices {mutant}"))
            .collect()
    });
}

#[test]
fn the_suite_covers_every_kind() {
    let scenarios = scenarios::all();
    assert!(scenarios.len() >= 80, "only {} scenarios", scenarios.len());
    let drawn = scenarios.iter().flat_map(|scenario| scenario.nodes.values());
    let drawn: BTreeSet<&str> = drawn.map(|node| node.kind.as_str()).collect();
    let kinds = Registry::pure();
    let pure = kinds.iter().map(|kind| kind.spec.kind.as_str());
    let known: BTreeSet<&str> = pure.chain(REACHING_OUTSIDE).collect();
    let missing: Vec<_> = known.difference(&drawn).collect();
    assert!(missing.is_empty(), "no scenario has {missing:?}");
    let shown: BTreeSet<&str> = scenarios.iter().map(|scenario| scenario.shows.as_str()).collect();
    assert_eq!(shown.len(), scenarios.len(), "two scenarios show the same");
}
