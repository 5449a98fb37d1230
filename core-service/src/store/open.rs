//! Opening the database: where it is, how it is set up, and that it is one we can trust with data.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};
use tokio::sync::Mutex;

use super::database::{ACQUIRE_TIMEOUT, Database, Lines, Writer};
use super::notify::Notifier;
use super::{Store, StoreError, migration};

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file, made when it is missing.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database: `postgres://user:password@host:port/database`.
    Postgres(String),
}

impl DatabaseUrl {
    /// The SQLite file of a data directory.
    #[must_use]
    pub fn in_directory(data_dir: &Path) -> Self {
        Self::Sqlite(data_dir.join("switchyard.db"))
    }
}

impl FromStr for DatabaseUrl {
    type Err = StoreError;

    /// Reads `postgres://…`, `postgresql://…` or `sqlite:path`.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text
            .strip_prefix("sqlite:")
            .map(|path| path.strip_prefix("//").unwrap_or(path));
        match path {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(StoreError::Setup(
                "a database URL must start with postgres:// or with sqlite: and a file name".to_owned(),
            )),
        }
    }
}

/// How long to wait for a lock of another program (a backup, a shell) on the SQLite file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long PostgreSQL waits, in milliseconds, for the next word of a transaction. One whose process was stopped or cut off
/// in the middle keeps others from taking over its runs, for its locks are held until then.
const SILENCE_MS: &str = "5000";
const SQLITE_READERS: u32 = 8;
const POSTGRES_CONNECTIONS: u32 = 20;
/// Of these, at most so many read and so many write; what is left is for what keeps all runs going.
const POSTGRES_READS: u32 = 10;
const POSTGRES_WRITES: u32 = 6;
/// Batch statements in their fixed sizes must all stay prepared.
const STATEMENT_CACHE: usize = 512;
/// Earlier versions can corrupt a database in WAL mode.
const OLDEST_SQLITE: (u32, u32, u32) = (3, 51, 3);

impl Store {
    /// Opens the database and brings its tables up to date.
    ///
    /// # Errors
    /// When it cannot be reached, is too old, was written by a newer version, or a migration fails.
    pub async fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
        let database = match url {
            DatabaseUrl::Sqlite(path) => open_sqlite(path).await?,
            DatabaseUrl::Postgres(url) => open_postgres(url).await?,
        };
        migration::run(&database).await?;
        let notifier = Notifier::start(&database);
        Ok(Self { database, notifier })
    }

    /// Whether the database answers, for readiness checks.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.database.read().await?.row("SELECT 1", &[]).await?;
        Ok(())
    }

    /// Closes all connections; calls under way finish first.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// What the writing connection keeps of the database in memory: 16 MiB, said in KiB below zero. Runs that wake are found
/// all over the database, so less would be read again and again.
const WRITER_CACHE: &str = "-16384";
/// Pages that the write-ahead log collects before they are brought into the database: 32 MiB. A page that is written
/// often is brought there once.
const PAGES_OF_LOG: &str = "8192";

async fn open_sqlite(path: &Path) -> Result<Database, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENT_CACHE)
        .pragma("trusted_schema", "OFF");
    // Lets a database that is new give space back in small steps; others stay as they were made. Not for readers: saying
    // so takes the right to write.
    let mut writer = options
        .clone()
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .pragma("cache_size", WRITER_CACHE)
        .pragma("wal_autocheckpoint", PAGES_OF_LOG)
        .connect()
        .await
        .map_err(|error| cannot_open(path, error))?;
    check_sqlite_version(&mut writer).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(SQLITE_READERS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options.create_if_missing(false).pragma("query_only", "ON"));
    Ok(Database::Sqlite {
        writer: Arc::new(Mutex::new(Writer::new(writer))),
        readers,
        // One who writes at a time, so that the journal waits for no more than that one.
        lines: Lines::new(SQLITE_READERS, 1),
    })
}

fn cannot_open(path: &Path, error: sqlx::Error) -> StoreError {
    match StoreError::from(error) {
        StoreError::Unavailable(cause) if !path.exists() => StoreError::Setup(format!(
            "the database file {} cannot be made ({cause}); check that its directory exists and can be written",
            path.display()
        )),
        other => other,
    }
}

async fn check_sqlite_version(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let version: String = sqlx::query("SELECT sqlite_version()")
        .fetch_one(connection)
        .await?
        .try_get(0)?;
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    if (next(), next(), next()) < OLDEST_SQLITE {
        let (major, minor, patch) = OLDEST_SQLITE;
        return Err(StoreError::Setup(format!(
            "SQLite {version} is built in, but {major}.{minor}.{patch} or newer is needed: build with a newer libsqlite3-sys"
        )));
    }
    Ok(())
}

async fn open_postgres(url: &str) -> Result<Database, StoreError> {
    let options = PgConnectOptions::from_str(url)?
        .application_name("switchyard")
        .statement_cache_capacity(STATEMENT_CACHE)
        .options([
            ("synchronous_commit", "on"),
            ("default_transaction_isolation", "read committed"),
            ("idle_in_transaction_session_timeout", SILENCE_MS),
        ])
        .log_statements(tracing::log::LevelFilter::Trace);
    // Says what is wrong with the address before a pool starts to retry.
    sqlx::PgConnection::connect_with(&options).await?.close().await?;
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options);
    Ok(Database::Postgres {
        pool,
        lines: Lines::new(POSTGRES_READS, POSTGRES_WRITES),
    })
}
