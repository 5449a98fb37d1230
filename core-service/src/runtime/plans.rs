//! Compiled plans by the content of their graphs. Each is compiled once, and only what runs again and again is kept.

use std::sync::Arc;

use engine::graph::{FrozenFunction, FrozenGraph, Node};
use engine::plan::Plan;

use super::error::PlanError;
use super::pace::Pace;
use super::surroundings::SurroundingsSource;
use crate::connectors::Apps;
use crate::lookups::Lookups;
use crate::nodes::{Registry, RunWorkflow};
use crate::store::{self, Store};

/// The frozen graph that a run is to follow.
#[derive(Debug, Clone)]
pub enum GraphRef {
    /// Stored already, such as a deployed version's: its content hash.
    Stored(String),
    /// Perhaps not stored yet, such as a draft's; it will be. The bytes are the graph's canonical JSON.
    Frozen(store::Graph),
}

impl GraphRef {
    /// The SHA-256 of the graph's canonical JSON, in hexadecimal.
    #[must_use]
    pub fn content_hash(&self) -> &str {
        match self {
            Self::Stored(content_hash) => content_hash,
            Self::Frozen(graph) => &graph.content_hash,
        }
    }

    pub(super) fn into_content_hash(self) -> String {
        match self {
            Self::Stored(content_hash) => content_hash,
            Self::Frozen(graph) => graph.content_hash,
        }
    }
}

/// What every reference to a variable begins with, in JSON as well.
const VARIABLES: &[u8] = b"$vars";

/// A plan, and what its graph froze.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) plan: Arc<Plan>,
    pub(super) functions: Arc<[FrozenFunction]>,
    pub(super) apps: Apps,
    pub(super) pace: Pace,
    /// Whether any of its templates may read a variable.
    pub(super) reads_variables: bool,
    /// Whether any of its nodes starts runs of other workflows.
    pub(super) calls_workflows: bool,
}

/// Holds plans of stored graphs only: a plan that is found here needs no write.
pub(super) struct Plans {
    store: Store,
    registry: Arc<Registry>,
    source: Arc<dyn SurroundingsSource>,
    known: Lookups<String, Compiled, PlanError>,
}

impl Plans {
    pub(super) fn new(
        store: Store,
        registry: Arc<Registry>,
        source: Arc<dyn SurroundingsSource>,
        most: u64,
    ) -> Self {
        Self {
            store,
            registry,
            source,
            known: Lookups::lasting(most),
        }
    }

    /// The plan of a graph, which is stored when this returns.
    pub(super) async fn get(&self, organization_id: &str, graph: &GraphRef) -> Result<Compiled, PlanError> {
        let key = cache_key(organization_id, graph.content_hash());
        self.known
            .find(&key, || self.look_up(organization_id, graph))
            .await
    }

    async fn look_up(&self, organization_id: &str, graph: &GraphRef) -> Result<Compiled, PlanError> {
        match graph {
            GraphRef::Stored(content_hash) => {
                let bytes = self.store.graph(organization_id, content_hash).await?;
                self.compile(organization_id, &bytes).await
            }
            GraphRef::Frozen(graph) => {
                let compiled = self.compile(organization_id, &graph.bytes).await?;
                self.store.put_graph(organization_id, graph).await?;
                Ok(compiled)
            }
        }
    }

    async fn compile(&self, organization_id: &str, bytes: &[u8]) -> Result<Compiled, PlanError> {
        let frozen: FrozenGraph =
            serde_json::from_slice(bytes).map_err(|error| PlanError::Damaged(Arc::new(error)))?;
        let (graph, needs) = frozen.into_parts();
        let kinds = self.registry.pinned(organization_id, &needs.apps).await?;
        let callable = self.source.functions(&needs.functions);
        let plan = Plan::compile(&graph, &kinds, &*callable)
            .map_err(|problems| PlanError::Problems(problems.into()))?;
        let calls = |node: &Node| node.kind.as_deref() == Some(RunWorkflow::KIND);
        Ok(Compiled {
            calls_workflows: graph.nodes.iter().any(calls),
            plan: Arc::new(plan),
            functions: needs.functions.into(),
            apps: kinds.apps().clone(),
            pace: Pace::default(),
            reads_variables: bytes.windows(VARIABLES.len()).any(|window| window == VARIABLES),
        })
    }
}

/// Organizations may have apps of their own, so equal graphs of two of them may mean different plans.
fn cache_key(organization_id: &str, content_hash: &str) -> String {
    let mut key = String::with_capacity(organization_id.len() + 1 + content_hash.len());
    key.push_str(organization_id);
    key.push('/');
    key.push_str(content_hash);
    key
}
