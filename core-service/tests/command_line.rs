//! What the binary says in a terminal. That this test is here also makes `cargo test` build the binary.

use std::process::{Command, Output};

fn switchyard(arguments: &[&str]) -> Output {
    let run = Command::new(env!("CARGO_BIN_EXE_switchyard"))
        .args(arguments)
        .output();
    run.expect("the binary runs")
}

#[test]
fn help_names_each_option_and_its_variable() {
    let output = switchyard(&["serve", "--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for option in [
        "--data-dir",
        "--database-url",
        "--rest-listen",
        "--grpc-listen",
        "--master-key-file",
    ] {
        let variable = format!("SWITCHYARD_{}", option[2..].to_uppercase().replace('-', "_"));
        assert!(
            help.contains(option) && help.contains(&variable),
            "no {option} or {variable} in:\n{help}"
        );
    }
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    let output = switchyard(&["serve", "--no-such-option"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--no-such-option"),
        "{output:?}"
    );
}
