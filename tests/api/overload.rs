//! More than the service can do at once: it says so, and loses nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use test_support::{Api, Server, ServerOptions, ShowLog, text, until, wire, workload};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// How many call at once; 10,000 take as many open files here and as many in the server.
const CROWD: &str = "SWITCHYARD_TEST_CROWD";
const CROWD_OF_EVERY_DAY: usize = 2_000;
/// What the server may have taken at any time.
const MOST_MEMORY_KIB: u64 = 1 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer to a call.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

#[tokio::test]
async fn a_crowd_on_sqlite() {
    crowd(ServerOptions::default()).await;
}

#[tokio::test]
async fn a_crowd_on_postgres() {
    let Some(database) = test_support::postgres_or_skip("a crowd of webhooks").await else {
        return;
    };
    crowd(ServerOptions {
        database_url: Some(database.url.clone()),
        ..ServerOptions::default()
    })
    .await;
}

/// Every call is accepted or told to come again; each run that was accepted is there and ends well, and no other is.
async fn crowd(options: ServerOptions) {
    let server = Server::start(options).await;
    let _log = ShowLog(&server);
    let api = server.first_api();
    let workflow = api.workflow_with("Crowd", workload::graph()).await;
    api.go_live(&workflow).await;
    let path = format!("/hooks/{}", api.mint(&workflow, 1).await);
    let answers = all_at_once(&server, &path, size()).await;

    let mut accepted = HashSet::new();
    let mut counts: HashMap<u16, usize> = HashMap::new();
    for answer in &answers {
        *counts.entry(answer.status).or_default() += 1;
        match answer.status {
            202 => {
                let body: Value = serde_json::from_slice(&answer.body).unwrap();
                assert!(
                    accepted.insert(text(&body["data"]["runId"])),
                    "two calls, one run"
                );
            }
            429 | 503 => {
                let head = answer.head.to_lowercase();
                assert!(head.contains("\r\nretry-after: "), "{head}");
            }
            other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    assert!(!accepted.is_empty(), "{counts:?}");
    let runs = ended(&api, &workflow).await;
    let mut found = HashSet::new();
    for run in &runs {
        assert_eq!(run["status"], "succeeded", "{run}");
        found.insert(text(&run["id"]));
    }
    assert!(found == accepted, "{counts:?}, and {} runs", found.len());
    let taken = peak_memory_kib(server.pid());
    assert!(taken < MOST_MEMORY_KIB, "{taken} KiB");
    println!("{counts:?}; at most {} MiB", taken >> 10);
}

fn size() -> usize {
    let size = std::env::var(CROWD).ok();
    size.map_or(CROWD_OF_EVERY_DAY, |size| size.parse().unwrap())
}

/// Calls over so many connections, all of which are open before the first one says anything.
async fn all_at_once(server: &Server, path: &str, size: usize) -> Vec<Answer> {
    let request: Arc<[u8]> = wire::request("POST", path, &[], &workload::body()).into();
    let together = Arc::new(Barrier::new(size));
    let mut calls = JoinSet::new();
    for _ in 0..size {
        let stream = TcpStream::connect(server.rest_address()).await.unwrap();
        let (request, together) = (Arc::clone(&request), Arc::clone(&together));
        calls.spawn(async move {
            together.wait().await;
            call(stream, &request).await
        });
    }
    let answers = tokio::time::timeout(PATIENCE, calls.join_all()).await;
    answers.expect("some calls are not answered")
}

async fn call(mut stream: TcpStream, request: &[u8]) -> Answer {
    stream.write_all(request).await.unwrap();
    let mut buffer = Vec::new();
    loop {
        assert!(stream.read_buf(&mut buffer).await.unwrap() > 0, "no answer");
        if let Some(whole) = wire::whole_answer(&buffer).unwrap() {
            return Answer {
                status: whole.status,
                head: String::from_utf8_lossy(&buffer[..whole.body.start]).into_owned(),
                body: buffer[whole.body].to_vec(),
            };
        }
    }
}

/// All runs of a workflow, once none goes on.
async fn ended(api: &Api, workflow: &str) -> Vec<Value> {
    let path = format!("/runs?workflowId={workflow}&limit=200");
    let all = until(async || {
        let runs = api.all_pages(&path).await;
        let has_ended = |run: &Value| !run["finishedAt"].is_null();
        runs.iter().all(has_ended).then_some(runs)
    });
    all.await.expect("some runs go on")
}

/// The most memory that a process had at any time.
fn peak_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}
