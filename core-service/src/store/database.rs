//! The two databases behind one face: sessions and transactions.
//!
//! Statements are written once, with `$n` parameters, in the noun's own file. SQLite has one writer connection behind
//! a fair lock and a pool of readers that cannot write; PostgreSQL has one pool for both.
//!
//! Connections are few, so whoever wants one waits for the turn of the organization that it works for
//! (`crate::turns`). What keeps all runs going (the journal, leases, claims) waits in no line.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{
    AssertSqlSafe, Executor as _, PgConnection, PgPool, Postgres, SqlSafeStr, Sqlite, SqliteConnection,
    SqlitePool,
};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::StoreError;
use super::batch::bind_arrays;
use super::dialect::{BatchStatement, Dialect};
use super::value::{Row, Value};
use crate::failpoint::{self, Boundary, Side};
use crate::turns::{Share, Turn, Turns};

/// One of the two databases, open.
#[derive(Clone)]
pub(super) enum Database {
    Sqlite {
        writer: Arc<Mutex<Writer>>,
        readers: SqlitePool,
        lines: Lines,
    },
    Postgres {
        pool: PgPool,
        lines: Lines,
    },
}

/// Those who wait for connections.
#[derive(Clone)]
pub(super) struct Lines {
    reads: Turns,
    writes: Turns,
}

/// How long a caller waits for a connection.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement of PostgreSQL may take. One whose answer was lost on its way would be waited for without end. Scripts,
/// which change whole tables, take as long as they do.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Callers who may wait for connections to read, and as many to write; those of one organization as many as it leaves
/// free.
const MOST_WAITING: usize = 16_384;

impl Lines {
    /// Before so many connections that read and so many that write.
    pub(super) fn new(reads: u32, writes: u32) -> Self {
        let turns = |most: u32| Turns::new(most as usize, Share::of_each(most as usize), MOST_WAITING);
        Self {
            reads: turns(reads),
            writes: turns(writes),
        }
    }
}

async fn turn_of_caller(line: &Turns) -> Result<Turn, StoreError> {
    let turn = timeout(ACQUIRE_TIMEOUT, line.turn_of_caller()).await;
    let turn = turn.ok().and_then(Result::ok);
    turn.ok_or_else(|| StoreError::from(sqlx::Error::PoolTimedOut))
}

/// SQLite's only connection that writes.
pub(super) struct Writer {
    connection: SqliteConnection,
    /// Set while a transaction is open. Found set by the next one when a caller was dropped half-way.
    in_transaction: bool,
}

impl Writer {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self {
            connection,
            in_transaction: false,
        }
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.abandon().await;
        self.in_transaction = true;
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }

    /// Undoes what a caller who was dropped has left half-way.
    async fn abandon(&mut self) {
        if self.in_transaction {
            // Refused when the abandoned transaction got as far as its commit; then there is nothing to undo.
            let _nothing_to_undo = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
            self.in_transaction = false;
        }
    }

    async fn end(&mut self, statement: &'static str) -> Result<(), StoreError> {
        sqlx::query(statement).execute(&mut self.connection).await?;
        self.in_transaction = false;
        Ok(())
    }
}

/// A connection to PostgreSQL. One that is left in the middle of a statement or a transaction is closed.
///
/// The pool would ask it whether it still lives and, when it was cut off without a word, wait for ever for the answer,
/// with one place fewer for everybody (sqlx issue 4349).
pub(super) struct Pooled {
    connection: PoolConnection<Postgres>,
    /// A statement is under way.
    is_busy: bool,
    in_transaction: bool,
}

impl Pooled {
    async fn acquire(pool: &PgPool) -> Result<Self, StoreError> {
        Ok(Self {
            connection: pool.acquire().await?,
            is_busy: false,
            in_transaction: false,
        })
    }

    async fn begin(pool: &PgPool) -> Result<Self, StoreError> {
        let mut begun = Self::acquire(pool).await?;
        begun.in_transaction = true;
        begun.is_busy = true;
        in_time(begun.connection.execute("BEGIN")).await?;
        begun.is_busy = false;
        Ok(begun)
    }

    async fn end(mut self, statement: &'static str) -> Result<(), StoreError> {
        self.is_busy = true;
        in_time(self.connection.execute(statement)).await?;
        self.is_busy = false;
        self.in_transaction = false;
        Ok(())
    }
}

/// What comes of a statement of PostgreSQL, unless that takes too long.
async fn in_time<T>(statement: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let late = |_elapsed| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
    timeout(STATEMENT_TIMEOUT, statement).await.unwrap_or_else(late)
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if self.is_busy || self.in_transaction {
            self.connection.close_on_drop();
        }
    }
}

