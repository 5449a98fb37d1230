//! Servers that are made to fail: some on a PostgreSQL database, or one on SQLite.

use std::net::SocketAddr;
use std::time::Duration;

use core_service::clock::now_ms as now;
use sqlx::{Connection as _, PgConnection};
use test_support::{Api, Server, ServerOptions, ShowLog, until};

use crate::random::Random;
use crate::settings;

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
    key: String,
}

/// What every server of the suite is told: among others that it is not its runs that it dies of.
pub(crate) fn options(lease_ms: u64) -> ServerOptions {
    options_with(lease_ms, &["--crash-limit", "1000"])
}

/// The same for servers that runs may end, and whatever else needs flags of its own.
pub(crate) fn options_with(lease_ms: u64, flags: &[&str]) -> ServerOptions {
    let lease = lease_ms.to_string();
    let all = ["--lease-ms", &lease, "--outbound-allow", "127.0.0.0/8"];
    ServerOptions {
        flags: all.iter().chain(flags).map(|&flag| flag.to_owned()).collect(),
        ..ServerOptions::default()
    }
}

/// The lease of servers in milliseconds: short in the quick suite, so that a dead process's runs are free soon, and the
/// default one in the long suite.
pub(crate) fn lease_ms() -> u64 {
    if settings::is_long() { 10_000 } else { 5_000 }
}

impl Cluster {
    /// Three servers on a database, or one on SQLite, with the shortest lease.
    pub(crate) async fn start(database_url: Option<&str>) -> Self {
        let number = if database_url.is_some() { 3 } else { 1 };
        let nodes = (0..number).map(|_| ServerOptions {
            database_url: database_url.map(str::to_owned),
            ..options(1_000)
        });
        Self::of(nodes.collect()).await
    }

    /// Servers that share a database. The first one's master key is that of all.
    pub(crate) async fn of(options: Vec<ServerOptions>) -> Self {
        let mut nodes: Vec<Server> = Vec::new();
        for options in options {
            let master_key_file = nodes.first().map(|first| first.data_dir().join("master-key"));
            let options = ServerOptions {
                master_key_file,
                ..options
            };
            nodes.push(Server::start(options).await);
        }
        let key = nodes[0].first_api().key().to_owned();
        Self { nodes, key }
    }

    /// A caller of one of the servers; they take turns.
    pub(crate) fn api(&self, turn: usize) -> Api {
        self.nodes[turn % self.nodes.len()].api(Some(&self.key))
    }

    /// The listeners for REST.
    pub(crate) fn doors(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Server::rest_address).collect()
    }

    /// Kills one or two of the servers at random moments and starts them again, from a time to another one.
    pub(crate) async fn kill_between(&mut self, random: &mut Random, from: i64, until: i64) {
        tokio::time::sleep(Duration::from_millis((from - now()).max(0).unsigned_abs())).await;
        let servers = &mut self.nodes;
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
        self.nodes.iter().map(ShowLog).collect()
    }
}

/// A figure of `/metrics`.
pub(crate) async fn figure(server: &Server, name: &str) -> u64 {
    let api = server.api(None);
    let sent = api.send(http::Method::GET, "/metrics", &[], bytes::Bytes::new());
    let metrics = sent.await.text();
    let start = format!("{name} ");
    let found = metrics.lines().find_map(|line| line.strip_prefix(&start));
    found
        .unwrap_or_else(|| panic!("{name} is not in {metrics}"))
        .parse()
        .unwrap()
}

/// What the database knows of processes, for tests that have to tell one from another.
pub(crate) struct Processes {
    connection: PgConnection,
}

impl Processes {
    pub(crate) async fn of(database_url: &str) -> Self {
        Self {
            connection: PgConnection::connect(database_url).await.unwrap(),
        }
    }

    /// The ids of those that live, the oldest first.
    pub(crate) async fn ids(&mut self) -> Vec<String> {
        sqlx::query_scalar("SELECT id FROM processes WHERE alive ORDER BY started_at")
            .fetch_all(&mut self.connection)
            .await
            .unwrap()
    }

    /// Waits until a process drives something.
    pub(crate) async fn drives(&mut self, id: &str) {
        let drives = until(async || (self.driven(id).await > 0).then_some(())).await;
        assert!(drives.is_some(), "{id} drives no run");
    }

    /// Waits until a process drives nothing any more: others have taken its runs over.
    pub(crate) async fn is_relieved(&mut self, id: &str) {
        let relieved = until(async || (self.driven(id).await == 0).then_some(())).await;
        assert!(relieved.is_some(), "nobody takes over from {id}");
    }

    async fn driven(&mut self, id: &str) -> i64 {
        sqlx::query_scalar("SELECT COUNT(*) FROM runs WHERE process_id = $1 AND finished_at IS NULL")
            .bind(id)
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
    }
}
