//! How much load a server takes over real sockets: the release binary, everything on one machine.
//!
//! `cargo bench -p contract --bench load -- [OPTIONS]`, where the options and their defaults are `--workload hooks` (or
//! `reads`), `--database sqlite` (or `postgres`), `--connections 1,16,64`, `--seconds 8` (each) and, for `hooks`,
//! `--total 100000`.
//!
//! The load generator shares the machine with the server. Each line is one load.

#![allow(clippy::unwrap_used, reason = "a benchmark; what fails ends it")]

mod generator;
mod hooks;
mod process;
mod reads;

use std::time::Duration;

use test_support::{Server, ServerOptions, postgres_url};

struct Options {
    reads: bool,
    postgres: bool,
    connections: Vec<usize>,
    seconds: u64,
    total: u64,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            reads: false,
            postgres: false,
            connections: vec![1, 16, 64],
            seconds: 8,
            total: 100_000,
        };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(flag) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
            match (flag.as_str(), value.as_str()) {
                ("--workload", "hooks") => options.reads = false,
                ("--workload", "reads") => options.reads = true,
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

    /// How long each load goes on.
    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
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
    println!(
        "{} on {}; load generator on the same machine",
        if options.postgres { "PostgreSQL" } else { "SQLite" },
        process::machine()
    );
    if options.reads {
        reads::measure(&server, &options).await;
    } else {
        hooks::measure(&server, &options).await;
    }
    drop(server);
    if let Some(database) = database {
        database.drop_now().await.unwrap();
    }
}
