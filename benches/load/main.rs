//! How much load a server takes: webhook calls over real sockets against the release binary, everything on one machine.
//!
//! `cargo bench -p contract --bench load -- [OPTIONS]`, where the options and their defaults are `--database sqlite` (or
//! `postgres`), `--connections 1,16,64`, `--seconds 8` (each) and `--total 100000`.
//!
//! The workload is that of `test_support::workload`: webhook, three expressions, a condition, a last node, answered when
//! the run is durable, every node's output recorded. The load generator shares the machine with the server. Each line
//! is one load; a last one goes on until there are `--total` runs in all, for the memory that they take.

#![allow(clippy::unwrap_used, reason = "a benchmark; what fails ends it")]

mod generator;
mod process;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use generator::Load;
use process::Usage;
use test_support::{Api, Server, ServerOptions, postgres_url, wire, workload};

/// How long the last runs may take to end.
const PATIENCE: Duration = Duration::from_secs(120);

struct Options {
    postgres: bool,
    connections: Vec<usize>,
    seconds: u64,
    total: u64,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            postgres: false,
            connections: vec![1, 16, 64],
            seconds: 8,
            total: 100_000,
        };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(flag) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
            match (flag.as_str(), value.as_str()) {
                ("--database", "sqlite") => options.postgres = false,
                ("--database", "postgres") => options.postgres = true,
                ("--connections", list) => {
                    options.connections = list.split(',').map(|number| number.parse().unwrap()).collect();
                }
                ("--seconds", number) => options.seconds = number.parse().unwrap(),
                ("--total", number) => options.total = number.parse().unwrap(),
                _ => panic!("{flag} {value} is not an option; the head of this file lists them"),
            }
        }
        options
    }
}

#[tokio::main]
async fn main() {
    let options = Options::read();
    let database = if options.postgres {
        Some(postgres_url().await.unwrap())
    } else {
        None
    };
    let server = Server::start(ServerOptions {
        database_url: database.as_ref().map(|database| database.url.clone()),
        flags: ["--log", "warn"].map(str::to_owned).into(),
        ..ServerOptions::default()
    })
    .await;
    let target = Target::prepare(&server).await;
    println!(
        "{} on {}; load generator on the same machine",
        if options.postgres { "PostgreSQL" } else { "SQLite" },
        process::machine()
    );
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
    let time = Duration::from_secs(options.seconds);
    for &connections in &options.connections {
        println!("{}", target.load(connections, time).await);
    }
    while target.finished().await < options.total {
        target.load(64, Duration::from_secs(1)).await;
    }
    let runs = target.finished().await;
    println!(
        "after {runs} runs: RSS {:.0} MiB",
        Usage::of(target.pid).memory_mib
    );
    drop(server);
    if let Some(database) = database {
        database.drop_now().await.unwrap();
    }
}

/// A server with the workflow live.
struct Target {
    api: Api,
    address: SocketAddr,
    pid: u32,
    request: Vec<u8>,
}

impl Target {
    async fn prepare(server: &Server) -> Self {
        let api = server.first_api();
        let workflow = api.workflow_with("Load", workload::graph()).await;
        api.go_live(&workflow).await;
        let hook = api.mint(&workflow, 1).await;
        Self {
            api,
            address: server.rest_url().trim_start_matches("http://").parse().unwrap(),
            pid: server.pid(),
            request: wire::request("POST", &format!("/hooks/{hook}"), &[], &workload::body()),
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
        let load = generator::run(self.address, self.request.clone(), connections, time).await;
        let accepting = started.elapsed();
        let own = Usage::of(std::process::id());
        let accepted = finished_before + load.accepted();
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
            accepted_per_second: load.accepted() as f64 / accepting.as_secs_f64(),
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
