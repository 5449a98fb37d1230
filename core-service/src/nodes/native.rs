//! Modules of apps with a driver: whom they are called for, how many at once, and what is not shown of them.

use std::time::Duration;

use engine::failure::NodeError;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::http::Caller;
use crate::connectors::App;
use crate::credentials::OpenCredential;
use crate::native::{Call, Driver, Failure, Limits, Pending, Session, Values, driver};
use crate::outbound::{Dialer, MAX_BODY_BYTES, Outbound};
use crate::secret::{Mask, Secret};
use crate::turns::{Share, Turns};

/// Connections to servers at the same time: in all, and with one credential.
const CONNECTIONS: usize = 256;
const CONNECTIONS_EACH: usize = 10;
/// The most things in a list that a call gives.
const MOST_ITEMS: usize = 10_000;

/// The most characters of a server's words that are passed on.
const LONGEST_MESSAGE: usize = 2_000;

/// Calls drivers. Cheap to clone; all clones share their turns.
#[derive(Clone)]
pub struct NativeCaller {
    dialer: Dialer,
    http: Outbound,
    turns: Turns,
}

impl NativeCaller {
    /// A caller whose connections go where requests may go.
    pub fn new(outbound: &Outbound) -> Self {
        Self {
            dialer: outbound.dialer(),
            http: outbound.clone(),
            turns: Turns::new(CONNECTIONS, Share::of_each(CONNECTIONS_EACH), usize::MAX),
        }
    }

    /// Calls an operation of an app's driver. What is secret of the credential is masked in all that comes of it.
    ///
    /// # Errors
    /// Those of [`Failure`], and when the app has no such operation.
    pub(super) async fn call(
        &self,
        app: &App,
        operation: Option<&str>,
        parameters: &Map<String, Value>,
        caller: &Caller<'_>,
    ) -> Result<Value, NodeError> {
        self.call_for(MOST_ITEMS, app, operation, parameters, caller)
            .await
    }

    /// As [`NativeCaller::call`], of an operation that gives at most so many things.
    ///
    /// # Errors
    /// As [`NativeCaller::call`].
    pub(super) async fn call_for(
        &self,
        most_items: usize,
        app: &App,
        operation: Option<&str>,
        parameters: &Map<String, Value>,
        caller: &Caller<'_>,
    ) -> Result<Value, NodeError> {
        let (driver, operation) = known(app, operation)?;
        let connection = connection(caller);
        let called = driver.call(Call {
            operation,
            parameters: Values(parameters),
            idempotency_key: caller.idempotency_key.as_deref(),
            session: self.session(&connection, caller, most_items),
        });
        let called = self.in_turn(called, caller).await;
        let mask = mask(caller);
        let mut output = called.map_err(|failure| told(failure, caller, &mask))?;
        mask.value(&mut output);
        Ok(output)
    }

    /// Asks the server of an app with a driver whether it accepts the caller's credential.
    ///
    /// # Errors
    /// When it does not, or cannot be asked.
    pub(super) async fn verify(&self, app: &App, caller: &Caller<'_>) -> Result<(), NodeError> {
        let driver = driver_of(app)?;
        let connection = connection(caller);
        let verified = driver.verify(self.session(&connection, caller, MOST_ITEMS));
        let verified = self.in_turn(verified, caller).await;
        verified.map_err(|failure| told(failure, caller, &mask(caller)))
    }

    fn session<'a>(
        &'a self,
        connection: &'a Map<String, Value>,
        caller: &Caller<'_>,
        most_items: usize,
    ) -> Session<'a> {
        Session {
            connection: Values(connection),
            dialer: &self.dialer,
            http: &self.http,
            limits: Limits {
                timeout: caller.timeout,
                bytes: u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX),
                items: most_items,
            },
        }
    }

    /// Does something when its turn has come, and in time.
    async fn in_turn<T>(&self, work: Pending<'_, T>, caller: &Caller<'_>) -> Result<T, Failure> {
        let work = async {
            let turn = self.turns.turn(&caller.account).await;
            let _turn = turn.map_err(|error| Failure::Busy(error.to_string()))?;
            work.await
        };
        let done = timeout(caller.timeout, work).await;
        done.unwrap_or_else(|_elapsed| Err(late(caller.timeout)))
    }
}

/// The values of the caller's credential, as drivers need them.
fn connection(caller: &Caller<'_>) -> Map<String, Value> {
    let whole = |opened: &OpenCredential| opened.connection().whole(&opened.data);
    caller.credential.map(whole).unwrap_or_default()
}

fn late(limit: Duration) -> Failure {
    Failure::Lost(format!("there was no answer within {} ms", limit.as_millis()))
}

fn driver_of(app: &App) -> Result<&'static dyn Driver, NodeError> {
    let found = app.driver.as_deref().and_then(driver);
    // A manifest that names another one is refused when it is read.
    found.ok_or_else(|| NodeError::new("ENGINE_ERROR", format!("there is no driver of {}", app.id)))
}

fn known<'a>(app: &App, operation: Option<&'a str>) -> Result<(&'static dyn Driver, &'a str), NodeError> {
    let driver = driver_of(app)?;
    let operation = operation.filter(|operation| driver.operation(operation).is_some());
    let operation = operation.ok_or_else(|| {
        let message = format!("the driver {} does not do what the module asks", driver.name());
        NodeError::new("ENGINE_ERROR", message)
    })?;
    Ok((driver, operation))
}

fn mask(caller: &Caller<'_>) -> Mask {
    let secrets = caller.credential.map(|opened| {
        let (connection, data) = opened.connected();
        connection.secret_texts(data)
    });
    Mask::of(secrets.iter().flatten().map(Secret::expose))
}

/// A failure as it may be told. It is cut last, so that no part of a secret is left.
fn told(failure: Failure, caller: &Caller<'_>, mask: &Mask) -> NodeError {
    let mut error = NodeError::from(failure);
    mask.text(&mut error.message);
    caller.hide.text(&mut error.message);
    if let Some((end, _)) = error.message.char_indices().nth(LONGEST_MESSAGE) {
        error.message.truncate(end);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Hide;

    #[test]
    fn a_long_failure_is_cut_and_no_part_of_a_secret_is_left() {
        let caller = Caller {
            app: None,
            credential: None,
            hide: Hide::from(Mask::of(["of a variable"].into_iter())),
            idempotency_key: None,
            account: String::new(),
            timeout: Duration::from_secs(1),
        };
        let mask = Mask::of(["of a credential"].into_iter());
        for secret in ["of a credential", "of a variable"] {
            for before in 1_950..2_000 {
                let failure = Failure::Refused(format!("{}{secret}{}", "x".repeat(before), "y".repeat(99)));
                let message = told(failure, &caller, &mask).message;
                assert!(message.chars().count() <= LONGEST_MESSAGE, "{message}");
                assert!(!message.contains('o'), "{message}");
            }
        }
    }
}
