//! An open connection: how it is opened, and how statements run in a transaction of it.

use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_stream::StreamExt as _;

use super::PORT;
use super::failure::{failed, not_opened, undecided};
use super::parameter::Parameter;
use super::statement::Statement;
use super::value::Raw;
use crate::native::bounded::Budget;
use crate::native::driven::Driven;
use crate::native::server::{Server, bounded};
use crate::native::sql::{Rows, distinct};
use crate::native::{Failure, Limits, Session};

/// What a client says that wants TLS: its length, and a number in the place of a version.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// What a transaction may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// An open connection. Dropping it closes it.
pub struct Open {
    client: Client,
    driven: Driven,
    budget: Budget,
    limits: Limits,
    /// Whether rows are left that nobody wants.
    is_amid: bool,
}

impl Open {
    pub async fn connect(session: Session<'_>) -> Result<Self, Failure> {
        let server = Server::of(session, PORT)?;
        let given = session.connection;
        let mut config = Config::new();
        // TLS is there already, or not wanted.
        config.ssl_mode(SslMode::Disable).application_name("switchyard");
        config.user(given.required_text("username")?);
        if let Some(password) = given.text("password")? {
            config.password(password);
        }
        if let Some(database) = given.text("database")? {
            config.dbname(database);
        }
        let mut stream = server.dial(session).await?;
        if server.is_encrypted {
            ask_for_tls(&mut stream).await?;
        }
        let (stream, budget) = bounded(server.secured(session, stream).await?, session);
        let opened = config.connect_raw(stream, NoTls).await;
        let (client, connection) = opened.map_err(|error| not_opened(&error))?;
        let driven = Driven::new(async move {
            // What ends it is told to whoever waits for an answer.
            let _ended = connection.await;
        });
        Ok(Self {
            client,
            driven,
            budget,
            limits: session.limits,
            is_amid: false,
        })
    }

    /// Ends the session as the protocol wants it, so that the server has nothing to complain of in its log.
    pub async fn close(self) {
        if !self.is_amid {
            drop(self.client);
            self.driven.end().await;
        }
    }

    /// Begins the transaction. The server ends what takes longer than the caller waits.
    pub async fn begin(&mut self, access: Access) -> Result<(), Failure> {
        let mode = match access {
            Access::Read => "READ ONLY",
            Access::Write => "READ WRITE",
        };
        let text = format!(
            "BEGIN {mode}; SET LOCAL statement_timeout = {}",
            self.limits.timeout.as_millis().clamp(1, i32::MAX as u128)
        );
        let begun = self.driven.during(self.client.batch_execute(&text)).await;
        begun.map_err(|error| failed(&error))
    }

    /// Runs a statement: the rows of one that reads, else how many it concerned as well.
    pub async fn run(&mut self, statement: &Statement) -> Result<Value, Failure> {
        self.begin(statement.access).await?;
        let Self {
            client,
            driven,
            budget,
            limits,
            is_amid,
        } = self;
        let run = driven.during(rows(client, statement, *limits)).await;
        let (rows, count) = run.map_err(|failure| match budget.is_exceeded() {
            true => budget.failure(),
            false => failure,
        })?;
        if statement.access == Access::Read {
            *is_amid = rows.are_enough();
            return Ok(rows.list());
        }
        let committed = driven.during(client.batch_execute("COMMIT")).await;
        committed.map_err(|error| undecided(&error))?;
        Ok(rows.summary(count))
    }
}

/// The rows of a statement, and how many it concerned.
async fn rows(client: &Client, statement: &Statement, limits: Limits) -> Result<(Rows, u64), Failure> {
    let prepared = client
        .prepare(&statement.text)
        .await
        .map_err(|error| failed(&error))?;
    let parameters = Parameter::all(&statement.values, prepared.params())?;
    let names = distinct(prepared.columns().iter().map(|column| column.name()));
    let stream = client
        .query_raw(&prepared, parameters)
        .await
        .map_err(|error| failed(&error))?;
    tokio::pin!(stream);
    let mut rows = Rows::new(statement.enough, limits);
    while let Some(row) = stream.next().await {
        let row = row.map_err(|error| failed(&error))?;
        let mut fields = Map::new();
        for (place, (name, column)) in names.iter().zip(row.columns()).enumerate() {
            let raw: Raw<'_> = row.try_get(place).map_err(|error| failed(&error))?;
            fields.insert(name.clone(), raw.value(column.type_(), name)?);
        }
        if !rows.take(fields)? {
            break;
        }
    }
    Ok((rows, stream.rows_affected().unwrap_or_default()))
}

/// Asks for TLS in front of all else, as the protocol wants it.
async fn ask_for_tls(stream: &mut TcpStream) -> Result<(), Failure> {
    let asked = async {
        stream.write_all(&SSL_REQUEST).await?;
        stream.read_u8().await
    };
    match asked.await {
        Ok(b'S') => Ok(()),
        Ok(_) => {
            let message = "the server does not encrypt; set tls to disable to speak to it in the open";
            Err(Failure::Credential(message.to_owned()))
        }
        Err(error) => Err(Failure::Unreachable(format!(
            "the server does not answer: {error}"
        ))),
    }
}
