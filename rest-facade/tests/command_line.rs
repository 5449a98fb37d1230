//! What the binary says in a terminal. That this test is here also makes `cargo test` build the binary.

use std::process::Command;

#[test]
fn help_names_what_it_needs() {
    let run = Command::new(env!("CARGO_BIN_EXE_rest-facade"))
        .arg("--help")
        .output();
    let output = run.expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    let help = String::from_utf8_lossy(&output.stdout);
    for option in ["--core", "--listen"] {
        assert!(help.contains(option), "no {option} in:\n{help}");
    }
}
