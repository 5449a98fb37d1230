//! The custom functions that a workflow may call, for whoever compiles its templates.

use engine::graph::Graph;
use engine::plan::Plan;

use super::Services;
use crate::error::Result;
use crate::functions::Known;
use crate::store;

/// What every graph holds that calls a function: a call in a template, or a node that is one.
const SIGNS: [&[u8]; 2] = [b"(", b"function_call"];

impl Services {
    /// The custom functions that a workflow's templates may call.
    pub(super) async fn callable(&self, organization_id: &str, workflow_id: &str) -> Result<Known> {
        let functions = self
            .store
            .workflow_functions(organization_id, workflow_id)
            .await?;
        Ok(Known::of(functions))
    }

    /// A draft that nothing changes any more, with the functions it calls. `stored` is its stored form.
    pub(super) async fn freeze(
        &self,
        organization_id: &str,
        workflow_id: &str,
        draft: &Graph,
        stored: &[u8],
    ) -> Result<store::Graph> {
        let holds = |sign: &[u8]| stored.windows(sign.len()).any(|window| window == sign);
        if !SIGNS.into_iter().any(holds) {
            return Ok(frozen(draft, &Known::none()));
        }
        let callable = self.callable(organization_id, workflow_id).await?;
        // Compiling finds what is called. What is wrong with the draft is told by whoever runs it.
        let _compiled = Plan::compile(draft, &*self.registry, &callable);
        Ok(frozen(draft, &callable))
    }
}

/// A graph with the functions that were called when it was compiled, by its content hash.
pub(super) fn frozen(graph: &Graph, callable: &Known) -> store::Graph {
    let functions = callable.used();
    store::Graph {
        content_hash: graph.content_hash(&functions),
        bytes: graph.canonical_json(&functions).into_bytes(),
    }
}
