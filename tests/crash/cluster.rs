//! Servers that are killed and started again: three on a PostgreSQL database, or one on SQLite.

use std::time::Duration;

use core_service::clock::now_ms as now;
use test_support::{Api, Server, ServerOptions, ShowLog};

use crate::random::Random;

pub(crate) struct Cluster {
    servers: Vec<Server>,
    key: String,
}

impl Cluster {
    pub(crate) async fn start(database_url: Option<&str>) -> Self {
        let options = ServerOptions {
            database_url: database_url.map(str::to_owned),
            // A dead process's runs are free soon.
            flags: ["--lease-ms", "1000"].map(str::to_owned).into(),
            ..ServerOptions::default()
        };
        let first = Server::start(options.clone()).await;
        let key = first.first_api().key().to_owned();
        let shared = ServerOptions {
            master_key_file: Some(first.data_dir().join("master-key")),
            ..options
        };
        let mut servers = vec![first];
        if database_url.is_some() {
            servers.push(Server::start(shared.clone()).await);
            servers.push(Server::start(shared).await);
        }
        Self { servers, key }
    }

    /// A caller of one of the servers; they take turns.
    pub(crate) fn api(&self, turn: usize) -> Api {
        self.servers[turn % self.servers.len()].api(Some(&self.key))
    }

    /// Kills one or two of the servers at random moments and starts them again, from a time to another one.
    pub(crate) async fn kill_between(&mut self, random: &mut Random, from: i64, until: i64) {
        tokio::time::sleep(Duration::from_millis((from - now()).max(0).unsigned_abs())).await;
        let servers = &mut self.servers;
        while now() < until {
            tokio::time::sleep(Duration::from_millis(random.below(200) as u64)).await;
            let (victim, other) = (random.below(servers.len()), random.below(servers.len()));
            servers[victim].kill_hard();
            servers[other].kill_hard();
            servers[victim].restart().await;
            if other != victim {
                servers[other].restart().await;
            }
        }
    }

    /// While it lives, a panic shows what the servers logged.
    pub(crate) fn show_logs(&self) -> Vec<ShowLog<'_>> {
        self.servers.iter().map(ShowLog).collect()
    }
}
