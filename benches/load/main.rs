//! How much load a server takes over real sockets: the release binary, everything on one machine.
//!
//! `cargo bench -p contract --bench load -- [OPTIONS]`, where the options and their defaults are
//!
//! - `--workload w1`: webhook calls of a workflow of `workloads` (`w1`, `w2`, `c20`, `js10`, `js10-answered`); `reads`;
//!   `waiting`; `history`; `fair`, a quiet organization beside one at 100 times its load; or `crowd`, calls all at once
//! - `--database sqlite` (or `postgres`)
//! - `--nodes 1`, for webhook calls on PostgreSQL: servers that share it; connections go to them in turn
//! - `--connections 1,16,64` and `--seconds 8`: a load for each number, for so long
//! - `--total 0`: webhook calls go on until there are so many runs; `waiting` has a million, `crowd` 10,000 calls
//! - `--rate 0`, for `fair`: the quiet organization's calls a second; without, each connection calls when it is answered
//! - `--spread 60` and `--due-in 300`, for `waiting`: the time from the first run's instant to the last one's, and from
//!   the beginning to the first one's, in seconds
//! - `--runs 10000,100000,1000000`, for `history`: how many runs there are at each measurement
//!
//! The load generator shares the machine with the server. Each line is one load.

#![allow(clippy::unwrap_used, reason = "a benchmark; what fails ends it")]

mod crowd;
mod fair;
mod generator;
mod history;
mod hooks;
mod process;
mod reads;
mod waiting;
mod workloads;

use std::time::Duration;

use test_support::{Server, ServerOptions, postgres_url};
use workloads::WORKLOADS;

struct Options {
    workload: String,
    postgres: bool,
    nodes: usize,
    connections: Vec<usize>,
    seconds: u64,
    total: Option<u64>,
    rate: Option<f64>,
    spread: u64,
    due_in: u64,
    runs: Vec<usize>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            workload: "w1".to_owned(),
            postgres: false,
            nodes: 1,
            connections: vec![1, 16, 64],
            seconds: 8,
            total: None,
            rate: None,
            spread: 60,
            due_in: 300,
            runs: vec![10_000, 100_000, 1_000_000],
        };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(flag) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
            match (flag.as_str(), value.as_str()) {
                ("--workload", name) => options.workload = name.to_owned(),
                ("--database", "sqlite") => options.postgres = false,
                ("--database", "postgres") => options.postgres = true,
                ("--nodes", number) => options.nodes = number.parse().unwrap(),
                ("--connections", list) => options.connections = numbers(list),
                ("--runs", list) => options.runs = numbers(list),
                ("--seconds", number) => options.seconds = number.parse().unwrap(),
                ("--total", number) => options.total = Some(number.parse().unwrap()),
                ("--rate", number) => options.rate = Some(number.parse().unwrap()),
                ("--spread", number) => options.spread = number.parse().unwrap(),
                ("--due-in", number) => options.due_in = number.parse().unwrap(),
                _ => panic!("{flag} {value} is not an option; the head of this file lists them"),
            }
        }
        options
    }

    /// How long each load goes on.
    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn numbers(list: &str) -> Vec<usize> {
    list.split(',').map(|number| number.parse().unwrap()).collect()
}

#[tokio::main]
async fn main() {
    let options = Options::read();
    let database = if options.postgres {
        Some(postgres_url().await.unwrap())
    } else {
        None
    };
    let start = async |master_key_file| {
        let options = ServerOptions {
            database_url: database.as_ref().map(|database| database.url.clone()),
            master_key_file,
            flags: ["--log", "warn"].map(str::to_owned).into(),
            ..ServerOptions::default()
        };
        Server::start(options).await
    };
    let mut server = start(None).await;
    assert!(options.nodes == 1 || options.postgres, "nodes share PostgreSQL");
    let mut others = Vec::new();
    while others.len() + 1 < options.nodes {
        others.push(start(Some(server.data_dir().join("master-key"))).await);
    }
    println!(
        "{} on {}, nodes: {}; load generator on the same machine",
        if options.postgres { "PostgreSQL" } else { "SQLite" },
        process::machine(),
        options.nodes,
    );
    match options.workload.as_str() {
        "reads" => reads::measure(&server, &options).await,
        "history" => history::measure(&mut server, &options).await,
        "fair" => fair::measure(&server, &options).await,
        "crowd" => crowd::measure(&server, &options).await,
        "waiting" => waiting::measure(&server, &options).await,
        name => {
            let workload = WORKLOADS.iter().find(|workload| workload.name == name);
            let workload = workload.unwrap_or_else(|| panic!("there is no workload {name}"));
            hooks::measure(&server, &others, workload, &options).await;
        }
    }
    drop((server, others));
    if let Some(database) = database {
        database.drop_now().await.unwrap();
    }
}