impl Database {
    /// A connection for reading. It must not be held while waiting for anything but the database.
    pub(super) async fn read(&self) -> Result<Session, StoreError> {
        let turn = turn_of_caller(&self.lines().reads).await?;
        let connected = match self {
            Self::Sqlite { readers, .. } => Connected::SqliteReader(readers.acquire().await?),
            Self::Postgres { pool, .. } => Connected::Postgres(Pooled::acquire(pool).await?),
        };
        Ok(Session {
            connected,
            _turn: Some(turn),
        })
    }

    /// A transaction for writing; undone unless it is committed.
    pub(super) async fn write(&self) -> Result<Transaction, StoreError> {
        let turn = turn_of_caller(&self.lines().writes).await?;
        self.begin(Some(turn)).await
    }

    /// As `write`, before all who wait: for what keeps all runs going.
    pub(super) async fn write_first(&self) -> Result<Transaction, StoreError> {
        self.begin(None).await
    }

    async fn begin(&self, turn: Option<Turn>) -> Result<Transaction, StoreError> {
        let connected = match self {
            Self::Sqlite { writer, .. } => {
                let mut writer = Arc::clone(writer).lock_owned().await;
                writer.begin().await?;
                Connected::SqliteWriter(writer)
            }
            Self::Postgres { pool, .. } => Connected::Postgres(Pooled::begin(pool).await?),
        };
        Ok(Transaction(Session {
            connected,
            _turn: turn,
        }))
    }

    fn lines(&self) -> &Lines {
        match self {
            Self::Sqlite { lines, .. } | Self::Postgres { lines, .. } => lines,
        }
    }

    /// SQLite's writer outside of any transaction, for what can only be done there.
    pub(super) async fn bare_writer(&self) -> Option<Session> {
        let Self::Sqlite { writer, .. } = self else {
            return None;
        };
        let mut writer = Arc::clone(writer).lock_owned().await;
        writer.abandon().await;
        Some(Session {
            connected: Connected::SqliteWriter(writer),
            _turn: None,
        })
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite { readers, .. } => readers.close().await,
            Self::Postgres { pool, .. } => pool.close().await,
        }
    }
}

/// A connection to either database, and the turn it is had in.
pub(super) struct Session {
    connected: Connected,
    _turn: Option<Turn>,
}

enum Connected {
    SqliteReader(PoolConnection<Sqlite>),
    SqliteWriter(OwnedMutexGuard<Writer>),
    Postgres(Pooled),
}

enum Connection<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

impl Session {
    pub(super) fn dialect(&self) -> Dialect {
        match self.connected {
            Connected::SqliteReader(_) | Connected::SqliteWriter(_) => Dialect::Sqlite,
            Connected::Postgres(_) => Dialect::Postgres,
        }
    }

