//! What tests share: databases, the product's processes, and clients of its doors.
//!
//! PostgreSQL comes from `SWITCHYARD_TEST_POSTGRES_URL`, else from a temporary cluster that is started from the
//! machine's own binaries and stopped at the end of the process. Each test gets a fresh database. Where there is
//! neither, tests say loudly that they are skipped; `SWITCHYARD_TEST_REQUIRE_POSTGRES=1` makes that a failure.

// What tests need and do not get ends the test.
#![allow(clippy::missing_panics_doc, reason = "each panic is a failed test")]
#![allow(
    clippy::disallowed_methods,
    reason = "the environment says what tests may use, and names are made unique by the time"
)]

mod admin;
mod api;
mod binaries;
mod browser;
mod cluster;
mod directory;
pub mod frames;
pub mod graphs;
mod http;
pub mod native;
mod oauth;
mod process;
mod server;
mod servers;
mod target;
mod tls;
pub mod wire;
pub mod workload;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

pub use admin::{Admin, AdminClient, Bearer, at_most};
pub use api::{Api, PATIENCE, percent_encoded, text, together, until};
pub use binaries::binary;
pub use browser::{Browser, browser_or_skip};
pub use cluster::{PostgresServer, StopMode};
pub use directory::TemporaryDirectory;
pub use http::{Answer, HttpClient};
pub use oauth::{CLIENT_ID, OAuthServer, random};
pub use server::{Facade, Server, ServerOptions, ShowLog};
pub use servers::{FileServer, MailSecurity, MailServer, MailboxServer, ObjectStore};
pub use target::{Asked, Target};
pub use tls::Certificate;

/// Why there is no PostgreSQL for tests.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Missing {
    /// Nothing names a server and no binaries were found.
    #[error(
        "no PostgreSQL: set SWITCHYARD_TEST_POSTGRES_URL=postgres://user@host/database to a server whose user may \
         create databases, or install one (Debian: apt-get install postgresql)"
    )]
    NotInstalled,
    /// There is one, but it does not work.
    #[error("PostgreSQL does not work: {0}")]
    Broken(String),
}

/// A fresh, empty database; dropped with this value as far as the server allows.
#[derive(Debug)]
pub struct Database {
    /// `postgres://…`
    pub url: String,
    server_url: String,
    name: String,
}

/// The server's URL up to the database name, found once a process.
static SERVER: LazyLock<Mutex<Option<Result<PostgresServer, Missing>>>> = LazyLock::new(Mutex::default);
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A fresh PostgreSQL database for one test.
///
/// # Errors
/// When there is no server that works, and what to do about it.
pub async fn postgres_url() -> Result<Database, Missing> {
    let server_url = server_url().await?;
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("switchyard_test_{}_{started}_{number}", std::process::id());
    execute(&server_url, &format!("CREATE DATABASE {name}")).await?;
    Ok(Database {
        url: with_database(&server_url, &name),
        server_url,
        name,
    })
}

/// Writes a line to the terminal itself: what a passing test prints by `eprintln!` is not shown.
pub fn say_loudly(line: &str) {
    use std::io::Write as _;
    // In one piece, because many tests write at once. A terminal that cannot be written to has nobody to tell.
    let _written = std::io::stderr().write_all(format!("==== {line}\n").as_bytes());
}

/// As [`postgres_url`], for tests that run without PostgreSQL too: `None` after saying so, loudly.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_POSTGRES=1` and there is none.
pub async fn postgres_or_skip(test: &str) -> Option<Database> {
    found_or_skip(test, postgres_url().await)
}

/// A PostgreSQL server of the test's own, to be stopped and started; as [`postgres_or_skip`] otherwise.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_POSTGRES=1` and there is none.
pub async fn postgres_server_or_skip(test: &str) -> Option<PostgresServer> {
    let started = tokio::task::spawn_blocking(PostgresServer::start).await;
    let started = started.unwrap_or_else(|error| Err(Missing::Broken(error.to_string())));
    found_or_skip(test, started)
}

fn found_or_skip<T>(test: &str, found: Result<T, Missing>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) => {
            let required = std::env::var("SWITCHYARD_TEST_REQUIRE_POSTGRES").is_ok_and(|value| value == "1");
            assert!(!required, "{test} needs PostgreSQL: {missing}");
            say_loudly(&format!("SKIPPED on PostgreSQL: {test}: {missing}"));
            None
        }
    }
}

impl Database {
    /// Drops the database and whoever is still connected to it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn drop_now(self) -> Result<(), Missing> {
        execute(
            &self.server_url,
            &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
        )
        .await
    }
}

impl Database {
    /// Every row of every table as text, with bytes as PostgreSQL writes them and as the text that they may be.
    ///
    /// # Panics
    /// When it cannot be read.
    pub async fn dump(&self) -> String {
        let mut connection = PgConnection::connect(&self.url).await.expect("a connection");
        let tables =
            "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'";
        let tables: Vec<String> = sqlx::query_scalar(tables)
            .fetch_all(&mut connection)
            .await
            .expect("the tables");
        let mut dump = String::new();
        for table in tables {
            let rows = AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM {table} t"));
            let rows: Vec<String> = sqlx::query_scalar(rows)
                .fetch_all(&mut connection)
                .await
                .expect("the rows");
            for row in rows {
                dump.push_str(&format!("{table}: {row}\n"));
            }
        }
        let hexadecimal = dump.split("\\\\x").skip(1).map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_hexdigit());
            &rest[..end.unwrap_or(rest.len())]
        });
        let decoded = hexadecimal.filter_map(|text| hex::decode(text).ok());
        let decoded: Vec<String> = decoded
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect();
        dump.push_str(&decoded.join("\n"));
        dump
    }
}

async fn server_url() -> Result<String, Missing> {
    if let Ok(url) = std::env::var("SWITCHYARD_TEST_POSTGRES_URL") {
        return Ok(url);
    }
    // Starting a cluster blocks, and only the first caller does it.
    let found = tokio::task::spawn_blocking(|| {
        let mut server = SERVER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let started = server.get_or_insert_with(PostgresServer::start);
        started.as_ref().map(PostgresServer::url).map_err(Clone::clone)
    });
    found.await.map_err(|error| Missing::Broken(error.to_string()))?
}

async fn execute(server_url: &str, statement: &str) -> Result<(), Missing> {
    let broken = |error: sqlx::Error| Missing::Broken(error.to_string());
    let mut connection = PgConnection::connect(server_url).await.map_err(broken)?;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .map_err(broken)?;
    connection.close().await.map_err(broken)
}

/// The same server, another database.
fn with_database(server_url: &str, name: &str) -> String {
    let (address, query) = match server_url.split_once('?') {
        Some((address, query)) => (address, format!("?{query}")),
        None => (server_url, String::new()),
    };
    let scheme_end = address.find("://").map_or(0, |place| place + 3);
    let host_end = address[scheme_end..]
        .find('/')
        .map_or(address.len(), |place| scheme_end + place);
    format!("{}/{name}{query}", &address[..host_end])
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn only_the_database_changes() {
        assert_eq!(
            with_database("postgres://u:p@h:1/old?sslmode=disable", "new"),
            "postgres://u:p@h:1/new?sslmode=disable"
        );
        assert_eq!(with_database("postgres://u@h", "new"), "postgres://u@h/new");
        assert_eq!(
            with_database("postgres://u@h?host=/run/x", "new"),
            "postgres://u@h/new?host=/run/x"
        );
    }
}
