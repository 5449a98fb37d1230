//! What can go wrong when asking the runtime for something, told by what the caller can do about it.

use std::sync::Arc;

use engine::problem::Problem;
use engine::start::StartError;
use serde::{Deserialize, Serialize};

use crate::catalog::CatalogError;
use crate::store::{CommitError, StoreError};

/// The runtime cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The database failed.
    #[error("the process could not be registered in the database")]
    Store(#[from] StoreError),
}

/// A plan that cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No frozen graph has this content hash.
    #[error("there is no such graph")]
    NotFound,
    /// The graph cannot run.
    #[error("the workflow cannot run: {}", .0.first().map_or_else(String::new, ToString::to_string))]
    Problems(Arc<[Problem]>),
    /// The stored graph cannot be read.
    #[error("the stored graph is damaged")]
    Damaged(#[source] Arc<serde_json::Error>),
    /// An app that the graph pinned cannot be had.
    #[error(transparent)]
    App(Arc<CatalogError>),
    /// The database failed; trying again later may help.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
}

/// A run that was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartRunError {
    /// The graph cannot run, or is not there.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is nothing to start at.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another request used the same idempotency key.
    #[error("this idempotency key was used with another request")]
    KeyReused,
    /// The organization has no credit left.
    #[error("no credits are left")]
    OutOfCredits,
    /// The workflow's schedule does not stand at the run's instant any more.
    #[error("the schedule has moved on")]
    NotDue,
    /// The instant is left out because a run of an earlier one goes on.
    #[error("an earlier run goes on")]
    StillRunning,
    /// The run that would wait for it has ended.
    #[error("the run that calls has ended")]
    ParentEnded,
    /// Too much is under way: in this process, or for this organization. Try again after a moment.
    #[error("too many runs are under way, try again later")]
    Overloaded,
    /// The process is stopping, has lost its lease, or the database cannot be reached. The run may have been started
    /// all the same when the database failed during the commit; an idempotency key makes a repetition safe.
    #[error("runs cannot be started at the moment, try again later")]
    Unavailable,
    /// A defect. Nothing was started.
    #[error("the run could not be started")]
    Internal,
}

/// A request to a run that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The organization has no such run.
    #[error("there is no such run")]
    NotFound,
    /// The run has ended.
    #[error("the run has ended")]
    Terminal,
    /// The run has not ended.
    #[error("the run has not ended yet")]
    NotTerminal,
    /// The organization has no credit left for a restart.
    #[error("no credits are left")]
    OutOfCredits,
    /// The node has not failed in this run.
    #[error("node {0} has not failed in this run")]
    NotFailed(i64),
    /// The node does not wait for an answer in this run.
    #[error("node {0} does not wait for an answer in this run")]
    NotWaiting(i64),
    /// Another answer was first, or the node waits no longer.
    #[error("node {0} was answered already")]
    Answered(i64),
    /// Nothing is known to have happened, or not yet: ask again.
    #[error("the run cannot be reached at the moment, try again later")]
    Unavailable,
    /// A defect; the run is as it was.
    #[error("the request could not be carried out")]
    Internal,
}

/// A run that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The organization has no such run, or it has no such attempt.
    #[error("there is no such run")]
    NotFound,
    /// The run's plan cannot be had.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The database failed; trying again later may help when it was temporary.
    #[error(transparent)]
    Store(StoreError),
    /// The journal cannot be read.
    #[error("the run's journal is damaged: {0}")]
    Damaged(String),
}

impl From<StoreError> for ReportError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::NotFound,
            other => Self::Store(other),
        }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::NotFound,
            error if error.is_temporary() => Self::Unavailable,
            error => {
                tracing::error!(%error, "the database refused a request to a run");
                Self::Internal
            }
        }
    }
}

impl From<CommitError> for RequestError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => error.into(),
            CommitError::LeaseLost => Self::Unavailable,
        }
    }
}

impl From<CatalogError> for PlanError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Store(error) => Self::Store(Arc::new(error)),
            other => Self::App(Arc::new(other)),
        }
    }
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::NotFound,
            other => Self::Store(Arc::new(other)),
        }
    }
}
