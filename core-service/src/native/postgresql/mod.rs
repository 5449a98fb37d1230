//! PostgreSQL, and what speaks its protocol.
//!
//! Each call is one transaction: one that only reads, where a list is asked for, so that it can be asked again; else one that
//! is committed at the end. A connection that breaks before the commit has changed nothing.

mod failure;
mod open;
mod parameter;
mod statement;
mod value;

use serde_json::Value;

use self::open::{Access, Open};
use self::statement::Statement;
use super::{Call, Driver, Failure, Operation, Pending, Session, sql};

const PORT: u16 = 5432;

/// The driver.
pub struct PostgreSql;

impl Driver for PostgreSql {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        sql::CONNECTION_FIELDS
    }

    fn operations(&self) -> &'static [Operation] {
        sql::OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let statement = Statement::of(call)?;
            let mut open = Open::connect(call.session).await?;
            let output = open.run(&statement).await?;
            open.close().await;
            Ok(output)
        })
    }

    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut open = Open::connect(session).await?;
            open.begin(Access::Read).await?;
            open.close().await;
            Ok(())
        })
    }
}
