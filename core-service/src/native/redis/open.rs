//! An open connection.

use ::redis::aio::{ConnectionLike as _, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, cmd};
use serde_json::{Map, Value, json};

use super::PORT;
use super::failure::{failed, not_opened};
use super::value::shown;
use crate::native::bounded::Budget;
use crate::native::driven::Driven;
use crate::native::server::{Server, bounded};
use crate::native::{Failure, Session};

/// Keys asked for at a time while all are walked.
const KEYS_AT_ONCE: usize = 500;

/// An open connection.
pub struct Open {
    connection: MultiplexedConnection,
    driven: Driven,
    budget: Budget,
}

impl Open {
    pub async fn connect(session: Session<'_>) -> Result<Self, Failure> {
        let server = Server::of(session, PORT)?;
        let given = session.connection;
        let mut info = RedisConnectionInfo::default()
            .set_db(given.integer("database")?.unwrap_or(0))
            .set_skip_set_lib_name();
        if let Some(username) = given.text("username")? {
            info = info.set_username(username);
        }
        if let Some(password) = given.text("password")? {
            info = info.set_password(password);
        }
        let stream = server.secured(session, server.dial(session).await?).await?;
        let (stream, budget) = bounded(stream, session);
        // The caller's time-out is the only one.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (connection, driving) = opened.map_err(|error| not_opened(&error))?;
        Ok(Self {
            connection,
            driven: Driven::new(driving),
            budget,
        })
    }

    pub async fn ask(&mut self, command: &Cmd) -> Result<Value, Failure> {
        let answer = self.answer(command).await?;
        Ok(shown(answer))
    }

    async fn answer(&mut self, command: &Cmd) -> Result<::redis::Value, Failure> {
        let asked = async { self.connection.req_packed_command(command).await?.extract_error() };
        self.driven
            .during(asked)
            .await
            .map_err(|error| match self.budget.is_exceeded() {
                true => self.budget.failure(),
                false => failed(&error),
            })
    }

    /// Walks all keys. One that is moved meanwhile may come twice; it is given once.
    pub async fn keys(&mut self, pattern: &str, most: usize) -> Result<Value, Failure> {
        let (mut found, mut cursor) = (Map::new(), "0".to_owned());
        loop {
            let mut command = cmd("SCAN");
            command
                .arg(&cursor)
                .arg("MATCH")
                .arg(pattern)
                .arg("COUNT")
                .arg(KEYS_AT_ONCE);
            let Value::Array(answer) = self.ask(&command).await? else {
                return Err(unreadable());
            };
            let (Some(Value::String(next)), Some(Value::Array(keys))) = (answer.first(), answer.get(1))
            else {
                return Err(unreadable());
            };
            let keys = keys.iter().filter_map(Value::as_str);
            found.extend(keys.map(|key| (key.to_owned(), Value::Null)));
            if next == "0" || found.len() >= most {
                let keys = found.into_iter().take(most).map(|(key, _)| json!({ "key": key }));
                return Ok(keys.collect());
            }
            cursor.clone_from(next);
        }
    }
}

fn unreadable() -> Failure {
    Failure::Refused("the server's answer is not what its protocol says".to_owned())
}
