//! How many runs a second the runtime starts and finishes, without HTTP, and what one costs.
//!
//! The workflow is the common one: a webhook trigger, a `set` with three expressions, a condition, another `set`. Runs
//! are started by concurrent callers, as webhooks would, on SQLite with `synchronous=FULL` in a temporary directory.
//! `SWITCHYARD_BENCH_RUNS` and `SWITCHYARD_BENCH_CALLERS` change the load, `SWITCHYARD_BENCH_DATABASE_URL` the database.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on must stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use core_service::nodes::Registry;
use core_service::runtime::{GraphRef, NoSurroundings, Runtime, RuntimeConfig, StartRun, Trigger};
use core_service::store::{Actor, DatabaseUrl, Founding, Graph, RunStatus, Store};
use engine::graph::Needs;
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};
use test_support::TemporaryDirectory;

fn main() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio.block_on(measure());
}

async fn measure() {
    let directory = TemporaryDirectory::new("bench").unwrap();
    let url = match std::env::var("SWITCHYARD_BENCH_DATABASE_URL") {
        Ok(url) => url.parse().unwrap(),
        Err(_) => DatabaseUrl::Sqlite(directory.path().join("bench.db")),
    };
    let store = Store::open(&url).await.unwrap();
    let organization = store
        .found_organization(
            &Actor::default(),
            &Founding {
                name: "Bench",
                plan_id: "unlimited",
                owner_email: "bench@example.com",
                key: None,
            },
        )
        .await
        .unwrap();
    let registry = Arc::new(Registry::new());
    let runtime = Runtime::start(
        store.clone(),
        registry,
        Arc::new(NoSurroundings),
        RuntimeConfig::default(),
    );
    let runtime = runtime.await.unwrap();
    let mut start = start(organization.organization_id);

    // The first start stores the graph and compiles it.
    let first = runtime.start_run(start.clone()).await.unwrap();
    start.graph = GraphRef::Stored(start.graph.content_hash().to_owned());
    let output = first
        .ended
        .and_then(|state| state.last_output().cloned())
        .unwrap();
    assert_eq!(*output, json!({ "summary": "ada paid 42 for 2" }));

    let (runs, callers) = (setting("RUNS", 50_000), setting("CALLERS", 64));
    let (cpu_before, before, began) = (cpu_time(), runtime.metrics(), Instant::now());
    let left = Arc::new(AtomicUsize::new(runs));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(call(runtime.clone(), start.clone(), Arc::clone(&left)));
    }
    let mut latencies: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let (took, after) = (began.elapsed(), runtime.metrics());

    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let commits = after.commits - before.commits;
    println!(
        "{runs} runs by {callers} callers in {took:.2?}: {:.0} runs/s",
        runs as f64 / took.as_secs_f64()
    );
    println!(
        "latency: median {:.2?}, 99 % {:.2?}, longest {:.2?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    if let (Some(before), Some(after)) = (cpu_before, cpu_time()) {
        println!(
            "CPU: {:.3} ms a run",
            (after - before).as_secs_f64() * 1000.0 / runs as f64
        );
    }
    println!(
        "{commits} commits of {:.1} runs, {:.2} ms each",
        runs as f64 / commits as f64,
        (after.commit_micros - before.commit_micros) as f64 / 1000.0 / commits as f64,
    );
    let run = store.run(&start.organization_id, &first.run_id).await.unwrap();
    assert_eq!(run.status, RunStatus::Succeeded);
    assert_eq!(after.runs_succeeded - before.runs_succeeded, runs as u64);
    runtime.drain(Duration::from_secs(5)).await;
}

/// Starts runs one after the other until none is left; gives how long each took.
async fn call(runtime: Runtime, start: StartRun, left: Arc<AtomicUsize>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let take = |left: usize| left.checked_sub(1);
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .is_ok()
    {
        let began = Instant::now();
        // Each delivery is a body of its own.
        let mut start = start.clone();
        start.start.input = Arc::new(body());
        assert!(runtime.start_run(start).await.unwrap().ended.is_some());
        latencies.push(began.elapsed());
    }
    latencies
}

fn setting(name: &str, default: usize) -> usize {
    let value = std::env::var(format!("SWITCHYARD_BENCH_{name}"));
    value.map_or(default, |value| value.parse().unwrap())
}

/// User and system time of this process, where the system tells (in hundredths of a second).
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn body() -> Value {
    json!({
        "body": { "name": "Ada", "amount": 21, "count": 2, "paid": true },
        "headers": { "content-type": "application/json" }, "query": {}, "method": "POST",
    })
}

fn start(organization_id: String) -> StartRun {
    let node = |id: i64, kind: &str, params: Value| {
        json!({
            "id": id, "appId": "native", "moduleSlug": kind, "kind": kind, "name": kind, "x": 0, "y": 0,
            "params": params,
        })
    };
    let fields = json!({
        "name": "{{lower(1.body.name)}}", "total": "{{1.body.amount * 1.body.count}}", "paid": "{{1.body.paid}}",
    });
    let summary = json!({ "summary": "{{2.name}} paid {{2.total}} for {{1.body.count}}" });
    let graph: engine::graph::Graph = serde_json::from_value(json!({
        "nodes": [
            node(1, "webhook_trigger", json!({})),
            node(2, "set", json!({ "fields": fields })),
            node(3, "condition", json!({})),
            node(4, "set", json!({ "fields": summary })),
        ],
        "edges": [
            { "id": "1-2", "from": 1, "to": 2 },
            { "id": "2-3", "from": 2, "to": 3 },
            { "id": "3-4", "from": 3, "to": 4, "filter": "{{2.paid and 2.total > 10}}" },
        ],
    }))
    .unwrap();
    StartRun {
        organization_id,
        workflow_id: "wf_00000000000000000000000001".to_owned(),
        workflow_name: "Bench".to_owned(),
        graph: GraphRef::Frozen(Graph {
            content_hash: graph.content_hash(&Needs::default()),
            bytes: graph.canonical_json(&Needs::default()).into_bytes(),
        }),
        version_no: Some(1),
        start: Start {
            from: StartFrom::Trigger(1),
            input: Arc::new(body()),
            ..Start::manual()
        },
        trigger: Trigger {
            kind: "webhook".to_owned(),
            node_id: Some(1),
            webhook_id: Some("wh_1".to_owned()),
            parent_run_id: None,
        },
        idempotency: None,
        tick: None,
        lineage: Default::default(),
        created_by: None,
        actor: None,
        metered: false,
    }
}
