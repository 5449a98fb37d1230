//! Drafts that nothing changes any more, with the functions they call and the apps they use.

use engine::graph::{Graph, Needs};
use engine::plan::Plan;

use super::Known;
use crate::nodes::OrganizationKinds;
use crate::store::{self, Store, StoreError};

/// What every graph holds that calls a function: a call in a template, or a node that is one.
const SIGNS: [&[u8]; 2] = [b"(", b"function_call"];

/// Which workflow a draft is of.
#[derive(Debug, Clone, Copy)]
pub struct DraftOf<'a> {
    /// The organization.
    pub organization_id: &'a str,
    /// The workflow.
    pub workflow_id: &'a str,
}

/// The custom functions that a workflow's templates may call.
///
/// # Errors
/// When the database fails.
pub async fn callable(store: &Store, of: DraftOf<'_>) -> Result<Known, StoreError> {
    let functions = store
        .workflow_functions(of.organization_id, of.workflow_id)
        .await?;
    Ok(Known::of(functions))
}

/// A draft that nothing changes any more, with the functions it calls and the apps it uses. `stored` is its stored form.
///
/// # Errors
/// When the database fails.
pub async fn freeze(
    store: &Store,
    kinds: &OrganizationKinds,
    of: DraftOf<'_>,
    draft: &Graph,
    stored: &[u8],
) -> Result<store::Graph, StoreError> {
    let holds = |sign: &[u8]| stored.windows(sign.len()).any(|window| window == sign);
    if !SIGNS.into_iter().any(holds) {
        return Ok(frozen(draft, &Known::none(), kinds));
    }
    let callable = callable(store, of).await?;
    // Compiling finds what is called. What is wrong with the draft is told by whoever runs it.
    let _compiled = Plan::compile(draft, kinds, &callable);
    Ok(frozen(draft, &callable, kinds))
}

/// A graph with the functions that were called when it was compiled and the apps that it uses, by its content hash.
#[must_use]
pub fn frozen(graph: &Graph, callable: &Known, kinds: &OrganizationKinds) -> store::Graph {
    let needs = Needs {
        functions: callable.used(),
        apps: kinds.pins(graph),
    };
    store::Graph {
        content_hash: graph.content_hash(&needs),
        bytes: graph.canonical_json(&needs).into_bytes(),
    }
}
