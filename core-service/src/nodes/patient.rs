//! Executors that lean on the service's own database wait until it can be reached: a run must not fail because the service
//! is ill. The time-out of the attempt ends that.
//!
//! For kinds whose writes are done once however often they are executed; see [`Execution::idempotency_key`].

use std::time::Duration;

use engine::failure::NodeError;
use tokio::time::sleep;

use super::{BoxFuture, Executed, Execution, Executor};

/// Between two attempts to use the database.
pub(super) const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The code by which an executor says that it could not reach the database. No node fails with it.
const UNREACHABLE: &str = "DATABASE_UNREACHABLE";

/// The database cannot be reached at the moment.
pub(super) fn unreachable() -> NodeError {
    NodeError::new(UNREACHABLE, "the service's own database cannot be reached")
}

/// An executor that is asked again for as long as it cannot reach the database.
pub(super) struct Patient<E>(pub(super) E);

impl<E: Executor> Executor for Patient<E> {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            loop {
                match self.0.execute(execution.clone()).await {
                    Err(error) if error.code == UNREACHABLE => sleep(TRY_AGAIN_AFTER).await,
                    executed => return executed,
                }
            }
        })
    }
}
