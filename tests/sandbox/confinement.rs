//! What the kernel refuses a worker, and that no worker outlives its parent.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use test_support::{Server, ServerOptions, binary, graphs, until};

#[test]
fn a_worker_has_no_files_no_network_and_no_processes() {
    let probe = Command::new(binary("switchyard"))
        .args(["sandbox-worker", "--probe"])
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&probe.stdout).unwrap();
    for attempt in ["readFile", "writeFile", "openSocket", "startProcess"] {
        let outcome = told[attempt].as_str().unwrap();
        assert!(
            outcome.contains("not permitted") || outcome.contains("Too many open files"),
            "{attempt}: {told}"
        );
    }
    assert!(!Path::new("/tmp/switchyard-probe").exists());
    // What this machine does not have, its operator is told; a build machine has all of it.
    assert_eq!(told["missing"], json!([]), "{told}");
}

#[tokio::test]
async fn workers_end_with_a_server_that_is_killed() {
    let mut server = Server::start(ServerOptions::default()).await;
    let api = server.first_api();
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("js_code", json!({ "code": "for (;;) {}", "timeoutMs": 60_000 })),
    ]);
    let workflow = api.workflow_with("endless", flow).await;
    let run = api.start(&workflow, json!({})).await;
    // It runs once some worker has used processor time.
    let busy = until(async || {
        children(server.pid())
            .into_iter()
            .any(|child| ticks(child) > 20)
            .then_some(())
    });
    assert!(busy.await.is_some(), "no worker runs {run}");
    let workers = children(server.pid());
    assert!(workers.len() > 1, "one at work, and spares: {workers:?}");
    server.kill_hard();
    let gone = until(async || workers.iter().all(|worker| is_gone(*worker)).then_some(()));
    assert!(gone.await.is_some(), "workers outlive their server: {workers:?}");
}

/// The processes that any thread of this one has started.
fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let listed: Vec<String> = listed.collect();
    listed
        .iter()
        .flat_map(|line| line.split_whitespace())
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// Processor time in the kernel's ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    const USER_TIME: usize = 11;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().nth(USER_TIME).map(str::parse);
    ticks.and_then(Result::ok).unwrap_or(0)
}

/// Whether a process has ended; one that nobody has buried yet has.
fn is_gone(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    }
}
