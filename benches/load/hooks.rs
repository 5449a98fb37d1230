//! Webhook calls, each of which starts a run.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::{Api, Server, text, wire, workload};

use crate::Options;
use crate::generator::{self, Calls, Load};
use crate::process::Usage;
use crate::workloads::Workload;

/// How long the last runs may take to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A line for each number of connections, then more calls until there are `--total` runs, for the memory they take.
pub(crate) async fn measure(server: &Server, others: &[Server], workload: &Workload, options: &Options) {
    let target = Target::prepare(server, others, workload).await;
    println!(
        "{:>11} {:>11} {:>12} {:>8} {:>8} {:>8} {:>9} {:>10} {:>8} {:>8}",
        "connections",
        "accepted/s",
        "completed/s",
        "p50 ms",
        "p99 ms",
        "max ms",
        "refused",
        "CPU ms/run",
        "gen. ms",
        "RSS MiB"
    );
    target.load(options.connections[0], Duration::from_secs(1)).await;
    for &connections in &options.connections {
        println!("{}", target.load(connections, options.time()).await);
    }
    while target.finished().await < options.total.unwrap_or(0) {
        target.load(64, Duration::from_secs(1)).await;
    }
    let runs = target.finished().await;
    println!("after {runs} runs: RSS {:.0} MiB", target.usage().memory_mib);
}

/// Servers with a workflow live.
struct Target {
    apis: Vec<Api>,
    addresses: Vec<SocketAddr>,
    pids: Vec<u32>,
    calls: Calls,
}

impl Target {
    async fn prepare(server: &Server, others: &[Server], workload: &Workload) -> Self {
        let api = server.first_api();
        let path = go_live(&api, (workload.operations)()).await;
        let request = wire::request("POST", &path, &[], &workload::body());
        let servers = || std::iter::once(server).chain(others);
        let target = Self {
            apis: std::iter::once(api)
                .chain(others.iter().map(|other| other.api(None)))
                .collect(),
            addresses: servers().map(Server::rest_address).collect(),
            pids: servers().map(Server::pid).collect(),
            calls: Calls {
                requests: vec![request],
                success: workload.success,
                every: None,
            },
        };
        target.check(&(workload.output)()).await;
        target
    }

    /// Calls it once and looks at what comes of it, so that no figure is one of a workflow that does something else.
    async fn check(&self, output: &Value) {
        let mut connection = wire::Connection::open(self.addresses[0]).unwrap();
        let answer = connection.exchange(&self.calls.requests[0]).unwrap();
        let mut found: Value = serde_json::from_slice(&answer.body).unwrap();
        if answer.status == 202 {
            let report = self.apis[0].ended(&text(&found["data"]["runId"])).await;
            found = report["nodes"].as_array().unwrap().last().unwrap()["output"].clone();
        }
        assert_eq!((answer.status, &found), (self.calls.success, output));
    }

    /// Runs that the servers have counted as ended.
    async fn finished(&self) -> u64 {
        let mut runs = 0;
        for api in &self.apis {
            runs += finished(api).await;
        }
        runs
    }

    /// What the servers have used, all together.
    fn usage(&self) -> Usage {
        self.pids.iter().map(|pid| Usage::of(*pid)).sum()
    }

    /// Loads the servers for a time and waits until all runs have ended.
    async fn load(&self, connections: usize, time: Duration) -> Line {
        let (finished_before, usage_before, own_before) =
            (self.finished().await, self.usage(), Usage::of_itself());
        let started = Instant::now();
        let load = generator::run_on_all(self.addresses.clone(), self.calls.clone(), connections, time).await;
        let accepting = started.elapsed();
        let own = Usage::of_itself();
        let accepted = finished_before + load.answered();
        while self.finished().await < accepted {
            assert!(started.elapsed() < time + PATIENCE, "runs do not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let completing = started.elapsed();
        let usage = self.usage();
        let runs = (self.finished().await - finished_before).max(1);
        let per_run =
            |before: &Usage, after: &Usage| 1000.0 * (after.cpu_seconds - before.cpu_seconds) / runs as f64;
        Line {
            connections,
            accepted_per_second: load.answered() as f64 / accepting.as_secs_f64(),
            completed_per_second: runs as f64 / completing.as_secs_f64(),
            cpu_ms_per_run: per_run(&usage_before, &usage),
            generator_ms_per_run: per_run(&own_before, &own),
            memory_mib: usage.memory_mib,
            load,
        }
    }
}

/// Makes a workflow whose first node is a webhook's, and gives the path that starts its runs.
pub(crate) async fn go_live(api: &Api, operations: Value) -> String {
    let workflow = api.workflow_with("Load", operations).await;
    api.go_live(&workflow).await;
    format!("/hooks/{}", api.mint(&workflow, 1).await)
}

/// Runs that the server has counted as ended.
pub(crate) async fn finished(api: &Api) -> u64 {
    let metrics = api
        .send(http::Method::GET, "/metrics", &[], bytes::Bytes::new())
        .await;
    let text = metrics.text();
    let value = |name: &str| -> u64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in the metrics"))
            .parse()
            .unwrap()
    };
    assert_eq!(value("switchyard_runs_failed_total"), 0, "runs fail");
    value("switchyard_runs_succeeded_total")
}

/// What one load showed.
struct Line {
    connections: usize,
    accepted_per_second: f64,
    completed_per_second: f64,
    cpu_ms_per_run: f64,
    generator_ms_per_run: f64,
    memory_mib: f64,
    load: Load,
}

impl std::fmt::Display for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{:>11} {:>11.0} {:>12.0} {:>8.2} {:>8.2} {:>8.2} {:>9} {:>10.3} {:>8.3} {:>8.0}",
            self.connections,
            self.accepted_per_second,
            self.completed_per_second,
            self.load.percentile_ms(50.0),
            self.load.percentile_ms(99.0),
            self.load.percentile_ms(100.0),
            self.load.refused,
            self.cpu_ms_per_run,
            self.generator_ms_per_run,
            self.memory_mib,
        )
    }
}
