//! Webhook calls: each starts a run of `test_support::workload`, answered when the run is durable.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use test_support::{Api, Server, wire, workload};

use crate::Options;
use crate::generator::{self, Calls, Load};
use crate::process::Usage;

/// How long the last runs may take to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A line for each number of connections, then more calls until there are `--total` runs, for the memory they take.
pub(crate) async fn measure(server: &Server, options: &Options) {
    let target = Target::prepare(server).await;
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
    while target.finished().await < options.total {
        target.load(64, Duration::from_secs(1)).await;
    }
    let runs = target.finished().await;
    println!(
        "after {runs} runs: RSS {:.0} MiB",
        Usage::of(target.pid).memory_mib
    );
}

/// A server with the workflow live.
struct Target {
    api: Api,
    address: SocketAddr,
    pid: u32,
    calls: Calls,
}

impl Target {
    async fn prepare(server: &Server) -> Self {
        let api = server.first_api();
        let workflow = api.workflow_with("Load", workload::graph()).await;
        api.go_live(&workflow).await;
        let hook = api.mint(&workflow, 1).await;
        Self {
            api,
            address: server.rest_address(),
            pid: server.pid(),
            calls: Calls {
                requests: vec![wire::request(
                    "POST",
                    &format!("/hooks/{hook}"),
                    &[],
                    &workload::body(),
                )],
                success: 202,
            },
        }
    }

    /// Loads the server for a time and waits until all runs have ended.
    async fn load(&self, connections: usize, time: Duration) -> Line {
        let (finished_before, usage_before, own_before) = (
            self.finished().await,
            Usage::of(self.pid),
            Usage::of(std::process::id()),
        );
        let started = Instant::now();
        let load = generator::run(self.address, self.calls.clone(), connections, time).await;
        let accepting = started.elapsed();
        let own = Usage::of(std::process::id());
        let accepted = finished_before + load.answered();
        while self.finished().await < accepted {
            assert!(started.elapsed() < time + PATIENCE, "runs do not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let completing = started.elapsed();
        let usage = Usage::of(self.pid);
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

    /// Runs that the server has counted as ended.
    async fn finished(&self) -> u64 {
        let metrics = self
            .api
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
