//! Batches of graph operations.

use contract::scope::WorkflowWrite;
use contract::v1::{self, ErrorReason};
use contract::validation::Violation;
use engine::ops::{self, OpsContext};

use super::deploy::modified;
use super::edit::draft;
use super::{Workflows, graph};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::services::credential::credential_apps;
use crate::store::Save;

impl Workflows {
    pub(super) async fn apply_graph_ops(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::ApplyGraphOpsRequest,
    ) -> Result<v1::ApplyGraphOpsResponse> {
        let store = &self.services.store;
        let operations = wire::graph_op::batch(request.ops)?;
        let workflow = store.workflow(caller.organization_id(), &request.id).await?;
        // Validation has seen that it is there.
        let expected = request.expected_updated_at.unwrap_or_default();
        if expected != workflow.updated_at {
            return Err(modified(workflow.updated_at));
        }
        let callable = self
            .services
            .callable(caller.organization_id(), &request.id)
            .await?;
        let credential_apps = credential_apps(&self.services, caller.organization_id(), &operations).await?;
        let graph = graph::parse(&workflow.draft.graph)?;
        let kinds = self.services.kinds(caller.organization_id()).await?;
        let result = {
            let context = OpsContext {
                kinds: &kinds,
                functions: &callable,
                credential_app: &|id| credential_apps.get(id).cloned(),
            };
            ops::apply(&graph, operations, &context)
        };
        if request.atomic == Some(true) && !result.errors.is_empty() {
            return Err(rejected(&result.errors));
        }
        let problems = engine::topology::check(&result.graph, &kinds);
        if !problems.is_empty() {
            return Err(graph::refusal(&problems));
        }
        let updated_at = match request.dry_run {
            Some(true) => workflow.updated_at,
            _ => {
                let draft = draft(&result.graph)?;
                let actor = caller.actor();
                match store
                    .save_draft(&actor, caller.organization_id(), &request.id, expected, &draft)
                    .await?
                {
                    Save::Saved { updated_at } => updated_at,
                    Save::Modified { updated_at } => return Err(modified(updated_at)),
                }
            }
        };
        let data = v1::GraphOpsResult {
            applied: result.applied.into_iter().collect(),
            errors: result.errors.iter().map(ToString::to_string).collect(),
            touched: result.touched,
            updated_at,
        };
        Ok(v1::ApplyGraphOpsResponse { data: Some(data) })
    }
}

/// The refusal of a batch that asked for all or nothing.
fn rejected(errors: &[ops::OpError]) -> Error {
    let violation = |error: &ops::OpError| Violation {
        path: format!("ops[{}]", error.index),
        message: format!("{}: {}", error.code, error.message),
    };
    Error::new(
        ErrorReason::ValidationError,
        "The batch is atomic and some of its operations failed; nothing was saved.",
    )
    .with_violations(errors.iter().map(violation).collect())
}
