//! Runs as they are shown. Read from the database even when the run is in memory here, so that nothing is shown that a
//! crash could take back.

use engine::state::RunState;

use super::Shared;
use super::error::ReportError;
use super::plans::GraphRef;
use super::rebuild::{RebuildError, rebuild};
use super::record::{Lineage, StartRecord, Trigger};
use crate::store::Run;

/// A run and what happened in it.
pub struct Report {
    /// Its row.
    pub run: Run,
    /// What started it.
    pub trigger: Trigger,
    /// Its current attempt: [`RunState::nodes`], [`RunState::edges_taken`], [`RunState::last_output`].
    pub state: RunState,
}

impl From<RebuildError> for ReportError {
    fn from(error: RebuildError) -> Self {
        match error {
            RebuildError::Store(error) => Self::Store(error),
            RebuildError::Damaged(what) => Self::Damaged(what),
        }
    }
}

impl Shared {
    pub(super) async fn lineage(&self, organization_id: &str, run_id: &str) -> Result<Lineage, ReportError> {
        let run = self.store.run(organization_id, run_id).await?;
        let record: StartRecord = serde_json::from_slice(&run.start_input)
            .map_err(|error| ReportError::Damaged(error.to_string()))?;
        Ok(record.lineage)
    }

    pub(super) async fn report(&self, organization_id: &str, run_id: &str) -> Result<Report, ReportError> {
        let run = self.store.run(organization_id, run_id).await?;
        let record: StartRecord = serde_json::from_slice(&run.start_input)
            .map_err(|error| ReportError::Damaged(error.to_string()))?;
        let graph = GraphRef::Stored(run.graph_hash.clone());
        let plan = self.plans.get(organization_id, &graph).await?.plan;
        let rebuilt = rebuild(&self.store, organization_id, run_id, run.attempt_number, plan).await;
        if rebuilt.is_err() {
            // Its time was over between the two looks, perhaps.
            self.store.run(organization_id, run_id).await?;
        }
        let rebuilt = rebuilt?;
        Ok(Report {
            run,
            trigger: record.trigger,
            state: rebuilt.state,
        })
    }
}
