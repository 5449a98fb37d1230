//! One server for each database, shared by all cases; each case has an organization of its own.

use core_service::store::{Actor, DatabaseUrl, Store};
use test_support::{Admin, Api, Database, Server, ServerOptions, ShowLog};
use tokio::sync::OnceCell;

/// Another region that the servers know, and where they send its keys.
pub(crate) const OTHER_REGION: (&str, &str) = ("eu1", "https://eu1.switchyard.test");

static SQLITE: OnceCell<Server> = OnceCell::const_new();
static POSTGRES: OnceCell<Option<(Server, Database)>> = OnceCell::const_new();

/// A server, and an organization of the case's own.
pub(crate) struct World {
    pub(crate) server: &'static Server,
    pub(crate) admin: Admin,
    pub(crate) organization: String,
    pub(crate) owner: String,
    pub(crate) team: String,
    /// The owner's: every scope.
    pub(crate) api: Api,
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        Self::on(SQLITE.get_or_init(|| Server::start(options(None))).await).await
    }

    /// Nothing, loudly, when there is no PostgreSQL.
    pub(crate) async fn postgres(case: &str) -> Option<Self> {
        let running = POSTGRES.get_or_init(async || {
            let database = test_support::postgres_or_skip("the API suite").await?;
            Some((Server::start(options(Some(&database))).await, database))
        });
        match running.await {
            Some((server, _)) => Some(Self::on(server).await),
            None => {
                test_support::say_loudly(&format!("SKIPPED on PostgreSQL: {case}"));
                None
            }
        }
    }

    async fn on(server: &'static Server) -> Self {
        let admin = server.admin().await;
        let made = admin.organization("Case", None).await;
        Self {
            server,
            admin,
            organization: made.organization_id,
            owner: made.owner_user_id,
            team: made.team_id,
            api: server.api(Some(&made.api_key)),
        }
    }

    pub(crate) fn show_log(&self) -> ShowLog<'static> {
        ShowLog(self.server)
    }

    /// The owner of another organization.
    pub(crate) async fn stranger(&self) -> Api {
        let made = self.admin.organization("Other", None).await;
        self.server.api(Some(&made.api_key))
    }

    /// The server's database, for nouns that have no endpoint yet.
    pub(crate) async fn store(&self) -> Store {
        let url: DatabaseUrl = match self.server.database_url() {
            Some(url) => url.parse().unwrap(),
            None => DatabaseUrl::Sqlite(self.server.data_dir().join("switchyard.db")),
        };
        Store::open(&url).await.unwrap()
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor {
            user_id: Some(self.owner.clone()),
            api_key_id: None,
            request_id: None,
            ip: None,
        }
    }
}

fn options(database: Option<&Database>) -> ServerOptions {
    let (region, base_url) = OTHER_REGION;
    ServerOptions {
        database_url: database.map(|database| database.url.clone()),
        flags: vec![
            "--regions".to_owned(),
            format!("{region}={base_url}"),
            // What tests start on their own machine; all else that is private stays out of reach.
            "--outbound-allow".to_owned(),
            "127.0.0.1".to_owned(),
        ],
        ..ServerOptions::default()
    }
}
