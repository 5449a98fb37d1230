//! Runs the commands of the README's tour as they stand there, and looks at what came of them.
//!
//! The shell blocks of the section "Five minutes" are run in order, by one shell, in a directory of their own. Two
//! commands have stand-ins on the path: `cargo run --release` starts the server that is under test, in the background,
//! and `pkill -9 -x switchyard` kills that one alone. Of the text itself only the two ports are changed.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod readme;
mod shell;

use readme::Section;
use serde_json::{Value, json};
use shell::Shell;

#[test]
fn rest_and_a_crash() {
    let tour = Section::of_readme("Five minutes");
    let mut shell = Shell::new(&Section::of_readme("Start"));
    shell.run(&tour.commands_before_parts());
    shell.run(&tour.part("Build a workflow over REST").commands());
    let run = shell.run(&tour.part("Call it and read the run").commands());
    assert_finished(&last_json(&run)["data"]);

    let killed = shell.run(&tour.part("Kill it in the middle").commands());
    let runs = last_json(&killed);
    assert_eq!(runs["data"].as_array().unwrap().len(), 2, "{runs}");
    assert!(runs["next_cursor"].is_string(), "{runs}");
    let accepted = killed.matches("\"accepted\":true").count();
    assert_eq!(accepted, 20, "{killed}");
}

#[test]
fn grpc() {
    if !shell::has_grpcurl() {
        return;
    }
    let tour = Section::of_readme("Five minutes");
    let mut shell = Shell::new(&Section::of_readme("Start"));
    shell.run(&tour.commands_before_parts());
    // `order` is defined where it is used first.
    let order = tour.part("Call it and read the run").line_starting("order()");
    shell.run(&order);
    let output = shell.run(&tour.part("The same over gRPC").commands());
    assert!(output.contains("switchyard.v1.WorkflowService"), "{output}");
    assert!(output.contains("switchyard.v1.ApplyGraphOpsRequest"), "{output}");
    let report = &last_json(&output)["data"];
    assert_eq!(report["status"], "RUN_STATUS_SUCCEEDED", "{report}");
    let output: Value = serde_json::from_str(report["nodes"][1]["output"]["json"].as_str().unwrap()).unwrap();
    assert_eq!(output["total"].as_f64(), Some(234.0));
}

/// The run is the one that the README shows.
fn assert_finished(report: &Value) {
    assert_eq!(report["status"], "succeeded", "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 4, "{report}");
    for (node, id) in nodes.iter().zip(1..) {
        assert_eq!(
            (&node["nodeId"], &node["status"]),
            (&json!(id), &json!("completed")),
            "{report}"
        );
    }
    assert_eq!(nodes[0]["output"]["body"]["id"], "ord-1");
    let computed = &nodes[1]["output"];
    assert_eq!(
        (&computed["id"], &computed["name"]),
        (&json!("ord-1"), &json!("WIDGET"))
    );
    assert_eq!(computed["total"].as_f64(), Some(234.0));
    assert_eq!(nodes[2]["output"]["matched"].as_array().unwrap().len(), 1);
    assert_eq!(nodes[3]["output"]["status"], "big");
}

/// The JSON object that an output ends with.
fn last_json(output: &str) -> Value {
    let starts = output.match_indices('{').map(|(place, _)| place);
    let parsed = starts.filter_map(|place| serde_json::from_str(&output[place..]).ok());
    parsed
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("no JSON at the end of {output}"))
}