    /// The connection, for a statement that is under way until `ended`.
    fn connection(&mut self) -> Connection<'_> {
        match &mut self.connected {
            Connected::SqliteReader(connection) => Connection::Sqlite(connection),
            Connected::SqliteWriter(writer) => Connection::Sqlite(&mut writer.connection),
            Connected::Postgres(pooled) => {
                pooled.is_busy = true;
                Connection::Postgres(&mut pooled.connection)
            }
        }
    }

    /// The statement is over, whatever came of it. A connection that broke, or that may still have an answer to give, is
    /// of no use to others.
    fn ended<T>(&mut self, result: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        if let Connected::Postgres(pooled) = &mut self.connected {
            pooled.is_busy = matches!(result, Err(sqlx::Error::Io(_)));
        }
        Ok(result?)
    }

    /// All rows of a query. The statement bounds their number.
    pub(super) async fn rows(
        &mut self,
        sql: impl SqlSafeStr,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        refuse_nul(values)?;
        let rows = match self.connection() {
            Connection::Sqlite(connection) => {
                let rows = bind_sqlite(sql, values).fetch_all(connection).await;
                rows.map(|rows| rows.into_iter().map(Row::Sqlite).collect())
            }
            Connection::Postgres(connection) => {
                let rows = in_time(bind_postgres(sql, values).fetch_all(connection)).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
        };
        self.ended(rows)
    }

    /// The only row of a query, if there is one.
    pub(super) async fn row(
        &mut self,
        sql: impl SqlSafeStr,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        refuse_nul(values)?;
        let row = match self.connection() {
            Connection::Sqlite(connection) => {
                let row = bind_sqlite(sql, values).fetch_optional(connection).await;
                row.map(|row| row.map(Row::Sqlite))
            }
            Connection::Postgres(connection) => {
                let row = in_time(bind_postgres(sql, values).fetch_optional(connection)).await;
                row.map(|row| row.map(Row::Postgres))
            }
        };
        self.ended(row)
    }

    /// Runs a statement and gives the number of rows it changed.
    pub(super) async fn execute(
        &mut self,
        sql: impl SqlSafeStr,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        refuse_nul(values)?;
        let changed = match self.connection() {
            Connection::Sqlite(connection) => {
                let done = bind_sqlite(sql, values).execute(connection).await;
                done.map(|done| done.rows_affected())
            }
            Connection::Postgres(connection) => {
                let done = in_time(bind_postgres(sql, values).execute(connection)).await;
                done.map(|done| done.rows_affected())
            }
        };
        self.ended(changed)
    }

    /// Runs a batch statement with each column as one array. Only PostgreSQL has arrays.
    pub(super) async fn execute_arrays(
        &mut self,
        statement: &BatchStatement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        refuse_nul(values)?;
        let query = bind_arrays(
            sqlx::query(AssertSqlSafe(statement.for_postgres())),
            statement,
            values,
        );
        let changed = match self.connection() {
            Connection::Postgres(connection) => {
                let done = in_time(query.execute(connection)).await;
                done.map(|done| done.rows_affected())
            }
            Connection::Sqlite(_) => Err(arrays_are_for_postgres()),
        };
        self.ended(changed)
    }

    /// As `execute_arrays`, with the rows the statement returns.
    pub(super) async fn fetch_arrays(
        &mut self,
        statement: &BatchStatement,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        refuse_nul(values)?;
        let query = bind_arrays(
            sqlx::query(AssertSqlSafe(statement.for_postgres())),
            statement,
            values,
        );
        let rows = match self.connection() {
            Connection::Postgres(connection) => {
                let rows = in_time(query.fetch_all(connection)).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
            Connection::Sqlite(_) => Err(arrays_are_for_postgres()),
        };
        self.ended(rows)
    }

    /// Runs a script of several statements, as migrations are.
    pub(super) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        let done = match self.connection() {
            Connection::Sqlite(connection) => sqlx::raw_sql(sql).execute(connection).await.map(drop),
            Connection::Postgres(connection) => sqlx::raw_sql(sql).execute(connection).await.map(drop),
        };
        self.ended(done)
    }
}

/// A session whose changes happen together, at `commit`, or not at all.
#[must_use]
pub(super) struct Transaction(Session);

impl Transaction {
    /// Returns when the changes are on stable storage.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        match self.0.connected {
            Connected::SqliteWriter(mut writer) => writer.end("COMMIT").await,
            Connected::Postgres(pooled) => pooled.end("COMMIT").await,
            Connected::SqliteReader(_) => Ok(()),
        }
    }

    /// As `commit`, where tests let a process die on either side.
    pub(super) async fn commit_at(self, boundaries: &[Boundary]) -> Result<(), StoreError> {
        failpoint::reach(Side::Before, boundaries);
        self.commit().await?;
        failpoint::reach(Side::After, boundaries);
        Ok(())
    }

    /// Undoes the changes now rather than before the next transaction.
    pub(super) async fn rollback(self) -> Result<(), StoreError> {
        match self.0.connected {
            Connected::SqliteWriter(mut writer) => writer.end("ROLLBACK").await,
            Connected::Postgres(pooled) => pooled.end("ROLLBACK").await,
            Connected::SqliteReader(_) => Ok(()),
        }
    }
}

impl Deref for Transaction {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}

fn arrays_are_for_postgres() -> sqlx::Error {
    sqlx::Error::Protocol("SQLite has no arrays".to_owned())
}

fn refuse_nul(values: &[Value<'_>]) -> Result<(), StoreError> {
    let holds_nul = |value: &Value<'_>| match value {
        Value::Text(Some(text)) => text.contains('\0'),
        Value::Texts(texts) => texts.iter().any(|text| text.contains('\0')),
        _ => false,
    };
    if values.iter().any(holds_nul) {
        Err(StoreError::NulInText)
    } else {
        Ok(())
    }
}

fn bind_sqlite<'q>(sql: impl SqlSafeStr, values: &[Value<'_>]) -> Query<'q, Sqlite, SqliteArguments> {
    values.iter().fold(sqlx::query(sql), |query, value| match *value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Boolean(truth) => query.bind(truth),
        Value::Texts(texts) => query.bind(serde_json::json!(texts).to_string()),
    })
}

fn bind_postgres<'q>(sql: impl SqlSafeStr, values: &[Value<'_>]) -> Query<'q, Postgres, PgArguments> {
    values.iter().fold(sqlx::query(sql), |query, value| match *value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Boolean(truth) => query.bind(truth),
        Value::Texts(texts) => query.bind(texts),
    })
}
