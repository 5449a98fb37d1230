//! A backup under load and its restore, by the commands of docs/operations.md as they stand there.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use test_support::{ShowLog, binary, text, workload};
use tokio::sync::watch;

use super::Own;

/// Seconds that each run waits: long enough to be under way when the backup begins.
const WAIT: f64 = 2.0;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_a_backup_is_restored() {
    let mut own = Own::sqlite().await;
    let api = own.server.first_api();
    let workflow = api.workflow_with("Backup", workload::graph_with_wait(WAIT)).await;
    api.go_live(&workflow).await;
    let hook = api.mint(&workflow, 1).await;
    let body: Value = serde_json::from_str(&workload::body()).unwrap();
    let directory = own.server.data_dir().parent().unwrap().to_owned();
    std::fs::create_dir(directory.join("safe-place")).unwrap();

    let (acknowledged, mut seen) = watch::channel(Vec::<String>::new());
    let (stop, stopped) = watch::channel(false);
    let calls = async {
        while !*stopped.borrow() {
            let answer = api.call_hook(&hook, &[], body.clone()).await.data(202);
            acknowledged.send_modify(|ids| ids.push(text(&answer["runId"])));
        }
    };
    let backs_up = async {
        seen.wait_for(|ids| ids.len() >= 200).await.unwrap();
        let before = seen.borrow().clone();
        let directory = directory.clone();
        tokio::task::spawn_blocking(move || run(&directory, &commands("Back up")))
            .await
            .unwrap();
        stop.send_replace(true);
        before
    };
    let ((), before) = tokio::join!(calls, backs_up);
    let later = api.workflow("Later").await;

    own.server.terminate().await;
    run(&directory, &commands("Restore"));
    own.server.restart().await;
    let _log = ShowLog(&own.server);
    for run_id in &before {
        assert_eq!(api.ended(run_id).await["status"], "succeeded", "{run_id}");
    }
    api.get(format!("/workflows/{later}"))
        .await
        .error(404, "NOT_FOUND");
    let accepted = api.call_hook(&hook, &[], body).await.data(202);
    assert_eq!(accepted["accepted"], json!(true));
}

/// The shell block of a section.
fn commands(heading: &str) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let block = section.and_then(|section| section.split("```sh\n").nth(1));
    let block = block.unwrap_or_else(|| panic!("{heading} has no shell block"));
    block.split("```").next().unwrap_or_default().to_owned()
}

/// Types commands where the data directory is.
fn run(directory: &Path, commands: &str) {
    let binaries = binary("switchyard");
    let path = format!("{}:/usr/bin:/bin", binaries.parent().unwrap().display());
    let output = Command::new("sh")
        .args(["-euc", commands])
        .current_dir(directory)
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{commands}\n{said}");
}
