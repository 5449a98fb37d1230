//! What operators rely on: probes, figures, reflection, an orderly end, a crash, a backup, what is kept for how long, and
//! the product in several processes.

mod backup;
mod endings;
mod master_key;
mod probes;
mod retention;
mod scale;

use test_support::{Database, Server, ServerOptions};

/// A server of the case's own, and its database.
struct Own {
    server: Server,
    _database: Option<Database>,
}

impl Own {
    async fn sqlite() -> Self {
        Self {
            server: Server::start(ServerOptions::default()).await,
            _database: None,
        }
    }

    /// Nothing, loudly, when there is no PostgreSQL.
    async fn postgres(case: &str) -> Option<Self> {
        let database = test_support::postgres_or_skip(case).await?;
        let options = ServerOptions {
            database_url: Some(database.url.clone()),
            ..ServerOptions::default()
        };
        Some(Self {
            server: Server::start(options).await,
            _database: Some(database),
        })
    }
}
