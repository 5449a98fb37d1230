//! The custom functions that a workflow may call, for whoever compiles its templates.

use engine::graph::Graph;

use super::Services;
use crate::error::Result;
use crate::functions::{self, DraftOf, Known};
use crate::store;

pub(super) use crate::functions::frozen;

impl Services {
    /// The custom functions that a workflow's templates may call.
    pub(super) async fn callable(&self, organization_id: &str, workflow_id: &str) -> Result<Known> {
        let of = DraftOf {
            organization_id,
            workflow_id,
        };
        Ok(functions::callable(&self.store, of).await?)
    }

    /// A draft that nothing changes any more, with the functions it calls and the apps it uses. `stored` is its stored form.
    pub(super) async fn freeze(
        &self,
        organization_id: &str,
        workflow_id: &str,
        draft: &Graph,
        stored: &[u8],
    ) -> Result<store::Graph> {
        let of = DraftOf {
            organization_id,
            workflow_id,
        };
        let kinds = self.kinds(organization_id).await?;
        Ok(functions::freeze(&self.store, &kinds, of, draft, stored).await?)
    }
}
