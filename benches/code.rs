//! What code nodes cost: a warm call across both process hops, and runs of ten chained `js_code` nodes. How much later than
//! its limit harmful code fails, and what another organization notices meanwhile.
//!
//! `cargo bench -p contract --bench code`. Environment: `SWITCHYARD_BENCH_RUNS` (2,000), `SWITCHYARD_BENCH_CALLERS` (32),
//! `SWITCHYARD_BENCH_CALLS` (20,000).
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "a benchmark ends when it cannot go on")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use core_service::sandbox::{Call, Form, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use test_support::{Api, Server, ServerOptions, binary, graphs};

#[tokio::main]
async fn main() {
    warm_calls().await;
    harmful_calls().await;
    chained_nodes().await;
}

/// One call after the other in a process that is there already.
async fn warm_calls() {
    let sandbox = Sandbox::start(SandboxConfig::new(binary("switchyard")))
        .await
        .unwrap();
    let calls = setting("CALLS", 20_000);
    let mut latencies = Vec::with_capacity(calls);
    for _ in 0..calls {
        let call = Call {
            code: "return input.a + 1".to_owned(),
            form: Form::AsyncBody,
            parameters: vec!["input".to_owned()],
            arguments: vec![json!({ "a": 1 })],
            limit_ms: 10_000,
        };
        let began = Instant::now();
        let outcome = sandbox.call("org_1", call, |_line| {}).await.unwrap();
        latencies.push(began.elapsed());
        assert_eq!(outcome.result, Ok(json!(2)));
    }
    show(&format!("{calls} warm calls"), latencies);
}

/// Code that never ends or wants more than there is, also where the interpreter does not look up.
const HARMFUL: [&str; 10] = [
    "for (;;) {}",
    "for (;;) await null",
    "return /^(a+)+$/.test('a'.repeat(60) + 'b')",
    "let x = 3n; for (;;) x = x * x % (2n ** 65536n - 1n)",
    "new Array(2 ** 32 - 2).indexOf(1)",
    "return new Proxy({}, { ownKeys() { for (;;) {} } })",
    "const a = []; for (;;) a.push({})",
    "const a = []; for (;;) a.push(new ArrayBuffer(2 ** 20))",
    "return 'x'.repeat(100 * 2 ** 20)",
    "for (;;) console.log('x'.repeat(1000))",
];

/// Harmful calls one after the other, then four at once beside the calls of another organization.
async fn harmful_calls() {
    const LIMIT: Duration = Duration::from_millis(300);
    let sandbox = Sandbox::start(SandboxConfig::new(binary("switchyard")))
        .await
        .unwrap();
    let call = |code: &str, limit: Duration| Call {
        code: code.to_owned(),
        form: Form::AsyncBody,
        parameters: Vec::new(),
        arguments: Vec::new(),
        limit_ms: limit.as_millis() as u64,
    };
    for code in HARMFUL {
        let mut late = Vec::new();
        for _ in 0..10 {
            let began = Instant::now();
            let outcome = sandbox
                .call("org_1", call(code, LIMIT), |_line| {})
                .await
                .unwrap();
            late.push(began.elapsed().saturating_sub(LIMIT));
            assert!(outcome.result.is_err(), "{code}");
        }
        let latest = late.iter().max().unwrap();
        println!("{latest:>9.1?} after its limit at most: {code}");
    }
    let endless = || sandbox.call("org_1", call("for (;;) {}", Duration::from_secs(60)), |_line| {});
    let flood = async { tokio::join!(endless(), endless(), endless(), endless()) };
    let others = async {
        let mut latencies = Vec::new();
        for _ in 0..1_000 {
            let began = Instant::now();
            let outcome = sandbox
                .call("org_2", call("return 1", LIMIT), |_line| {})
                .await
                .unwrap();
            latencies.push(began.elapsed());
            assert_eq!(outcome.result, Ok(json!(1)));
        }
        latencies
    };
    tokio::select! {
        _ = flood => panic!("endless code has ended"),
        latencies = others => show("1000 calls of another organization beside endless ones", latencies),
    }
}

/// Runs over REST, each of which is over when its report says so.
async fn chained_nodes() {
    let server = Server::start(ServerOptions::default()).await;
    let api = server.first_api();
    let mut nodes = vec![("manual_trigger", json!({}))];
    nodes.extend((0..10).map(|_| ("js_code", json!({ "code": "return { n: (input.n ?? 0) + 1 }" }))));
    let workflow = api.workflow_with("chain", graphs::chain(&nodes)).await;
    let first = api.start(&workflow, json!({})).await;
    assert_eq!(last_output(&api.ended(&first).await), json!({ "n": 10 }));

    let (runs, callers) = (setting("RUNS", 2_000), setting("CALLERS", 32));
    let left = Arc::new(AtomicUsize::new(runs));
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(run_all(api.clone(), workflow.clone(), Arc::clone(&left)));
    }
    let latencies: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed();
    println!(
        "{runs} runs of 10 chained js_code nodes by {callers} callers in {took:.2?}: {:.0} runs/s, {:.0} calls/s",
        runs as f64 / took.as_secs_f64(),
        10.0 * runs as f64 / took.as_secs_f64(),
    );
    show("runs, as a caller sees them who looks every 10 ms", latencies);
}

/// Starts runs one after the other until none is left, and waits for the end of each.
async fn run_all(api: Api, workflow: String, left: Arc<AtomicUsize>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let take = |left: usize| left.checked_sub(1);
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .is_ok()
    {
        let began = Instant::now();
        let run = api.start(&workflow, json!({})).await;
        assert_eq!(api.ended(&run).await["status"], "succeeded");
        latencies.push(began.elapsed());
    }
    latencies
}

fn last_output(report: &Value) -> Value {
    report["nodes"].as_array().unwrap().last().unwrap()["output"].clone()
}

fn show(what: &str, mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: median {:.3?}, 99 % {:.3?}, longest {:.3?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn setting(name: &str, default: usize) -> usize {
    let value = std::env::var(format!("SWITCHYARD_BENCH_{name}"));
    value.map_or(default, |value| value.parse().unwrap())
}
