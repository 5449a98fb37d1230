//! An open connection. The library dials by itself: it is given the addresses that may be reached, and resolves nothing.

use std::net::{IpAddr, SocketAddr};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Params, SslOpts};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::PORT;
use super::failure::{lost, not_opened, refused};
use super::statement::Statement;
use super::value;
use crate::native::driven::GOOD_BYE;
use crate::native::server::Server;
use crate::native::sql::{Rows, distinct};
use crate::native::{Failure, Limits, Session};
use crate::outbound::{CONNECT_TIMEOUT, DialError};

/// An open connection. Dropping it closes it.
pub struct Open {
    connection: Conn,
    limits: Limits,
    /// Whether rows are left that nobody wants.
    is_amid: bool,
}

impl Open {
    pub async fn connect(session: Session<'_>) -> Result<Self, Failure> {
        let server = Server::of(session, PORT)?;
        let opts = opts(session, &server).await?;
        let opened = timeout(CONNECT_TIMEOUT, Conn::new(opts)).await;
        let opened = opened.map_err(|_elapsed| Failure::of_dialing(server.host, &DialError::Timeout))?;
        let mut connection = opened.map_err(|error| not_opened(server.host, &error))?;
        // One half of it is for MariaDB and the other for MySQL; to each, the other's is a comment.
        let limit = session.limits.timeout;
        let settings = format!(
            "SET time_zone = '+00:00' /*M!100101 , max_statement_time = {} */ /*!50708 , max_execution_time = {} */",
            limit.as_secs().max(1),
            limit.as_millis().clamp(1, u128::from(u32::MAX)),
        );
        let set = connection.query_drop(settings).await;
        set.map_err(|error| not_opened(server.host, &error))?;
        Ok(Self {
            connection,
            limits: session.limits,
            is_amid: false,
        })
    }

    /// Ends the session as the protocol wants it, so that the server has nothing to complain of in its log.
    pub async fn close(self) {
        if !self.is_amid {
            // Who does not listen is left without it.
            let _ended = timeout(GOOD_BYE, self.connection.disconnect()).await;
        }
    }

    /// Runs a statement: the rows of one that reads, else how many it concerned as well.
    pub async fn run(&mut self, statement: &Statement) -> Result<Value, Failure> {
        if statement.reads {
            let begun = self.connection.query_drop("START TRANSACTION READ ONLY").await;
            begun.map_err(|error| refused(error, lost_unchanged))?;
        }
        let prepared = self.connection.prep(statement.text.as_str()).await;
        let prepared = prepared.map_err(|error| refused(error, lost_unchanged))?;
        let meanwhile = if statement.reads { lost_unchanged } else { lost };
        let values = match statement.values.is_empty() {
            true => Params::Empty,
            false => Params::Positional(statement.values.clone()),
        };
        let result = self.connection.exec_iter(prepared, values).await;
        let mut result = result.map_err(|error| refused(error, meanwhile))?;
        let columns = result.columns().unwrap_or_default();
        let names = distinct(
            columns
                .iter()
                .map(|column| column.name_str())
                .collect::<Vec<_>>()
                .iter()
                .map(AsRef::as_ref),
        );
        let mut rows = Rows::new(statement.enough, self.limits);
        let mut bytes = 0_u64;
        while let Some(row) = result.next().await.map_err(|error| refused(error, meanwhile))? {
            let mut fields = Map::new();
            for ((name, column), value) in names.iter().zip(columns.iter()).zip(row.unwrap_raw()) {
                // Nobody has taken a value out of the row.
                let value = value.unwrap_or(mysql_async::Value::NULL);
                bytes += value::size(&value);
                fields.insert(name.clone(), value::shown(value, column, name)?);
            }
            if bytes > self.limits.bytes {
                return Err(too_large(self.limits));
            }
            if !rows.take(fields)? {
                self.is_amid = true;
                return Ok(rows.list());
            }
        }
        if statement.reads {
            return Ok(rows.list());
        }
        let (count, id) = (
            result.affected_rows(),
            result.last_insert_id().filter(|id| *id != 0),
        );
        let mut summary = rows.summary(count);
        summary["insertId"] = json!(id);
        Ok(summary)
    }
}

async fn opts(session: Session<'_>, server: &Server<'_>) -> Result<Opts, Failure> {
    let addresses = session.dialer.addresses(server.host, server.port).await;
    let addresses = addresses.map_err(|error| Failure::of_dialing(server.host, &error))?;
    let addresses: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let given = session.connection;
    let mut opts = OptsBuilder::default()
        .ip_or_hostname(server.host)
        .resolved_ips(Some(addresses))
        .tcp_port(server.port)
        .tcp_nodelay(true)
        // A socket that the server names would be one of this machine.
        .prefer_socket(false)
        .user(Some(given.required_text("username")?))
        .pass(given.text("password")?)
        .db_name(given.text("database")?)
        .stmt_cache_size(0)
        .wait_timeout(Some(
            usize::try_from(session.limits.timeout.as_secs()).unwrap_or(usize::MAX),
        ))
        .max_allowed_packet(usize::try_from(session.limits.bytes).ok());
    if server.is_encrypted {
        let trusted = session.dialer.trusted(server.ca_certificate);
        let trusted = trusted.map_err(|error| Failure::of_dialing(server.host, &error))?;
        let trusted = trusted.iter().map(|certificate| certificate.to_vec().into());
        let ssl = SslOpts::default().with_disable_built_in_roots(true);
        opts = opts.ssl_opts(ssl.with_root_certs(trusted.collect()));
    }
    Ok(opts.into())
}

fn lost_unchanged(why: String) -> Failure {
    Failure::Unreachable(format!(
        "the connection to the server was lost ({why}); nothing was changed"
    ))
}

fn too_large(limits: Limits) -> Failure {
    Failure::TooLarge(format!(
        "the server's answer is larger than {} MiB",
        limits.bytes / (1024 * 1024)
    ))
}
