//! Drives runs: starts them, makes what happens durable, and carries out what the engine decides.

mod config;
mod error;
mod metrics;
mod plans;
mod record;
mod start;
mod surroundings;

pub use config::RuntimeConfig;
pub use error::{PlanError, ReportError, RequestError, RuntimeError, StartRunError};
pub use metrics::MetricsSnapshot;
pub use plans::GraphRef;
pub use record::Trigger;
pub use start::{StartRun, Started};
pub use surroundings::{NoSurroundings, Surroundings, SurroundingsSource};
