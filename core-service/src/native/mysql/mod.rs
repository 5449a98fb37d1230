//! MySQL and MariaDB.
//!
//! What asks for a list runs in a transaction that only reads, so that it can be asked again. All else is one statement that
//! commits itself: the server commits statements that change tables' structure whatever a transaction says, so a
//! connection that breaks meanwhile leaves in doubt whether it was done. Sessions are in UTC.

mod failure;
mod open;
mod statement;
mod value;

use serde_json::Value;

use self::open::Open;
use self::statement::Statement;
use super::{Call, Driver, Failure, Operation, Pending, Session, sql};

const PORT: u16 = 3306;

/// The driver.
pub struct MySql;

impl Driver for MySql {
    fn name(&self) -> &'static str {
        "mysql"
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
            Open::connect(session).await?.close().await;
            Ok(())
        })
    }
}
