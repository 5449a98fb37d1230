//! Redis, and what speaks its protocol (Valkey, KeyDB).

mod failure;
mod open;
mod question;
mod value;

use ::redis::cmd;
use serde_json::Value;

use self::open::Open;
use self::question::Question;
use super::{Call, Driver, Operation, Pending, Session};

const PORT: u16 = 6379;

/// The driver.
pub struct Redis;

const OPERATIONS: &[Operation] = &[
    Operation::one("get", &["key"], &[]),
    Operation::one("set", &["key", "value"], &["expiresInSeconds", "when"]),
    Operation::one("delete", &["keys"], &[]),
    Operation::one("increment", &["key"], &["by"]),
    Operation::one("hash_get", &["key"], &["field"]),
    Operation::one("hash_set", &["key", "values"], &[]),
    Operation::one("list_push", &["key", "values"], &["end"]),
    Operation::one("list_pop", &["key"], &["end", "count"]),
    Operation::one("publish", &["channel", "message"], &[]),
    Operation::list("list_range", &["key"], &["limit"]),
    Operation::list("find_keys", &[], &["pattern", "limit"]),
];

impl Driver for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        &[
            "host",
            "port",
            "username",
            "password",
            "database",
            "tls",
            "caCertificate",
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            // What the parameters make is known before anybody is asked.
            let question = Question::of(call)?;
            let mut open = Open::connect(call.session).await?;
            question.ask(&mut open).await
        })
    }

    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut open = Open::connect(session).await?;
            open.ask(&cmd("PING")).await.map(drop)
        })
    }
}
