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
fn manifests_are_checked_without_a_server() {
    let apps = concat!(env!("CARGO_MANIFEST_DIR"), "/src/connectors/apps");
    let right = format!("{apps}/github.yaml");
    let output = switchyard(&["manifest", "check", &right]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("tests passed"),
        "{output:?}"
    );
    let wrong = std::env::temp_dir().join(format!("switchyard-manifest-{}.yaml", std::process::id()));
    let text = std::fs::read_to_string(&right).expect("a manifest");
    std::fs::write(&wrong, text.replacen("type: search", "type: serch", 1)).expect("a file");
    let output = switchyard(&["manifest", "check", &wrong.display().to_string()]);
    std::fs::remove_file(&wrong).expect("the file is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("serch") && said.contains("line"),
        "{said}"
    );
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
